"""The frame of an object.

Names that the schemas declare or mention have a canonical order; what may follow depends on the position in
it. States:

    ("start",) ("open",)              before and after the brace
    ("key", node, choices, other)     inside a key: the node of the trie of all names; the names that may
                                      still be meant (`Choices`); the formulas before an undeclared key
    ("colon", key, formulas) ("value", key, formulas)
    ("after", position, formulas) ("next", position, formulas)        after a value, after a comma
    ("end", verdict)

`choices` holds results, not the way there, so half-written keys are shared between positions: n optional
properties cost about the total length of their names. What may come at a position is what may come at the next one,
and its own name: one more path in a persistent trie. A key that leaves the trie is undeclared: the rest of
it is a called frame, entered inside the key, whose verdict says which key languages (patterns) hold it.

Members that must be present don't appear in formulas: the first of them not yet written bounds what may come
next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from maskwright.compiler.automaton.explore import Call, Frame, Ranges, State, Stay, Transition
from maskwright.compiler.schema.atoms import Broken, Has, Key, Members, Names, Props
from maskwright.compiler.schema.container import ContainerFrame
from maskwright.compiler.schema.formula import FALSE, TRUE, Formula, conjuncts, negated
from maskwright.compiler.schema.goals import Formulas, Plan, Submission, plan
from maskwright.compiler.schema.layout import Nest
from maskwright.compiler.schema.sources import Sources
from maskwright.compiler.schema.strings import QUOTE, spell, without

if TYPE_CHECKING:
    from maskwright.compiler.schema.values import Values

Ahead = tuple[Formulas, int]
"""The formulas once the key is known, and the position after its member."""


class Choices:
    """The names that may be meant below a node of the trie: by next byte the choices there, behind a closing quote what
    lies ahead. Compared by identity; an `ObjectFrame` makes one of a kind."""

    __slots__ = ("below",)

    def __init__(self, below: dict[int, Choices | Ahead]) -> None:
        self.below = below


Following = tuple[Choices | None, Ahead | None]
"""What may come next: names, and (before its key is known) an undeclared key."""


class NameTrie:
    """The canonical spellings of names, each ended by its closing quote. A node is a number; a leaf is ~index
    of the name."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.spelled = [spell(n) for n in names]
        self.edges: list[dict[int, int]] = [{}]
        self.paths: list[bytes] = [b""]
        for i, text in enumerate(self.spelled):
            node = 0
            for depth, byte in enumerate(text[:-1]):
                n = self.edges[node].setdefault(byte, len(self.edges))
                if n == len(self.edges):
                    self.edges.append({})
                    self.paths.append(text[: depth + 1])
                node = n
            self.edges[node][QUOTE] = ~i


