"""Atoms about strings, objects and arrays. Object and array atoms have progress: they're rewritten member by
member.

For each member of an object (item of an array) an atom first sees the key (`on_key`, `on_item`): it becomes
another formula, a constant when that decides it. Then it may submit what the member's value has to satisfy
(`submit`): a list of schemas, and the formulas it becomes when they all hold or not. At the end `finish`
makes it a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from maskwright.compiler.regular import Dfa
from maskwright.compiler.schema.document import Schema
from maskwright.compiler.schema.formula import FALSE, TRUE, Formula, Space

if TYPE_CHECKING:
    from collections.abc import Mapping

# -- strings ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Length:
    """At least `low` characters and, unless None, at most `high`."""

    low: int
    high: int | None

    def contains(self, length: int) -> bool:
        return self.low <= length and (self.high is None or length <= self.high)


@dataclass(frozen=True, slots=True)
class StringSet:
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class Matches:
    """The decoded characters are in a regular language; `source` is the pattern or format, for people.

    With `possible`, texts in it that aren't in `language` may match or not: see truth.py.
    """

    source: str
    language: Dfa
    possible: Dfa | None = None
    is_format: bool = False


# -- any value -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Holds:
    """The schema holds for the value, whatever its type. Expanded by type before any byte of it is judged."""

    schema: Schema


# -- objects ---------------------------------------------------------------------------------------


class Key(NamedTuple):
    """A member's key: one of the names the frame knows, or (None) another, with the key languages that hold
    it."""

    name: str | None
    languages: frozenset[Formula] = frozenset()
    """Of the key languages watched, those that hold this key. Formulas over string atoms."""


@dataclass(frozen=True, slots=True)
class Has:
    """The object has this member."""

    name: str

    def on_key(self, key: Key, me: Formula, space: Space) -> Formula:
        return TRUE if key.name == self.name else me

    def submit(self, key: Key) -> tuple[Schema, ...]:
        return ()

    def finish(self) -> bool:
        return False


class Members:
    """What `properties`, `patternProperties` and `additionalProperties` of one schema ask of members;
    compared by identity."""

    def __init__(
        self,
        properties: Mapping[str, Schema],
        patterns: tuple[tuple[Formula, Schema], ...],
        additional: Schema | None,
    ) -> None:
        """`patterns`: (language of keys, schema). No `additional`: anything."""
        self.properties, self.patterns, self.additional = properties, patterns, additional

    def __repr__(self) -> str:
        return f"members({', '.join(self.properties)})"

    def schemas(self, key: Key) -> tuple[Schema, ...]:
        found = [self.properties[key.name]] if key.name is not None and key.name in self.properties else []
        languages = key.languages
        found += [schema for language, schema in self.patterns if language is TRUE or language in languages]
        if not found and self.additional is not None:
            found = [self.additional]
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Props:
    """Every member's value satisfies what `members` assigns to its key."""

    members: Members

    def on_key(self, key: Key, me: Formula, space: Space) -> Formula:
        return FALSE if any(s.value is False for s in self.members.schemas(key)) else me

    def submit(self, key: Key) -> tuple[Schema, ...]:
        return self.members.schemas(key)

    def finish(self) -> bool:
        return True

    def outcomes(self, key: Key, me: Formula, space: Space, final: bool) -> tuple[Formula, Formula]:
        """What the atom becomes when the value satisfies what was submitted, and when not. `final`: a failure can
        only be used against the text, so an undeclared key's may be taken as one for good."""
        lost = FALSE if final or key.name is not None else space.atom(Broken(self.members, key.languages))
        return me, lost


@dataclass(frozen=True, slots=True)
class Broken:
    """`Props` after the value of an undeclared key failed. The key may come again, and readers keep the last value:
    after another value of a key of the same languages that doesn't fail (`replaced`), nobody can tell, and the text
    may not end where that matters."""

    members: Members
    languages: frozenset[Formula]
    replaced: bool = False

    def on_key(self, key: Key, me: Formula, space: Space) -> Formula:
        return FALSE if any(s.value is False for s in self.members.schemas(key)) else me

    def submit(self, key: Key) -> tuple[Schema, ...]:
        return self.members.schemas(key) if key.name is None or self.replaced else ()

    def outcomes(self, key: Key, me: Formula, space: Space, final: bool) -> tuple[Formula, Formula]:
        if key.name is not None:
            return me, FALSE
        if key.languages == self.languages:
            held = me if self.replaced else space.atom(Broken(self.members, self.languages, True))
            return held, space.atom(Broken(self.members, self.languages)) if self.replaced else me
        return me, space.atom(Broken(self.members, key.languages)) if self.replaced else me

    def finish(self) -> bool | None:
        return None if self.replaced else False


