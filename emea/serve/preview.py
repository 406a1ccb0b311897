"""The preview of an entity: a small page without scripts."""

from html import escape

from emea.explain.explanation import beginning
from emea.explain.facts import Facts

MOST_FACTS = 12

STYLE = (
    "body{font:14px sans-serif;margin:8px}h1{font-size:16px;margin:0}"
    "p{color:#666;margin:2px 0;overflow-wrap:anywhere}ul{padding-left:16px}"
)


def preview(facts: Facts, entity: int) -> str:
    """Return a page with the title, the name and some facts of an entity.

    Args:
        facts: The graph.
        entity: The entity.
    """
    title = escape(beginning(facts.title(entity)))
    name = escape(facts.names[entity])
    items = "".join(
        f"<li>{escape(beginning(one.words()))}</li>"
        for one in facts.about(entity, MOST_FACTS)
    )
    return (
        f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style></head><body><h1>{title}</h1><p>{name}</p>"
        f"<ul>{items}</ul></body></html>"
    )