class ObjectFrame(ContainerFrame):
    """Judged by `must` and `watched`, formulas over object atoms. Compared by identity; `Values` makes one of
    a kind."""

    def __init__(
        self,
        values: Values,
        must: Formula,
        watched: Formulas,
        names: tuple[str, ...],
        nest: Nest,
        pointer: str,
        order: Sources = (),
    ) -> None:
        super().__init__(values, "object", nest, pointer, order)
        self.names, self.trie = names, NameTrie(names)
        self.position = {n: i for i, n in enumerate(names)}
        self.languages = _languages((must, *watched))
        self.keys = [self._key(n) for n in names]
        needed = [a for a in conjuncts(must) if isinstance(a.payload, Has)]
        self.needed = sorted(self.position[a.payload.name] for a in needed)  # type: ignore[attr-defined]
        present = dict.fromkeys(needed, TRUE)
        self.first = tuple(self.space.assign(f, present) for f in (must, *watched))
        self._next_needed = self._bounds()
        self._taken: dict[tuple[Formulas, Key], Formulas | None] = {}
        self._plans: dict[tuple[Formulas, Key], Plan] = {}
        self._against: dict[Formulas, frozenset[Formula]] = {}
        self._members: dict[tuple[int, Formulas], Following] = {}
        self._choices: dict[Hashable, Choices] = {}
        self._last: dict[Members, int] = {}
        self._rests: dict[int, tuple[Frame, State | None, Ranges] | None] = {}
        self.begin = 0

    def _key(self, name: str) -> Key | None:
        """The name as a key; None when a language can't say whether it holds it, so it can't be written."""
        verdict = self.values.languages.decide(TRUE, self.languages, name)
        if verdict is None:
            return None
        return Key(name, frozenset(f for f, held in zip(self.languages, verdict, strict=True) if held))

    def _bounds(self) -> list[int]:
        """For each position the first needed one from there on; the number of names when there's none."""
        out, bound = [0] * (len(self.names) + 1), len(self.names)
        needed = set(self.needed)
        for i in range(len(self.names), -1, -1):
            if i in needed:
                bound = i
            out[i] = bound
        return out

    # -- what a key does to the formulas -----------------------------------------------------------

    def take(self, formulas: Formulas, key: Key) -> Formulas | None:
        """The formulas once a member's key is known; None when its value can't be right."""
        at = (formulas, key)
        if at not in self._taken:
            self._taken[at] = self._take(formulas, key)
        return self._taken[at]

    def _take(self, formulas: Formulas, key: Key) -> Formulas | None:
        what = {}
        for atom in self.atoms(formulas):
            became = atom.payload.on_key(key, atom, self.space)  # type: ignore[attr-defined]
            if became is not atom:
                what[atom] = became
        out = self.assign(formulas, what)
        if out[0] is FALSE or self.plan(out, key).goal.must is FALSE:
            return None
        return out

    def plan(self, formulas: Formulas, key: Key) -> Plan:
        """What the member's value is asked."""
        at = (formulas, key)
        found = self._plans.get(at)
        if found is None:
            submissions = []
            against = self._used_against(formulas)
            for atom in self.asking(formulas):
                payload = atom.payload
                if not isinstance(payload, Props | Broken):
                    continue
                schemas = payload.submit(key)
                asked = self.space.all(self.values.lowering.holds(s) for s in schemas)
                held, failed = payload.outcomes(key, atom, self.space, atom not in against)
                if asked is not TRUE or held is not atom:
                    submissions.append(Submission(atom, asked, held, failed, schemas))
            found = self._plans[at] = plan(self.space, formulas[0], submissions)
        return found

    def _used_against(self, formulas: Formulas) -> frozenset[Formula]:
        """The atoms whose failure can make a formula true, or is watched."""
        found = self._against.get(formulas)
        if found is None:
            found = self._against[formulas] = frozenset(negated(formulas[0])).union(*(f.atoms for f in formulas[1:]))
        return found

    def members(self, position: int, formulas: Formulas) -> Following:
        """The names that may come next with the formulas after them, and those before an undeclared key (or
        None)."""
        # On to a position that's known, or where only an undeclared key may come, and back with what may come at each.
        way: list[tuple[tuple[int, Formulas], Formulas | None]] = []
        at: tuple[int, Formulas] | None = (position, formulas)
        found: Following = (None, None)
        while at is not None:
            known = self._members.get(at)
            if known is not None:
                found = known
                break
            position, formulas = at
            if position == len(self.names):
                found = self._members[at] = None, None if self._closed(formulas) else at[::-1]
                break
            key = self.keys[position]
            way.append((at, None if key is None else self.take(formulas, key)))
            passed = None if self._next_needed[position] == position else self.skip(formulas, position)
            at = None if passed is None else (position + 1, passed)
        for at, after in reversed(way):
            if after is not None:
                found = self.choose(found[0], at[0], (after, at[0] + 1)), found[1]
            self._members[at] = found
        return found

    def choose(self, choices: Choices | None, i: int, ahead: Ahead) -> Choices:
        """These choices and name i."""
        text, at, passed = self.trie.spelled[i], choices, []
        for byte in text:
            passed.append((byte, at))
            at = at.below.get(byte) if at is not None else None  # type: ignore[assignment]
        made: Choices | Ahead = ahead
        for byte, at in reversed(passed):
            below = {byte: made} if at is None else {**at.below, byte: made}
            key = frozenset(below.items())
            made = self._choices.get(key) or self._choices.setdefault(key, Choices(below))
        assert isinstance(made, Choices)
        return made

    def skip(self, formulas: Formulas, i: int) -> Formulas | None:
        """The formulas once name i can't come any more; None when that's a contradiction."""
        atom = self.space.atom(Has(self.names[i]))
        if not any(atom in f.atoms for f in formulas):
            return formulas
        out = self.assign(formulas, {atom: FALSE})
        return None if out[0] is FALSE else out

    def _closed(self, formulas: Formulas) -> bool:
        """Whether no undeclared key can come. With key languages that's only known at the key's end."""
        return not self.languages and self.take(formulas, Key(None)) is None

    def settle(self, position: int, formulas: Formulas) -> Formulas | None:
        what = {}
        for atom in self.atoms(formulas):
            if isinstance(atom.payload, Props):
                m = atom.payload.members
                if m.additional is None and not m.patterns and self.passed(m, position):
                    what[atom] = TRUE
        out = self.assign(formulas, what)
        return None if out[0] is FALSE else out

    def passed(self, members: Members, position: int) -> bool:
        """Whether none of the properties can come any more."""
        last = self._last.get(members)
        if last is None:
            last = self._last[members] = max((self.position.get(n, -1) for n in members.properties), default=-1)
        return last < position

    def finish(self, position: int, formulas: Formulas) -> tuple[bool, ...] | None:
        """The verdict when the object ends here; None when it can't."""
        if self._next_needed[position] < len(self.names):
            return None
        return self.verdict_of(formulas)

    # -- the frame ---------------------------------------------------------------------------------

    def transitions(self, state: Any) -> Iterable[Transition]:
        if type(state) is tuple and state[0] != "end":  # layout states are tuples with a type
            return _STATES[state[0]](self, *state[1:])
        return self.layout_transitions(state)

    def _start(self) -> Iterator[Transition]:
        yield Stay(0x7B, 0x7B, self.gap(("open",)))

    def _open(self) -> Iterator[Transition]:
        verdict = self.finish(self.begin, self.first)
        if verdict is not None:
            yield Stay(0x7D, 0x7D, ("end", verdict))
        if self._any_member(self.begin, self.first):
            yield from self.first_member(("next", self.begin, self.first))

    def _next(self, position: int, formulas: Formulas) -> Iterator[Transition]:
        choices, other = self.members(position, formulas)
        if choices is not None or other is not None:
            yield Stay(QUOTE, QUOTE, ("key", 0, choices, other))

    def _any_member(self, position: int, formulas: Formulas) -> bool:
        choices, other = self.members(position, formulas)
        return choices is not None or other is not None

    def _key_state(self, node: int, choices: Choices | None, other: Ahead | None) -> Iterator[Transition]:
        below = {} if choices is None else choices.below
        for byte, child in self.trie.edges[node].items():
            chosen = below.get(byte)
            if child < 0:
                if chosen is not None:
                    yield Stay(byte, byte, self.gap(("colon", self.keys[~child], *chosen)))  # type: ignore[misc]
            elif chosen is not None or other is not None:
                yield Stay(byte, byte, ("key", child, chosen, other))
        if other is not None:
            if node not in self._rests:
                self._rests[node] = self._rest(node)
            rest = self._rests[node]
            if rest is not None:
                frame, at, first = rest
                yield Call(frame, ("key", *other), first, at)

    def _rest(self, node: int) -> tuple[Frame, State | None, Ranges] | None:
        """The frame of the rest of an undeclared key that leaves the trie here, where it's entered, and by which
        bytes; None where no key that may come begins so."""
        found = self.values.key_rest(self.languages, self.trie.paths[node], self.pointer)
        return None if found is None else (*found, tuple(without((0, 255), self.trie.edges[node])))

    def _colon(self, key: Key, formulas: Formulas, position: int) -> Iterator[Transition]:
        yield self.colon(("value", key, formulas, position))

    def _value(self, key: Key, formulas: Formulas, position: int) -> Iterator[Transition]:
        yield from self.value_calls(self.plan(formulas, key), position, formulas)

    def _after(self, position: int, formulas: Formulas) -> Iterator[Transition]:
        yield from self.separators(
            self.finish(position, formulas),
            ("next", position, formulas) if self._any_member(position, formulas) else None,
            0x7D,
        )

    def resume(self, continuation: Any, verdict: Any) -> Hashable | None:
        kind, *rest = continuation
        if kind == "key":
            key = Key(None, verdict if isinstance(verdict, frozenset) else frozenset())
            formulas, position = rest
            after = self.take(formulas, key)
            return None if after is None else self.gap(("colon", key, after, position))
        return self.value_resume(continuation, verdict)


