"""Frames per value type: which frames judge a value, and what their verdicts mean.

`Values.calls(goal, nest)` splits a goal by the value's type (its first byte tells) and gives for each type
that the goal leaves possible the frame to call, with, for each watched formula, its value or its place in
that frame's verdict. Frames that don't depend on the schema come from the library (`External`), or are made
here when there's none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from maskwright.compiler.automaton.explore import Call, External, Frame, State, Stay
from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.diagnostics import LimitExceeded
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema.arrays import ArrayFrame, ChunkFrame
from maskwright.compiler.schema.atoms import Has, Length, Matches
from maskwright.compiler.schema.bounds import Bounds
from maskwright.compiler.schema.container import Mapped
from maskwright.compiler.schema.counts import (
    BIG,
    CHUNK,
    AtMostFrame,
    BigChunkFrame,
    CharChunkFrame,
    CountedFrame,
    InsideAtMostFrame,
    Region,
    closed_verdict,
    regions,
    wide_char,
)
from maskwright.compiler.schema.document import Schema
from maskwright.compiler.schema.formula import FALSE, TRUE, Formula, Kind, Space, conjuncts
from maskwright.compiler.schema.goals import ANYTHING, Formulas, Goal
from maskwright.compiler.schema.languages import Languages
from maskwright.compiler.schema.layout import Nest, whitespace_table
from maskwright.compiler.schema.lower import KINDS, Lowering, Order, ValueKind
from maskwright.compiler.schema.numbers import Integer, free_number, judge_numbers
from maskwright.compiler.schema.objects import AnyOrderFrame, ObjectFrame
from maskwright.compiler.schema.sources import Sources, arrange
from maskwright.compiler.schema.strings import (
    GuardedFrame,
    StringJudge,
    free_key,
    free_string,
    string_sets,
)
from maskwright.compiler.schema.tables import Table, TableFrame
from maskwright.compiler.schema.wide import WideFrame

FREE = Nest(0, None)
Calls = tuple[tuple[Frame, Mapped], ...]
WORDS = {"null": ("null",), "true": ("true",), "false": ("false",), "boolean": ("true", "false")}


class Values:
    """All frames of one compilation. `library` None: schema-independent frames are made, not referred to."""

    def __init__(
        self,
        lowering: Lowering,
        options: CompileOptions,
        limits: Limits,
        library: ByteAutomaton | None,
    ) -> None:
        self.lowering, self.options, self.limits, self.library = lowering, options, limits, library
        self.space: Space = lowering.space
        self.languages: Languages = lowering.languages
        self.strings = StringJudge(self.space, self.languages)
        self.bounds = Bounds(self.space, options)
        self._calls: dict[tuple[Goal, Nest], Calls] = {}
        self._frames: dict[Hashable, Frame] = {}
        self.unjudged: set[tuple[int, str]] = set()
        """Length bounds, by signature and keyword, that took too many states beside their pattern or format, and
        are left to validation."""
        self._lengthless: set[Formula] = set()
        self.judged_by: dict[Frame, tuple[Schema, ...]] = {}
        """The schemas that first asked for an object's frame."""
        self._keys: dict[tuple[Formula, ...], Table] = {}

    def close(self) -> None:
        """Forgets the frames, which hold these values: neither would go before a collection. To be called when their
        exploration has ended."""
        self._calls.clear()
        self._frames.clear()
        self.judged_by.clear()

    @property
    def whitespace(self) -> Frame:
        bound = self.options.max_whitespace
        return self.shared(f"whitespace:{bound}", lambda: TableFrame("whitespace", whitespace_table(bound)))

    def shared(self, entry: str, make: Callable[[], Frame]) -> Frame:
        """The library's frame of that name, or one made here."""
        found = self._frames.get(entry)
        if found is None:
            known = self.library is not None and entry in self.library.entries
            found = self._frames[entry] = External(entry, entry) if known else make()
        return found

    def made(self, key: Hashable, make: Callable[[], Frame]) -> Frame:
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = make()
        return found

    # -- by type -----------------------------------------------------------------------------------

    def calls(self, goal: Goal, nest: Nest) -> Calls:
        at = (goal, nest)
        found = self._calls.get(at)
        if found is None:
            found = self._calls[at] = tuple(self._split(goal, nest))
        return found

    def _split(self, goal: Goal, nest: Nest) -> list[tuple[Frame, Mapped]]:
        out: list[tuple[Frame, Mapped]] = []
        words: dict[Mapped, list[str]] = {}
        for kind in KINDS:
            if kind in ("object", "array") and nest.left is not None and nest.left < 1:
                continue
            must = self.lowering.expand(goal.must, kind)
            if must is FALSE:
                continue
            watched, mapped = self._reduce(must, [self.lowering.expand(w, kind) for w in goal.watched])
            if kind in ("null", "true", "false"):
                words.setdefault(mapped, []).append(kind)
            else:
                frame = self._frame(kind, must, watched, goal.schemas, nest)
                if frame is not None:
                    out.append((frame, mapped))
        for mapped, names in words.items():
            if "true" in names and "false" in names:
                names = ["boolean", *(n for n in names if n == "null")]
            out.extend((self.word(n), mapped) for n in names)
        return out

    def _reduce(self, must: Formula, watched: list[Formula]) -> tuple[Formulas, Mapped]:
        """Watched formulas that aren't decided, without repetition, and how to read a verdict of theirs."""
        space = self.space
        units = {c: TRUE for c in conjuncts(must) if c.kind is Kind.ATOM}
        units |= {c.args[0]: FALSE for c in conjuncts(must) if c.kind is Kind.NOT and c.args[0].kind is Kind.ATOM}
        index: dict[Formula, int] = {}
        mapped: list[bool | int] = []
        for w in watched:
            f = TRUE if w is must else FALSE if w is space.negate(must) else space.assign(w, units)
            if f.constant:
                mapped.append(f is TRUE)
            elif space.negate(f) in index:
                mapped.append(~index[space.negate(f)])
            else:
                mapped.append(index.setdefault(f, len(index)))
        return tuple(index), tuple(mapped)

    def _frame(
        self, kind: ValueKind, must: Formula, watched: Formulas, schemas: tuple[Schema, ...], nest: Nest
    ) -> Frame | None:
        pointer = self.lowering.place((must, *watched), schemas)
        must = self.bounds.impose(kind, must)
        if kind == "number":
            return self.number(must, watched, pointer)
        if kind == "string":
            frame = self.string(must, watched, pointer)
            if must in self._lengthless:
                self._leave_lengths(schemas)
            return frame
        if kind == "array":
            return self.array(must, watched, nest, pointer, arrange(self.lowering, (must, *watched), schemas, kind))
        order = arrange(self.lowering, (must, *watched), schemas, kind)
        frame = self.object(must, watched, self._names(must, watched, schemas), nest, pointer, order)
        self.judged_by.setdefault(frame, schemas)
        return frame

    # -- scalars -----------------------------------------------------------------------------------

    def word(self, name: str) -> Frame:
        return self.shared(name, lambda: TableFrame(name, _word_table(WORDS[name])))

    def number(self, must: Formula, watched: Formulas, pointer: str) -> Frame | None:
        free = not watched and must is TRUE

        def make() -> Frame:
            limit = self.limits.states
            try:
                table = free_number() if free else judge_numbers(self.space, must, watched, pointer, limit)
                return TableFrame("number", self.bounds.number(table, must, limit), pointer)
            except LimitExceeded as error:
                raise error.near(pointer) from None

        if self.options.default_max_digits is None and (free or (not watched and isinstance(must.payload, Integer))):
            return self.shared("number" if free else "integer", make)
        frame = self.made(("number", must, watched), make)
        return frame if _possible(frame) else None

    def string(self, must: Formula, watched: Formulas, pointer: str) -> Frame | None:
        if not watched and must is TRUE:
            return self.shared("string", lambda: TableFrame("string", free_string()))
        frame = self.made(("string", must, watched), lambda: self._string(must, watched, pointer))
        return frame if _possible(frame) else None

    def _string(self, must: Formula, watched: Formulas, pointer: str) -> Frame:
        members = self.strings.members(must, watched)
        if members is not None:
            return TableFrame("enum", self.strings.finite(members), pointer)
        lengths = regions(self.space, must, watched)
        if lengths is not None:
            return self._counted(lengths, watched, pointer)
        if any(True for f in (must, *watched) for _ in string_sets(f)):
            return GuardedFrame(self.strings, must, watched, pointer)
        must = must if watched else self._uncounted(must)
        try:
            return self._judged(must, watched, pointer)
        except LimitExceeded as e:
            free = self._without_lengths(must)
            if watched or free is must or e.limit_name != "states" or self.options.residual == "refuse":
                raise
        self._lengthless.add(must)
        return self._string(free, (), pointer)

    def _uncounted(self, must: Formula) -> Formula:
        """What must hold, without upper bounds on the length that a pattern or format beside them keeps by itself."""
        parts = dict.fromkeys(conjuncts(must))
        for bound in list(parts):
            length = bound.payload
            if not isinstance(length, Length) or length.low or length.high is None:
                continue
            for atom in list(parts):
                shorter = self.languages.within(atom, length.high)
                if shorter is not None:
                    del parts[bound]
                    del parts[atom]
                    parts[shorter] = None
                    break
        return self.space.all(parts)

    def _leave_lengths(self, schemas: tuple[Schema, ...]) -> None:
        for schema in (s for top in schemas for s in self.lowering.same_value(top).values()):
            for keyword in ("minLength", "maxLength"):
                if schema.has(keyword):
                    self.unjudged.add((self.lowering.document.signature(schema), keyword))

    def _judged(self, must: Formula, watched: Formulas, pointer: str) -> Frame:
        if not watched and isinstance(must.payload, Matches):
            entry = f"format:{must.payload.source}"
            if must.payload.is_format and self.library is not None and entry in self.library.entries:
                return External(entry, entry)
        classes, verdicts = self.strings.classifier(must, watched, pointer)
        return WideFrame(classes, verdicts, self.languages.budget(pointer), pointer)

    def _without_lengths(self, must: Formula) -> Formula:
        """What must hold but for bounds on the length that stand alone."""
        bounds = (c for c in conjuncts(must) if isinstance((c.args or (c,))[0].payload, Length))
        dropped = set(bounds)
        return self.space.all(c for c in conjuncts(must) if c not in dropped) if dropped else must

    def _counted(self, lengths: list[Region], watched: Formulas, pointer: str) -> Frame:
        if not lengths:
            return TableFrame("nothing", Table(((),), (None,)), pointer)
        if len(lengths) == 1 and not watched and lengths[0].size is not None and lengths[0].size <= CHUNK:
            return self.counting(f"at_most:{lengths[0].size - 1}")
        return CountedFrame(lengths, self.counting, lambda frame: closed_verdict(frame, self.library), pointer)

    def counting(self, entry: str) -> Frame:
        """The library's frames that count characters: `char` and those of counts.py by name and count."""
        return self.shared(entry, lambda: self._counting(entry))

    def _counting(self, entry: str) -> Frame:
        if entry == "char":
            return TableFrame("char", wide_char())
        kind, _, count = entry.partition(":")
        wide = self.counting("char")
        if kind == "at_most":
            return AtMostFrame(int(count), wide)
        if kind == "inside_at_most":
            return InsideAtMostFrame(int(count), wide)
        if int(count) == BIG:
            chunk = self.counting(f"{kind}:{CHUNK}")
            return BigChunkFrame(chunk, closed_verdict(chunk, self.library))
        return CharChunkFrame(kind == "chunk", wide)

    def key_rest(self, languages: tuple[Formula, ...], read: bytes, pointer: str) -> tuple[Frame, State | None] | None:
        """The frame of the rest of a key of which `read` has been read, and where it's entered; None where no key that
        may come begins so. The verdict is the set of languages that hold the key. The frame is every object's: its
        place is its caller's."""
        table = self._keys.get(languages)
        if table is None:
            bound = self.bounds.key
            judged = bool(languages) or bound is not None
            table = self.strings.keys(languages, pointer, TRUE if bound is None else bound) if judged else free_key()
            self._keys[languages] = table
        state = _run(table, read)
        if state is None:
            return None
        if not languages and state == 0 and self.bounds.key is None:
            return self.key_frame, None
        return self.made(("key", languages), lambda: TableFrame("key", table)), state

    @property
    def key_frame(self) -> Frame:
        """An undeclared key from behind its quote, under no language."""
        return self.shared("key", lambda: TableFrame("key", free_key()))

    # -- containers --------------------------------------------------------------------------------

    def array(self, must: Formula, watched: Formulas, nest: Nest, pointer: str, order: Sources = ()) -> Frame:
        if not watched and must is TRUE and nest == FREE and not self.options.bounds_values:
            return self.shared(f"array:{self._style}", lambda: ArrayFrame(self, TRUE, (), nest, ""))
        key = ("array", must, watched, nest, order)
        return self.made(key, lambda: ArrayFrame(self, must, watched, nest, pointer, order))

    def chunk(self, formulas: Formulas, nest: Nest, pointer: str, order: Sources) -> ChunkFrame:
        """The frame of a chunk of items of an array with these formulas."""
        key = ("chunk", formulas, nest, order)
        frame = self.made(key, lambda: ChunkFrame(self, formulas, nest, pointer, order))
        assert isinstance(frame, ChunkFrame)
        return frame

    def object(
        self,
        must: Formula,
        watched: Formulas,
        names: tuple[str, ...],
        nest: Nest,
        pointer: str,
        order: Sources = (),
    ) -> Frame:
        if not watched and must is TRUE and not names and nest == FREE and not self.options.bounds_values:
            return self.shared(f"object:{self._style}", lambda: ObjectFrame(self, TRUE, (), (), nest, ""))
        kind = AnyOrderFrame if self.options.property_order == "any" and names else ObjectFrame
        key = ("object", must, watched, names, nest, order)
        return self.made(key, lambda: kind(self, must, watched, names, nest, pointer, order))

    @property
    def _style(self) -> str:
        """What the frames of any object and array depend on."""
        mode = self.options.whitespace
        return f"flexible:{self.options.max_whitespace}" if mode == "flexible" else str(mode)

    def _names(self, must: Formula, watched: Formulas, schemas: tuple[Schema, ...]) -> tuple[str, ...]:
        order = Order()
        for schema in schemas:
            order.add(self.lowering.order(schema))
        atoms = (a for f in (must, *watched) for a in f.atoms if isinstance(a.payload, Has))
        order.add(Order((), (a.payload.name for a in atoms)))  # type: ignore[attr-defined]
        return order.names()


