"""Dialects: which keywords have force under a `$schema`, and the meta-schemas that come with a package.

A `$schema` names a draft, or a meta-schema of somebody's own whose `$vocabulary` says which vocabularies count
(JSON Schema core 2019-09 and 2020-12, section 8.1.2). Keywords of a standard vocabulary that isn't listed have no
force. A vocabulary that is required and that nobody here knows is a fault.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maskwright.compiler.schema.keywords import DEFAULT_DRAFT, KEYWORDS, Draft, draft_of

_EXTRA: dict[str, tuple[str, ...]] = {
    "validation": (
        *("type", "enum", "const", "required", "minProperties", "maxProperties", "dependentRequired", "minItems"),
        *("maxItems", "uniqueItems", "minContains", "maxContains", "minLength", "maxLength", "pattern", "minimum"),
        *("maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    ),
    "applicator": (
        *("properties", "patternProperties", "additionalProperties", "propertyNames", "dependentSchemas", "items"),
        *("prefixItems", "additionalItems", "contains", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
        "dependencies",
    ),
    "unevaluated": ("unevaluatedProperties", "unevaluatedItems"),
    "format": ("format",),
}
"""Keywords by vocabulary. `core` is always in force; the others are annotations."""
_BASE = {
    Draft.D2019: "https://json-schema.org/draft/2019-09/vocab/",
    Draft.D2020: "https://json-schema.org/draft/2020-12/vocab/",
}
_NAMES: tuple[str, ...] = ("core", "applicator", "unevaluated", "validation", "meta-data", "content", "format")
_NAMES += ("format-annotation", "format-assertion")


@dataclass(frozen=True)
class Dialect:
    """A draft, the keywords of it that have no force, and whether `format` has to be judged whatever the options."""

    draft: Draft
    off: frozenset[str] = frozenset()
    asserts_formats: bool = False


PLAIN = {draft: Dialect(draft) for draft in Draft}


def dialect_of(meta: Mapping[str, Any]) -> tuple[Dialect, list[str]]:
    """The dialect that a meta-schema describes, and the vocabularies it requires that aren't known."""
    draft = draft_of(meta.get("$schema")) or DEFAULT_DRAFT
    vocabularies = meta.get("$vocabulary")
    if draft < Draft.D2019 or not isinstance(vocabularies, dict):
        return PLAIN[draft], []
    base = _BASE[draft]
    known = {f"{base}{name}": name for name in _NAMES}
    named = {known[uri]: required for uri, required in vocabularies.items() if uri in known}
    unknown = [uri for uri, required in vocabularies.items() if uri not in known and required is True]
    if draft is Draft.D2019 and "applicator" in named:
        named["unevaluated"] = True
    asserts = "format-assertion" in named or named.get("format") is True
    if any(name.startswith("format") for name in named):
        named["format"] = True
    off = frozenset(k for name, keywords in _EXTRA.items() if name not in named for k in keywords if k in KEYWORDS)
    return Dialect(draft, off, asserts), unknown


@functools.cache
def bundled(uri: str) -> Any:
    """The drafts' own meta-schemas by URI without fragment, as the package jsonschema-specifications has them; None
    for any other URI."""
    from jsonschema_specifications import REGISTRY

    for name in (uri, f"{uri}#"):
        found = REGISTRY.get(name)
        if found is not None:
            return found.contents
    return None