class AnyOrderFrame(ObjectFrame):
    """Members in any order: the position is the set of names that haven't come, as bits. A name comes once at
    most.

    There are two to the power of names of them, so the state limit bounds what this takes.
    """

    def __init__(
        self,
        values: Values,
        must: Formula,
        watched: Formulas,
        names: tuple[str, ...],
        nest: Nest,
        pointer: str,
        order: Sources = (),
    ) -> None:
        super().__init__(values, must, watched, names, nest, pointer, order)
        self.begin = (1 << len(names)) - 1
        self.wanted = sum(1 << i for i in self.needed)

    def members(self, position: int, formulas: Formulas) -> Following:
        found = self._members.get((position, formulas))
        if found is None:
            choices = None
            for i, key in enumerate(self.keys):
                after = self.take(formulas, key) if key is not None and position >> i & 1 else None
                if after is not None:
                    choices = self.choose(choices, i, (after, position & ~(1 << i)))
            other = None if self._closed(formulas) else (formulas, position)
            found = self._members[position, formulas] = choices, other
        return found

    def passed(self, members: Members, position: int) -> bool:
        bits = self._last.get(members)
        if bits is None:
            bits = self._last[members] = sum(1 << self.position[n] for n in members.properties if n in self.position)
        return not position & bits

    def finish(self, position: int, formulas: Formulas) -> tuple[bool, ...] | None:
        return None if position & self.wanted else self.verdict_of(formulas)


def _languages(formulas: Formulas) -> tuple[Formula, ...]:
    """The key languages that atoms ask about: patterns and `propertyNames`, in order."""
    found: dict[Formula, None] = {}
    for f in formulas:
        for atom in f.atoms:
            if isinstance(atom.payload, Names):
                found[atom.payload.language] = None
            elif isinstance(atom.payload, Props):
                found.update(dict.fromkeys(language for language, _ in atom.payload.members.patterns))
    return tuple(sorted((f for f in found if not f.constant), key=lambda f: f.number))


_STATES: dict[str, Callable[..., Iterable[Transition]]] = {
    "start": ObjectFrame._start,
    "open": ObjectFrame._open,
    "key": ObjectFrame._key_state,
    "colon": ObjectFrame._colon,
    "value": ObjectFrame._value,
    "after": ObjectFrame._after,
    "next": ObjectFrame._next,
}
