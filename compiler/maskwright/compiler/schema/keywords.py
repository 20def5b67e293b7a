"""The keyword tables: what each keyword is in each draft, the form its value must have, and where sub-schemas
are.

`KEYWORDS` lists everything known. A keyword is *enforced* (the automaton judges it), an *annotation* (no
effect on validity), or *refused* (it would have to be enforced and isn't). A keyword in no table is an
annotation, and reported. The support page is written from these tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import Any


class Draft(IntEnum):
    D4 = 4
    D6 = 6
    D7 = 7
    D2019 = 2019
    D2020 = 2020


DEFAULT_DRAFT = Draft.D2020
TITLES = {Draft.D4: "4", Draft.D6: "6", Draft.D7: "7", Draft.D2019: "2019-09", Draft.D2020: "2020-12"}
DRAFTS = {title: draft for draft, title in TITLES.items()}
_SCHEMA_URIS = {
    "json-schema.org/draft-04/schema": Draft.D4,
    "json-schema.org/draft-06/schema": Draft.D6,
    "json-schema.org/draft-07/schema": Draft.D7,
    "json-schema.org/draft/2019-09/schema": Draft.D2019,
    "json-schema.org/draft/2020-12/schema": Draft.D2020,
    "json-schema.org/schema": Draft.D2020,
}
TYPES = ("null", "boolean", "object", "array", "number", "string", "integer")


def draft_of(uri: object) -> Draft | None:
    """The draft that a `$schema` names, None when it's none of them."""
    if not isinstance(uri, str):
        return None
    return _SCHEMA_URIS.get(re.sub(r"^https?://", "", uri).rstrip("#"))


# -- forms -----------------------------------------------------------------------------------------

Check = Callable[[Any, Draft], str | None]
"""Says what is expected, or None when the value has the right form."""


def is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    return is_number(value) and (isinstance(value, int) or not value or fraction_places(value) == 0)


def fraction_places(value: int | Decimal) -> int:
    """Digits behind the point."""
    exponent = shortest(value).as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)


def shortest(value: int | Decimal) -> Decimal:
    """The number without zeros at the end of its digits. Unlike `Decimal.normalize` it never rounds."""
    sign, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    end = len(digits)
    while end and not digits[end - 1]:
        end -= 1
    return Decimal((sign, digits[:end], exponent + len(digits) - end)) if end else Decimal(0)


def is_schema(value: Any, draft: Draft) -> bool:
    return isinstance(value, dict) or (isinstance(value, bool) and draft > Draft.D4)


def _string(value: Any, draft: Draft) -> str | None:
    return None if isinstance(value, str) else "a string"


def _boolean(value: Any, draft: Draft) -> str | None:
    return None if isinstance(value, bool) else "a boolean"


def _count(value: Any, draft: Draft) -> str | None:
    return None if is_integer(value) and value >= 0 else "a non-negative integer"


def _number(value: Any, draft: Draft) -> str | None:
    return None if is_number(value) else "a number"


def _exclusive(value: Any, draft: Draft) -> str | None:
    return _boolean(value, draft) if draft is Draft.D4 else _number(value, draft)


def _positive(value: Any, draft: Draft) -> str | None:
    return None if is_number(value) and value > 0 else "a number above 0"


def _types(value: Any, draft: Draft) -> str | None:
    names = value if isinstance(value, list) else [value]
    good = names and all(isinstance(n, str) and n in TYPES for n in names) and len(set(names)) == len(names)
    return None if good else f"one of {', '.join(TYPES)}, or a list of different ones"


def _enum(value: Any, draft: Draft) -> str | None:
    return None if isinstance(value, list) else "a list"


def _any(value: Any, draft: Draft) -> str | None:
    return None


def _names(value: Any, draft: Draft) -> str | None:
    good = isinstance(value, list) and all(isinstance(n, str) for n in value) and len(set(value)) == len(value)
    return None if good else "a list of different strings"


def _schema(value: Any, draft: Draft) -> str | None:
    return None if is_schema(value, draft) else "a schema"


