"""What version 0.2 of the Reconciliation Service API prescribes for responses, as JSON Schema."""

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
