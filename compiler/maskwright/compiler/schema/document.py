"""A schema document: every sub-schema by JSON pointer, base URIs, anchors, and where references lead.

Resolution follows JSON Schema core, section 8.2, and RFC 3986: `$id` (`id` in draft 4) sets the base, a
fragment is a JSON pointer into the resource or an anchor. Nothing is ever fetched: a reference out of the document
leads to a resource that the caller supplied or to a draft's meta-schema, else it's left to validation. A pointer may
lead anywhere in a resource, also below unknown keywords; what it finds there is indexed then.

`$dynamicRef` and `$recursiveRef` depend on the resources that were entered on the way (the dynamic scope). Of a way
only the outermost target of each dynamic anchor matters: a *context*. Where a document has such references, its
schemas are indexed once more for each context they're applied in, so that every reference has one target. Schemas of
a context have the keys `@n:` and the plain key; the pointer is the same.

Equal sub-schemas (same keywords that matter, in the same order, in the same resource) get the same
`signature`, so that they're compiled once: `representative` gives the first of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urljoin

from maskwright.compiler.diagnostics import Code, Diagnostic
from maskwright.compiler.schema.dialects import PLAIN, Dialect, bundled, dialect_of
from maskwright.compiler.schema.keywords import DEFAULT_DRAFT, KEYWORDS, TITLES, Draft, Place, draft_of, is_schema
from maskwright.compiler.schema.read import invalid

Context = tuple[tuple[str, str], ...]
"""(dynamic anchor, key of its outermost schema) pairs; `$recursiveAnchor` is the anchor without a name."""


class Schema:
    """One sub-schema: its value, base URI, dialect, the key of its resource and its context.

    `key` identifies it in the document, `keywords` are those that have force. `pointer` is its place for people: a JSON
    pointer, behind the URI and `#` in a supplied resource; of a schema made from an enum's value the enum's schema.
    """

    __slots__ = ("base", "context", "dialect", "draft", "key", "keywords", "pointer", "resource", "value")

    def __init__(
        self,
        value: Any,
        key: str,
        base: str,
        dialect: Dialect,
        resource: str,
        pointer: str | None = None,
        context: Context = (),
    ) -> None:
        self.value, self.key, self.base, self.dialect, self.resource = value, key, base, dialect, resource
        self.pointer, self.context, self.draft = key if pointer is None else pointer, context, dialect.draft
        self.keywords = _in_force(value, dialect)

    def __repr__(self) -> str:
        return f"Schema({self.key or '/'})"

    def get(self, keyword: str) -> Any:
        """The keyword's value where it has force, else None (absent, ignored beside `$ref`, or not in this
        dialect)."""
        return self.value.get(keyword) if self.has(keyword) else None

    def has(self, keyword: str) -> bool:
        return keyword in self.keywords

    def at(self, keyword: str) -> str:
        """The keyword's place, for people."""
        return f"{self.pointer}/{escape(keyword)}"

    def below(self, keyword: str, key: str | int | None = None) -> str:
        """The key of a sub-schema."""
        return f"{self.key}/{escape(keyword)}" + ("" if key is None else f"/{escape(str(key))}")


def _in_force(value: Any, dialect: Dialect) -> frozenset[str]:
    """Of a schema's keywords those of its dialect; up to draft 7 nothing counts beside `$ref`."""
    if not isinstance(value, dict):
        return frozenset()
    alone = dialect.draft <= Draft.D7 and isinstance(value.get("$ref"), str)
    known = ((k, KEYWORDS.get(k)) for k in (("$ref",) if alone else value))
    return frozenset(
        k for k, keyword in known if keyword is not None and keyword.known(dialect.draft) and k not in dialect.off
    )


def escape(token: str) -> str:
    """A reference token of RFC 6901."""
    return token.replace("~", "~0").replace("/", "~1")