def _schema_list(value: Any, draft: Draft) -> str | None:
    good = isinstance(value, list) and value and all(is_schema(v, draft) for v in value)
    return None if good else "a list of schemas, not empty"


def _schema_map(value: Any, draft: Draft) -> str | None:
    good = isinstance(value, dict) and all(is_schema(v, draft) for v in value.values())
    return None if good else "an object whose values are schemas"


def _items(value: Any, draft: Draft) -> str | None:
    if draft >= Draft.D2020:
        return _schema(value, draft)
    good = is_schema(value, draft) or (isinstance(value, list) and all(is_schema(v, draft) for v in value))
    return None if good or isinstance(value, bool) else "a schema or a list of schemas"


def _additional(value: Any, draft: Draft) -> str | None:
    return None if isinstance(value, dict | bool) else "a schema or a boolean"


def _dependencies(value: Any, draft: Draft) -> str | None:
    good = isinstance(value, dict) and all(
        is_schema(v, draft) or (isinstance(v, list) and _names(v, draft) is None) for v in value.values()
    )
    return None if good else "an object whose values are schemas or lists of names"


def _name_lists(value: Any, draft: Draft) -> str | None:
    good = isinstance(value, dict) and all(_names(v, draft) is None for v in value.values())
    return None if good else "an object whose values are lists of different strings"


def _object(value: Any, draft: Draft) -> str | None:
    return None if isinstance(value, dict) else "an object"


# -- tables ----------------------------------------------------------------------------------------


class Place(IntEnum):
    """Where a keyword's sub-schemas are."""

    NONE = 0
    ONE = 1
    """The value is a schema (if it's an object or boolean at all)."""
    LIST = 2
    MAP = 3
    EITHER = 4
    """A schema or a list of schemas."""


@dataclass(frozen=True)
class Keyword:
    """`since`..`until` are the drafts that know it. `in_place`: its sub-schemas judge the same value."""

    check: Check
    place: Place = Place.NONE
    in_place: bool = False
    since: Draft = Draft.D4
    until: Draft = Draft.D2020
    treatment: str = "enforced"

    def known(self, draft: Draft) -> bool:
        return self.since <= draft <= self.until


def _note(check: Check, since: Draft = Draft.D4, until: Draft = Draft.D2020) -> Keyword:
    return Keyword(check, since=since, until=until, treatment="annotation")


