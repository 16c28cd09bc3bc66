"""What plans need to know of Spark's types, given as JSON values."""

from __future__ import annotations


def is_orderable(json_type: object) -> bool:
    """Whether ORDER BY takes the type: maps and variants have no order."""
    if isinstance(json_type, str):
        return json_type not in ("variant", "calendarinterval")
    if not isinstance(json_type, dict):
        return False
    if json_type["type"] == "array":
        return is_orderable(json_type["elementType"])
    if json_type["type"] == "struct":
        return all(is_orderable(field["type"]) for field in json_type["fields"])
    return False


def sql_type(json_type: object) -> str:
    """The type as SQL writes it in a CAST."""
    simple = {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT", "void": "VOID"}
    if isinstance(json_type, str):
        return simple.get(json_type, json_type.upper())
    assert isinstance(json_type, dict)
    if json_type["type"] == "array":
        return f"ARRAY<{sql_type(json_type['elementType'])}>"
    if json_type["type"] == "map":
        return f"MAP<{sql_type(json_type['keyType'])}, {sql_type(json_type['valueType'])}>"
    fields = ", ".join(f"`{f['name'].replace('`', '``')}`: {sql_type(f['type'])}" for f in json_type["fields"])
    return f"STRUCT<{fields}>"