class Document:
    """`faults` collects keywords of the wrong form, `notes` what is odd; `root` is the schema itself."""

    def __init__(self, value: Any, draft: Draft = DEFAULT_DRAFT, resources: Mapping[str, Any] | None = None) -> None:
        """`draft` is that of schemas that name none. `resources`: values by URI, without fragments."""
        self.value = value
        self.schemas: dict[str, Schema] = {}
        self.resources: dict[str, Schema] = {}
        self.anchors: dict[tuple[str, str], Schema] = {}
        self.faults: list[Diagnostic] = []
        self.notes: list[Diagnostic] = []
        self._supplied = dict(resources or {})
        self._twice: dict[tuple[str, str | None], str] = {}
        self._dynamic: dict[str, dict[str, Schema]] = {}
        self._dynamic_names: set[str] = set()
        self._contexts: dict[Context, int] = {(): 0}
        self._references: dict[str, list[Schema | Diagnostic]] = {}
        self._signatures: dict[str, int] = {}
        self._children: dict[str, list[tuple[str, str | int, Schema]]] = {}
        self._numbers: dict[Any, int] = {}
        self._first: dict[int, Schema] = {}
        self._dialects: dict[str, Dialect | None] = {}
        self._index(Schema(value, "", "", PLAIN[draft], ""))
        plain = self.schemas[""]
        self._start = plain.dialect
        self.resources.setdefault("", plain)
        self._follow()
        self.root = self._in_context(plain, ())

    # -- indexing ----------------------------------------------------------------------------------

    def _index(self, top: Schema, identified: bool = False) -> None:
        work = [top]
        while work:
            schema = work.pop()
            if schema.key in self.schemas:
                continue
            if isinstance(schema.value, dict) and not (identified and schema is top):
                schema = self._identify(schema)
            work.extend(reversed(list(self._enter(schema))))

    def _enter(self, schema: Schema) -> Iterator[Schema]:
        """Enters a schema; gives those below it."""
        value = schema.value
        self.schemas[schema.key] = schema
        first = not schema.key.startswith("@")
        if first and schema.resource == schema.key:
            self._name((schema.base, None), schema, self.resources.setdefault(schema.base, schema))
        if first and isinstance(value, dict):
            self._enter_anchors(schema)
            self._check(schema)
        for _, _, rest, child in _places(value):
            key, pointer = f"{schema.key}{rest}", f"{schema.pointer}{rest}"
            yield Schema(child, key, schema.base, schema.dialect, schema.resource, pointer, schema.context)

    def _enter_anchors(self, schema: Schema) -> None:
        value, base = schema.value, schema.base
        names = [value[k] for k in ("$anchor", "$dynamicAnchor") if schema.draft >= Draft.D2019 and k in value]
        own = value.get("id" if schema.draft is Draft.D4 else "$id")
        if isinstance(own, str) and len(own) > 1 and own[0] == "#" and schema.draft <= Draft.D7:
            names.append(own[1:])
        for name in dict.fromkeys(n for n in names if isinstance(n, str)):
            self._name((base, name), schema, self.anchors.setdefault((base, name), schema))
        dynamic = value.get("$dynamicAnchor")
        if isinstance(dynamic, str) and schema.has("$dynamicAnchor"):
            self._dynamic.setdefault(base, {}).setdefault(dynamic, schema)
        if value.get("$recursiveAnchor") is True and schema.has("$recursiveAnchor") and schema.resource == schema.key:
            self._dynamic.setdefault(base, {}).setdefault("", schema)

    def _name(self, name: tuple[str, str | None], schema: Schema, first: Schema) -> None:
        """Notes a name that is given twice; a reference to it is a fault."""
        base, anchor = name
        if first is schema or (anchor or "").startswith("/"):
            return
        self._twice[name] = schema.pointer
        what = f"anchor {anchor!r}" if anchor is not None else f"identifier {base!r}"
        self.notes.append(
            Diagnostic(
                Code.AMBIGUOUS_NAME,
                f"the {what} is given twice; the first is at {first.pointer or '/'}",
                severity="warning",
                pointer=schema.pointer,
                detail={"anchor": anchor, "uri": base, "first": first.pointer},
                hint="give each its own name: a reference to it can't be told apart",
            )
        )

    def _identify(self, schema: Schema) -> Schema:
        """With the base, dialect, resource and context that an identifier of its own gives it."""
        value = schema.value
        named = self._dialect(schema)
        dialect = named or schema.dialect
        own = value.get("id" if dialect.draft is Draft.D4 else "$id")
        ignored = dialect.draft <= Draft.D7 and isinstance(value.get("$ref"), str)
        if not isinstance(own, str) or own.startswith("#") or ignored:
            if named is None or schema.resource != schema.key:
                return schema
            return self._with(schema, schema.base, named, schema.context)
        base = _join(schema.base, own).partition("#")[0]
        context = self._extend(schema.context, base) if schema.key.startswith("@") else ()
        return self._with(schema, base, dialect, context)

    def _with(self, schema: Schema, base: str, dialect: Dialect, context: Context) -> Schema:
        return Schema(schema.value, schema.key, base, dialect, schema.key, schema.pointer, context)

    def _dialect(self, schema: Schema) -> Dialect | None:
        """What the schema's `$schema` names; None without one."""
        uri = schema.value.get("$schema")
        if not isinstance(uri, str):
            return None
        if uri not in self._dialects:
            draft = draft_of(uri)
            self._dialects[uri] = PLAIN[draft] if draft is not None else self._own_dialect(uri, schema)
        return self._dialects[uri]

    def _own_dialect(self, uri: str, schema: Schema) -> Dialect | None:
        meta, where = self._content(uri.partition("#")[0]), f"{schema.pointer}/$schema"
        if not isinstance(meta, dict):
            message = f"the schema of {uri!r} isn't known: this one is read as draft {TITLES[schema.draft]}"
            detail = {"uri": uri, "draft": TITLES[schema.draft]}
            hint = "name a draft, or supply that schema as a resource"
            self.notes.append(
                Diagnostic(Code.UNKNOWN_DIALECT, message, severity="warning", pointer=where, detail=detail, hint=hint)
            )
            return None
        dialect, unknown = dialect_of(meta)
        for vocabulary in unknown:
            message = f"the vocabulary {vocabulary!r} is required and isn't known"
            self.faults.append(
                Diagnostic(Code.UNSUPPORTED_KEYWORD, message, pointer=where, detail={"vocabulary": vocabulary})
            )
        return dialect

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

    # -- sub-schemas -------------------------------------------------------------------------------

    def children(self, schema: Schema) -> list[tuple[str, str | int, Schema]]:
        """(keyword, key or index, sub-schema) of every keyword that has force, in the order written."""
        known = self._children.get(schema.key)
        if known is None:
            below = [(k, key, self.schemas.get(f"{schema.key}{rest}")) for k, key, rest, _ in _places(schema.value)]
            known = [(k, key, child) for k, key, child in below if child is not None and schema.has(k)]
            if schema.key in self.schemas:
                self._children[schema.key] = known
        return known

    def child(self, schema: Schema, keyword: str, key: str | int | None = None) -> Schema:
        return self.schemas[schema.below(keyword, key)]

    # -- references --------------------------------------------------------------------------------

    def references(self, schema: Schema) -> list[Schema | Diagnostic | None]:
        """Where the schema's references lead; a diagnostic when nowhere, None when to a resource that nobody
        supplied."""
        known = self._references.get(schema.key)
        if known is None:
            keywords = (k for k in REFERENCES if schema.has(k) and isinstance(schema.value[k], str))
            known = self._references[schema.key] = [self.reference(schema, k) for k in keywords]
        return [None if isinstance(found, Diagnostic) and found.detail["remote"] else found for found in known]

    def reference(self, schema: Schema, keyword: str) -> Schema | Diagnostic:
        """Where one of its references leads; a diagnostic with `remote` in its detail when to such a resource."""
        return self.resolve(schema, schema.value[keyword], keyword)

    def resolve(self, schema: Schema, reference: str, keyword: str = "$ref") -> Schema | Diagnostic:
        """The schema that `reference`, written in `schema`, leads to. A diagnostic's detail has `remote`: whether
        a resource is missing."""
        found = self._resolve(schema, reference, keyword)
        if isinstance(found, Diagnostic) or not self._dynamic_names:
            return found
        return self._in_context(self._dynamic_target(found, schema, keyword), schema.context)

    def _resolve(self, schema: Schema, reference: str, keyword: str) -> Schema | Diagnostic:
        """Regardless of context."""
        base, _, fragment = _join(schema.base, reference).partition("#")
        fragment = unquote(fragment)
        here = reference.startswith("#") or not reference
        resource = self.schemas[_plain(schema.resource)] if here else self._resource(base)
        name = (base, fragment if fragment and not fragment.startswith("/") else None)
        found: Schema | str | None
        if resource is None:
            found = "no such resource was supplied"
        elif name in self._twice and (name[1] is not None or not here):
            found = f"it's given twice, also at {self._twice[name] or '/'}"
        elif name[1] is not None:
            found = self.anchors.get((base, fragment)) or f"no anchor {fragment!r}"
        else:
            found = self._at(resource, fragment)
        if isinstance(found, Schema):
            return found
        return Diagnostic(
            Code.UNRESOLVED_REFERENCE,
            f"reference {reference!r} leads nowhere: {found}",
            pointer=schema.at(keyword),
            detail={"reference": reference, "uri": base, "remote": resource is None},
            hint="remote references aren't fetched: supply the resource by its URI, or put the target into the schema"
            if resource is None
            else None,
        )

    def _resource(self, uri: str) -> Schema | None:
        """A resource of the documents read so far, or of one that is read now."""
        found = self.resources.get(uri)
        if found is None and uri in self._supplied:
            return self._read(uri)
        if found is None and self._supplied:
            for other in list(self._supplied):  # an identifier inside of one may be meant
                self._read(other)
            found = self.resources.get(uri)
        if found is None and bundled(uri) is not None:
            return self._read(uri)
        return found

    def _read(self, uri: str) -> Schema:
        content = self._content(uri)
        self._supplied.pop(uri, None)
        top = Schema(content, f"{uri}#", uri, self._start, f"{uri}#")
        self._index(top)
        return self.resources.setdefault(uri, self.schemas[top.key])

    def _content(self, uri: str) -> Any:
        return self._supplied[uri] if uri in self._supplied else bundled(uri)

    def _at(self, resource: Schema, fragment: str) -> Schema | str:
        value, near, rest = resource.value, resource, ""
        for token in fragment.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            else:
                return f"nothing at {key!r}"
            rest = f"{rest}/{escape(key)}"
            near = self.schemas.get(resource.key + rest, near)
        if resource.key + rest not in self.schemas:
            if not is_schema(value, near.draft):
                return "what is there isn't a schema"
            key, pointer = resource.key + rest, resource.pointer + rest
            self._index(Schema(value, key, near.base, near.dialect, near.resource, pointer))
        return self.schemas[resource.key + rest]

    # -- contexts ----------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Reads every resource that references lead to, and learns which dynamic anchors matter."""
        seen = 0
        while seen < len(self.schemas):
            for schema in list(self.schemas.values())[seen:]:
                seen += 1
                for keyword in REFERENCES:
                    if schema.has(keyword) and isinstance(schema.value[keyword], str):
                        self._resolve(schema, schema.value[keyword], keyword)
                        if keyword == "$dynamicRef":
                            self._dynamic_names.add(schema.value[keyword].partition("#")[2])
                        elif keyword == "$recursiveRef":
                            self._dynamic_names.add("")

    def _extend(self, context: Context, base: str) -> Context:
        """The context once a resource is entered: what was met further out goes before."""
        known = dict(context)
        for name, schema in self._dynamic.get(base, {}).items():
            if name in self._dynamic_names:
                known.setdefault(name, schema.key)
        return tuple(sorted(known.items()))

    def _dynamic_target(self, found: Schema, schema: Schema, keyword: str) -> Schema:
        """The outermost schema with the anchor that a dynamic reference leads to, if it leads to one."""
        if keyword == "$ref":
            return found
        name = schema.value[keyword].partition("#")[2]
        if self._dynamic.get(found.base, {}).get(name) is not found:
            return found
        outer = dict(schema.context).get(name)
        return found if outer is None else self.schemas[outer]

    def _in_context(self, schema: Schema, context: Context) -> Schema:
        """A schema as it's met from a context."""
        if not self._dynamic_names:
            return schema
        context = self._extend(context, schema.base)
        number = self._contexts.setdefault(context, len(self._contexts))
        key = f"@{number}:{schema.key}"
        if key not in self.schemas:
            resource = f"@{number}:{schema.resource}"
            view = Schema(schema.value, key, schema.base, schema.dialect, resource, schema.pointer, context)
            self._index(view, identified=True)
        return self.schemas[key]

    # -- equality ----------------------------------------------------------------------------------

    def representative(self, schema: Schema) -> Schema:
        """The first sub-schema seen that says the same."""
        return self._first.setdefault(self.signature(schema), schema)

    def signature(self, schema: Schema) -> int:
        found = self._signatures.get(schema.key)
        if found is None:
            content = self._says(schema)
            found = self._signatures[schema.key] = self._numbers.setdefault(content, len(self._numbers))
        return found

    def _says(self, schema: Schema) -> Any:
        if not isinstance(schema.value, dict):
            return schema.value
        below: dict[str, list[tuple[str | int, int]]] = {}
        for keyword, key, child in self.children(schema):
            below.setdefault(keyword, []).append((key, self.signature(child)))
        parts: list[Any] = [schema.dialect, schema.resource]
        for keyword, value in schema.value.items():
            if schema.has(keyword) and KEYWORDS[keyword].treatment != "annotation":
                own = below.get(keyword)
                if own is None or keyword == "dependencies":
                    parts.append((keyword, json.dumps(value, default=str)))
                else:
                    parts.append((keyword, tuple(own)))
        return tuple(parts)


REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def _plain(key: str) -> str:
    """The key of the same schema regardless of context."""
    return key.partition(":")[2] if key.startswith("@") else key


def _join(base: str, reference: str) -> str:
    if reference.startswith("#") or not reference:
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


def _places(value: Any) -> Iterator[tuple[str, str | int, str, Any]]:
    """(keyword, key, rest of the pointer, value) of everything that stands where a sub-schema does."""
    if not isinstance(value, dict):
        return
    for keyword, content in value.items():
        known = KEYWORDS.get(keyword)
        if known is None or known.place is Place.NONE:
            continue
        where = f"/{escape(keyword)}"
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
