"""A schema document: every sub-schema by JSON pointer, base URIs, anchors, and where references lead.

Resolution follows JSON Schema core, section 8.2, and RFC 3986: `$id` (`id` in draft 4) sets the base, a
fragment is a JSON pointer into the resource or an anchor. Nothing is ever fetched. A pointer may lead
anywhere in the document, also below unknown keywords; what it finds there is indexed then.

Equal sub-schemas (same keywords that matter, in the same order, in the same resource) get the same
`signature`, so that they're compiled once: `representative` gives the first of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urljoin

from maskwright.compiler.diagnostics import Code, Diagnostic
from maskwright.compiler.schema.keywords import DEFAULT_DRAFT, KEYWORDS, Draft, Place, draft_of, is_schema
from maskwright.compiler.schema.read import invalid


class Schema:
    """One sub-schema: its value, its pointer in the document, base URI, draft and the pointer of its
    resource. `place` is the pointer for people: of a schema made from an enum's value, the enum's schema."""

    __slots__ = ("base", "draft", "place", "pointer", "resource", "value")

    def __init__(
        self, value: Any, pointer: str, base: str, draft: Draft, resource: str, place: str | None = None
    ) -> None:
        self.value, self.pointer, self.base, self.draft, self.resource = value, pointer, base, draft, resource
        self.place = pointer if place is None else place

    def __repr__(self) -> str:
        return f"Schema({self.pointer or '/'})"

    def get(self, keyword: str) -> Any:
        """The keyword's value where it has force, else None (absent, ignored beside `$ref`, or not in this
        draft)."""
        return self.value.get(keyword) if self.has(keyword) else None

    def has(self, keyword: str) -> bool:
        if not isinstance(self.value, dict) or keyword not in self.value:
            return False
        if self.draft <= Draft.D7 and keyword != "$ref" and isinstance(self.value.get("$ref"), str):
            return False
        known = KEYWORDS.get(keyword)
        return known is not None and known.known(self.draft)

    def at(self, keyword: str) -> str:
        return f"{self.pointer}/{escape(keyword)}"


def escape(token: str) -> str:
    """A reference token of RFC 6901."""
    return token.replace("~", "~0").replace("/", "~1")


class Document:
    """`faults` collects keywords of the wrong form; the root is `schemas[""]`."""

    def __init__(self, value: Any, draft: Draft | None = None) -> None:
        self.value = value
        self.schemas: dict[str, Schema] = {}
        self.resources: dict[str, Schema] = {}
        self.anchors: dict[tuple[str, str], Schema] = {}
        self.faults: list[Diagnostic] = []
        self._signatures: dict[str, int] = {}
        self._numbers: dict[Any, int] = {}
        self._first: dict[int, Schema] = {}
        start = draft or (draft_of(value.get("$schema")) if isinstance(value, dict) else None) or DEFAULT_DRAFT
        self._index(value, "", "", start, "")
        self.root = self.schemas[""]
        self.resources.setdefault("", self.root)

    # -- indexing ----------------------------------------------------------------------------------

    def _index(self, value: Any, pointer: str, base: str, draft: Draft, resource: str) -> None:
        work = [(value, pointer, base, draft, resource)]
        while work:
            schema = self._add(*work.pop())
            if schema is not None:
                below = [
                    (child, where, schema.base, schema.draft, schema.resource)
                    for _, _, where, child in _places(schema.value, schema.pointer)
                ]
                work.extend(reversed(below))

    def _add(self, value: Any, pointer: str, base: str, draft: Draft, resource: str) -> Schema | None:
        if pointer in self.schemas:
            return None
        if isinstance(value, dict):
            base, draft, resource = self._identify(value, pointer, base, draft, resource)
        schema = self.schemas[pointer] = Schema(value, pointer, base, draft, resource)
        if resource == pointer:
            self.resources.setdefault(base, schema)
        if not isinstance(value, dict):
            return None
        for name in ("$anchor", "$dynamicAnchor"):
            if isinstance(value.get(name), str) and draft >= Draft.D2019:
                self.anchors.setdefault((base, value[name]), schema)
        own = value.get("id" if draft is Draft.D4 else "$id")
        if isinstance(own, str) and own.startswith("#") and draft <= Draft.D7:
            self.anchors.setdefault((base, own[1:]), schema)
        self._check(schema)
        return schema

    def _identify(
        self, value: dict[str, Any], pointer: str, base: str, draft: Draft, resource: str
    ) -> tuple[str, Draft, str]:
        named = draft_of(value.get("$schema"))
        own = value.get("id" if (named or draft) is Draft.D4 else "$id")
        ignored = draft <= Draft.D7 and isinstance(value.get("$ref"), str)
        if not isinstance(own, str) or own.startswith("#") or ignored:
            return base, draft, resource
        return _join(base, own).partition("#")[0], named or draft, pointer

    def _check(self, schema: Schema) -> None:
        for keyword, value in schema.value.items():
            if schema.has(keyword):
                expected = KEYWORDS[keyword].check(value, schema.draft)
                if expected is not None:
                    self.faults.append(
                        invalid(
                            f"{keyword!r} must be {expected}",
                            schema.at(keyword),
                            keyword=keyword,
                            expected=expected,
                        )
                    )

    # -- references --------------------------------------------------------------------------------

    def children(self, schema: Schema) -> Iterator[tuple[str, str | int, Schema]]:
        """(keyword, key or index, sub-schema) of every keyword that has force, in the order written."""
        for keyword, key, pointer, _ in _places(schema.value, schema.pointer):
            if schema.has(keyword) and pointer in self.schemas:
                yield keyword, key, self.schemas[pointer]

    def child(self, schema: Schema, keyword: str, key: str | int | None = None) -> Schema:
        pointer = schema.at(keyword)
        return self.schemas[pointer if key is None else f"{pointer}/{escape(str(key))}"]

    def references(self, schema: Schema) -> list[Schema | Diagnostic | None]:
        """Where the schema's references lead; a diagnostic when nowhere, None when that depends on who refers
        to it."""
        out: list[Schema | Diagnostic | None] = []
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if schema.has(keyword) and isinstance(schema.value[keyword], str):
                found = self.resolve(schema, schema.value[keyword], keyword)
                out.append(found if keyword == "$ref" or isinstance(found, Diagnostic) else self._static(schema, found))
        return out

    def _static(self, schema: Schema, target: Schema) -> Schema | None:
        """The target of a dynamic reference when it has but one: one schema of the document could be
        meant."""
        recursive = schema.has("$recursiveRef")
        name = "$recursiveAnchor" if recursive else "$dynamicAnchor"
        mark = target.value.get(name) if isinstance(target.value, dict) else None
        if recursive:
            dynamic = mark is True
        else:
            dynamic = mark is not None and schema.value["$dynamicRef"].partition("#")[2] == mark
        if not dynamic:
            return target
        same = [s for s in self.schemas.values() if isinstance(s.value, dict) and s.value.get(name) == mark]
        return target if len(same) == 1 else None

    def resolve(self, schema: Schema, reference: str, keyword: str = "$ref") -> Schema | Diagnostic:
        """The schema that `reference`, written in `schema`, leads to."""
        base, _, fragment = _join(schema.base, reference).partition("#")
        fragment = unquote(fragment)
        resource = self.resources.get(base)
        found: Schema | str | None
        if resource is None:
            found = "no such resource was supplied"
        elif fragment and not fragment.startswith("/"):
            found = self.anchors.get((base, fragment)) or f"no anchor {fragment!r}"
        else:
            found = self._at(resource, fragment)
        if isinstance(found, Schema):
            return found
        return Diagnostic(
            Code.UNRESOLVED_REFERENCE,
            f"reference {reference!r} leads nowhere: {found}",
            pointer=schema.at(keyword),
            detail={"reference": reference, "uri": base},
            hint="remote references aren't fetched: put the target into the schema",
        )

    def _at(self, resource: Schema, fragment: str) -> Schema | str:
        value, pointer, near = resource.value, resource.pointer, resource
        for token in fragment.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            else:
                return f"nothing at {key!r}"
            pointer = f"{pointer}/{escape(key)}"
            near = self.schemas.get(pointer, near)
        if pointer not in self.schemas:
            if not is_schema(value, near.draft):
                return "what is there isn't a schema"
            self._index(value, pointer, near.base, near.draft, near.resource)
        return self.schemas[pointer]

    # -- equality ----------------------------------------------------------------------------------

    def representative(self, schema: Schema) -> Schema:
        """The first sub-schema seen that says the same."""
        return self._first.setdefault(self.signature(schema), schema)

    def signature(self, schema: Schema) -> int:
        found = self._signatures.get(schema.pointer)
        if found is None:
            content = self._content(schema)
            found = self._signatures[schema.pointer] = self._numbers.setdefault(content, len(self._numbers))
        return found

    def _content(self, schema: Schema) -> Any:
        if not isinstance(schema.value, dict):
            return schema.value
        below: dict[str, list[tuple[str | int, int]]] = {}
        for keyword, key, child in self.children(schema):
            below.setdefault(keyword, []).append((key, self.signature(child)))
        parts: list[Any] = [schema.draft, schema.resource]
        for keyword, value in schema.value.items():
            if schema.has(keyword) and KEYWORDS[keyword].treatment != "annotation":
                own = below.get(keyword)
                if own is None or keyword == "dependencies":
                    parts.append((keyword, json.dumps(value, default=str)))
                else:
                    parts.append((keyword, tuple(own)))
        return tuple(parts)


def _join(base: str, reference: str) -> str:
    if reference.startswith("#") or not reference:
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


def _places(value: Any, pointer: str) -> Iterator[tuple[str, str | int, str, Any]]:
    """(keyword, key, pointer, value) of everything that stands where a sub-schema does."""
    if not isinstance(value, dict):
        return
    for keyword, content in value.items():
        known = KEYWORDS.get(keyword)
        if known is None or known.place is Place.NONE:
            continue
        where = f"{pointer}/{escape(keyword)}"
        if known.place is Place.MAP and isinstance(content, dict):
            for key, child in content.items():
                if isinstance(child, dict | bool):
                    yield keyword, key, f"{where}/{escape(key)}", child
        elif isinstance(content, list) and known.place in (Place.LIST, Place.EITHER):
            for i, child in enumerate(content):
                if isinstance(child, dict | bool):
                    yield keyword, i, f"{where}/{i}", child
        elif known.place in (Place.ONE, Place.EITHER) and isinstance(content, dict | bool):
            yield keyword, "", where, content