@dataclass(frozen=True, slots=True)
class Names:
    """Every key is in a language (`propertyNames`), a formula over string atoms."""

    language: Formula

    def on_key(self, key: Key, me: Formula, space: Space) -> Formula:
        return me if self.language in key.languages else FALSE

    def submit(self, key: Key) -> tuple[Schema, ...]:
        return ()

    def finish(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class MemberCount:
    """At least so many members. Undeclared keys may repeat unnoticed, so two counts go down: `low` takes all
    undeclared keys as one (`other`: it has been counted), `high` takes each as another. The text may not end
    while they disagree."""

    low: int
    high: int
    other: bool = False

    def on_key(self, key: Key, me: Formula, space: Space) -> Formula:
        undeclared = key.name is None
        low = self.low - (not (undeclared and self.other))
        if low <= 0:
            return TRUE
        return space.atom(MemberCount(low, max(0, self.high - 1), self.other or undeclared))

    def submit(self, key: Key) -> tuple[Schema, ...]:
        return ()

    def finish(self) -> bool | None:
        return False if self.high else None


ObjectAtom = Has | Props | Broken | Names | MemberCount

# -- arrays ----------------------------------------------------------------------------------------


Alternatives = tuple[Schema, ...]
"""One of the schemas has to hold; of none: anything goes."""


@dataclass(frozen=True, slots=True)
class Items:
    """Item i satisfies prefix[i], later ones `rest`; `place` items have been read."""

    prefix: tuple[Alternatives, ...]
    rest: Alternatives
    place: int = 0

    def on_item(self, me: Formula, space: Space) -> Formula:
        return me

    def submit(self) -> Alternatives:
        return self.prefix[self.place] if self.place < len(self.prefix) else self.rest

    def outcome(self, held: bool, me: Formula, space: Space) -> Formula:
        if not held:
            return FALSE
        return self.after(space) if self.place < len(self.prefix) else me

    def after(self, space: Space) -> Formula:
        place = self.place + 1
        if place == len(self.prefix) and not self.rest:
            return TRUE
        return space.atom(Items((), self.rest) if place == len(self.prefix) else Items(self.prefix, self.rest, place))

    def finish(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class AtMostItems:
    count: int

    def on_item(self, me: Formula, space: Space) -> Formula:
        return space.atom(AtMostItems(self.count - 1)) if self.count else FALSE

    def submit(self) -> Alternatives:
        return ()

    def outcome(self, held: bool, me: Formula, space: Space) -> Formula:
        return me

    def finish(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class AtLeastItems:
    count: int

    def on_item(self, me: Formula, space: Space) -> Formula:
        return space.atom(AtLeastItems(self.count - 1)) if self.count > 1 else TRUE

    def submit(self) -> Alternatives:
        return ()

    def outcome(self, held: bool, me: Formula, space: Space) -> Formula:
        return me

    def finish(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Contains:
    """Between `low` and `high` more items (None: no bound) satisfy the schema."""

    schema: Schema
    low: int
    high: int | None

    def on_item(self, me: Formula, space: Space) -> Formula:
        return me

    def submit(self) -> Alternatives:
        return (self.schema,)

    def outcome(self, held: bool, me: Formula, space: Space) -> Formula:
        if not held:
            return me
        if self.high == 0:
            return FALSE
        low, high = max(0, self.low - 1), None if self.high is None else self.high - 1
        return TRUE if not low and high is None else space.atom(Contains(self.schema, low, high))

    def finish(self) -> bool:
        return self.low == 0


@dataclass(frozen=True, slots=True)
class Far:
    """Stands for a bound on the number of items that a chunk of items can't reach; `ends`: the array may end
    before."""

    number: int
    ends: bool

    def on_item(self, me: Formula, space: Space) -> Formula:
        return me

    def submit(self) -> Alternatives:
        return ()

    def outcome(self, held: bool, me: Formula, space: Space) -> Formula:
        return me

    def finish(self) -> bool:
        return self.ends


ArrayAtom = Items | AtMostItems | AtLeastItems | Contains | Far