class RootFrame:
    """The whole text: one value."""

    name, pointer = "root", ""

    def __init__(self, values: Values, goal: Goal, nest: Nest) -> None:
        self.values, self.goal, self.nest = values, goal, nest

    def start(self) -> str:
        return "start"

    def transitions(self, state: str) -> list[Stay | Call]:
        if state == "end":
            return []
        return [Call(frame, "end") for frame, _ in self.values.calls(self.goal, self.nest)]

    def verdict(self, state: str) -> Hashable | None:
        return () if state == "end" else None

    def resume(self, continuation: str, verdict: Any) -> str:
        return continuation


def any_value(values: Values, nest: Nest) -> Calls:
    return values.calls(ANYTHING, nest)


def _possible(frame: Frame) -> bool:
    """Whether a table can end at all; frames of other kinds are cut later if they can't."""
    return not isinstance(frame, TableFrame) or any(label is not None for label in frame.table.labels)


def _run(table: Table, text: bytes) -> int | None:
    """The state after a text; None when nothing begins with it."""
    state = 0
    for byte in text:
        for low, high, target in table.rows[state]:
            if low <= byte <= high:
                state = target
                break
        else:
            return None
    return state


def _word_table(words: tuple[str, ...]) -> Table:
    rows: list[tuple[tuple[int, int, int], ...]] = []
    first = []
    for word in words:
        base = len(rows) + 1
        first.append((ord(word[0]), ord(word[0]), base))
        rows += [((ord(c), ord(c), base + i + 1),) for i, c in enumerate(word[1:])]
        rows.append(())
    labels = [() if not row else None for row in rows]
    return Table((tuple(sorted(first)), *rows), (None, *labels))