KEYWORDS: dict[str, Keyword] = {
    "type": Keyword(_types),
    "enum": Keyword(_enum),
    "const": Keyword(_any, since=Draft.D6),
    "properties": Keyword(_schema_map, Place.MAP),
    "patternProperties": Keyword(_schema_map, Place.MAP),
    "additionalProperties": Keyword(_additional, Place.ONE),
    "propertyNames": Keyword(_schema, Place.ONE, since=Draft.D6),
    "required": Keyword(_names),
    "minProperties": Keyword(_count),
    "maxProperties": Keyword(_count),
    "dependentRequired": Keyword(_name_lists, since=Draft.D2019),
    "dependentSchemas": Keyword(_schema_map, Place.MAP, in_place=True, since=Draft.D2019),
    "dependencies": Keyword(_dependencies, Place.MAP, in_place=True),
    "items": Keyword(_items, Place.EITHER),
    "prefixItems": Keyword(_schema_list, Place.LIST, since=Draft.D2020),
    "additionalItems": Keyword(_additional, Place.ONE, until=Draft.D2019),
    "minItems": Keyword(_count),
    "maxItems": Keyword(_count),
    "uniqueItems": Keyword(_boolean),
    "contains": Keyword(_schema, Place.ONE, since=Draft.D6),
    "minContains": Keyword(_count, since=Draft.D2019),
    "maxContains": Keyword(_count, since=Draft.D2019),
    "minLength": Keyword(_count),
    "maxLength": Keyword(_count),
    "pattern": Keyword(_string),
    "format": Keyword(_string),
    "minimum": Keyword(_number),
    "maximum": Keyword(_number),
    "exclusiveMinimum": Keyword(_exclusive),
    "exclusiveMaximum": Keyword(_exclusive),
    "multipleOf": Keyword(_positive),
    "allOf": Keyword(_schema_list, Place.LIST, in_place=True),
    "anyOf": Keyword(_schema_list, Place.LIST, in_place=True),
    "oneOf": Keyword(_schema_list, Place.LIST, in_place=True),
    "not": Keyword(_schema, Place.ONE, in_place=True),
    "if": Keyword(_schema, Place.ONE, in_place=True, since=Draft.D7),
    "then": Keyword(_schema, Place.ONE, in_place=True, since=Draft.D7),
    "else": Keyword(_schema, Place.ONE, in_place=True, since=Draft.D7),
    "$ref": Keyword(_string),
    "$dynamicRef": Keyword(_string, since=Draft.D2020),
    "$recursiveRef": Keyword(_string, since=Draft.D2019, until=Draft.D2019),
    "unevaluatedProperties": Keyword(_schema, Place.ONE, since=Draft.D2019),
    "unevaluatedItems": Keyword(_schema, Place.ONE, since=Draft.D2019),
    "$defs": Keyword(_schema_map, Place.MAP, since=Draft.D2019, treatment="annotation"),
    "definitions": Keyword(_schema_map, Place.MAP, treatment="annotation"),
    "contentSchema": Keyword(_schema, Place.ONE, since=Draft.D2019, treatment="annotation"),
    "$id": _note(_string, Draft.D6),
    "id": _note(_string, Draft.D4, Draft.D4),
    "$anchor": _note(_string, Draft.D2019),
    "$dynamicAnchor": _note(_string, Draft.D2020),
    "$recursiveAnchor": _note(_boolean, Draft.D2019, Draft.D2019),
    "$vocabulary": _note(_object, Draft.D2019),
    "$schema": _note(_string),
    "$comment": _note(_any, Draft.D6),
    "title": _note(_any),
    "description": _note(_any),
    "default": _note(_any),
    "examples": _note(_any, Draft.D6),
    "deprecated": _note(_any, Draft.D2019),
    "readOnly": _note(_any, Draft.D6),
    "writeOnly": _note(_any, Draft.D6),
    "contentMediaType": _note(_any, Draft.D7),
    "contentEncoding": _note(_any, Draft.D7),
}
"""`definitions`, `$defs` and `dependencies` are read in every draft: writers mix them."""

MAX_VALUES = 10
"""Values that an item under `uniqueItems` may have: there are two to that power of sets of values seen."""
MAX_DIVISOR = 20_000
"""Remainders by a `multipleOf`: a state for each."""

_UNKNOWN = "a residual keyword is inside, and whether it fails matters as much as whether it holds"
_LENGTH = 'it takes too many states beside a pattern or format; only with `residual="allow"`, else the limit refuses it'
RESIDUAL: dict[str, str] = {
    "uniqueItems": f"an item may have more than {MAX_VALUES} values, and there may be more than one item",
    "minProperties": "it needs more than one key that the schema doesn't name, and those may repeat",
    "multipleOf": f"it takes more than {MAX_DIVISOR:,} remainders to tell",
    "$ref": "its target is a resource that nobody supplied",
    "$dynamicRef": "its target is a resource that nobody supplied",
    "$recursiveRef": "its target is a resource that nobody supplied",
    "unevaluatedProperties": "what is evaluated depends on a residual keyword",
    "unevaluatedItems": "what is evaluated depends on a residual keyword",
    "not": "a residual keyword is inside that has to hold elsewhere",
    "oneOf": _UNKNOWN,
    "if": _UNKNOWN,
    "contains": _UNKNOWN,
    "minLength": _LENGTH,
    "maxLength": _LENGTH,
}
"""Where an enforced keyword is residual. With `residual="allow"` an applicator around one of these may be so too."""

ENFORCED = frozenset(k for k, v in KEYWORDS.items() if v.treatment == "enforced")
