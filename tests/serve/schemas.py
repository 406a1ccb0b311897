"""What version 0.2 of the Reconciliation Service API prescribes for responses, as JSON Schema.

Each schema is at least as strict as the published one (``0.2/schemas`` of
github.com/reconciliation-api/specs, commit 76328a4d), so valid responses are valid there, too. What
is stricter: addresses of services are complete, sizes are positive, types are objects with a name,
features have an id and a value, and a value of an extension is an entity or a text. The proposal of
properties has no published schema in version 0.2; its fields are those of the text.
"""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}


def thing(*required: str, **fields: Schema) -> Schema:
    """An object with these fields."""
    return {"type": "object", "properties": fields, "required": list(required)}


def closed(**fields: Schema) -> Schema:
    """An object with exactly these fields."""
    return {**thing(*fields, **fields), "additionalProperties": False}


def listed(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def mapping(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


REFERENCE = thing("id", "name", id=TEXT, name=TEXT)
TEMPLATE: Schema = {"type": "string", "pattern": r"\{\{id\}\}"}
PLACE = thing("service_url", "service_path", service_url=TEXT, service_path=TEXT)
PIXELS: Schema = {"type": "integer", "minimum": 1}

MANIFEST = thing(
    "versions",
    "name",
    "identifierSpace",
    "schemaSpace",
    versions={**listed(TEXT), "contains": {"const": "0.2"}},
    name=TEXT,
    identifierSpace=TEXT,
    schemaSpace=TEXT,
    view=thing("url", url=TEMPLATE),
    preview=thing("url", "width", "height", url=TEMPLATE, width=PIXELS, height=PIXELS),
    defaultTypes={**listed(REFERENCE), "uniqueItems": True},
    suggest=closed(entity=PLACE, property=PLACE, type=PLACE),
    extend=thing(propose_properties=PLACE, property_settings=listed(thing("type"))),
)

CANDIDATE = thing(
    "id",
    "name",
    "score",
    id=TEXT,
    name=TEXT,
    description=TEXT,
    score={"type": "number"},
    match={"type": "boolean"},
    type=listed(REFERENCE),
    features=listed(
        thing("id", "value", id=TEXT, value={"type": ["number", "boolean"]})
    ),
)
RESULTS = mapping(thing("result", result=listed(CANDIDATE)))

SUGGESTIONS = thing("result", result=listed(REFERENCE))

PROPERTIES = thing(
    "properties", type=TEXT, limit={"type": "integer"}, properties=listed(REFERENCE)
)

CELL: Schema = {"oneOf": [closed(id=TEXT, name=TEXT), closed(str=TEXT)]}
EXTENSION = thing(
    "meta", "rows", meta=listed(REFERENCE), rows=mapping(mapping(listed(CELL)))
)
