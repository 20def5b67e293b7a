"""What a compilation tells about its artifact: sizes, costs, bounds, and what became of each keyword."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.automaton.length import Length, measure_length
from maskwright.compiler.costs import Cost, cost_by_place
from maskwright.compiler.diagnostics import Diagnostic
from maskwright.compiler.options import CompileOptions
from maskwright.compiler.tokens.build import BuildStats
from maskwright.compiler.tokens.machine import unflatten
from maskwright.compiler.tokens.prepared import PreparedVocabulary
from maskwright.compiler.tokens.tables import TokenTables

LONGEST_TEXT = 200
"""Bytes shown of the text that leads to a loop."""


@dataclass(frozen=True)
class Unbounded:
    """Why texts have no greatest length: `what` goes round ("nesting", "string", "number", "array", "object", or a
    frame of a pattern or grammar), caused at `pointer`; `after`: the shortest text before it; `hint`: what bounds it.
    """

    what: str
    pointer: str
    after: str | None
    hint: str


@dataclass(frozen=True)
class Report:
    """Counts are of the artifact's own part unless they say otherwise; `seconds` is wall time by pass.

    states, frames, symbols: of the byte automaton, minimised.
    contexts: (frame, stack class) pairs; pairs: (control, context) pairs with a mask. lazy: there are too many, the
        worker makes them as it meets them; then contexts and pairs are 0, and masks are rows that masks are made of.
    masks: distinct mask rows that aren't the pack's; largest_mask, mean_mask: legal tokens in them.
    artifact_bytes: the serialized length; source_bytes: of the source text.
    peak_bytes: the most memory that the process held more than before; see `memory.py`.
    min_bytes, max_bytes: of a text; max_bytes is None where there's no greatest, and `unbounded` tells the first place.
    bounded_by: options that impose bounds on length, where they're set.
    costs: states, rows and bytes by place of the source.
    treatment: (pointer, keyword, "enforced" | "annotation" | "residual") for each keyword of a schema.
    notes: diagnostics of severity warning and note.
    """

    kind: str
    states: int
    frames: int
    symbols: int
    contexts: int
    pairs: int
    masks: int
    largest_mask: int
    mean_mask: float
    artifact_bytes: int
    source_bytes: int
    seconds: dict[str, float]
    lazy: bool = False
    peak_bytes: int = 0
    min_bytes: int = 0
    max_bytes: int | None = None
    unbounded: Unbounded | None = None
    bounded_by: tuple[str, ...] = ()
    costs: tuple[Cost, ...] = ()
    treatment: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[Diagnostic, ...] = field(default=())

    @property
    def bounded(self) -> bool:
        """Whether there's a greatest length."""
        return self.max_bytes is not None

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values, and `bounded`."""
        out = asdict(self)
        out["bounded"] = self.bounded
        out["notes"] = [d.to_json() for d in self.notes]
        out["treatment"] = [list(t) for t in self.treatment]
        out["bounded_by"] = list(self.bounded_by)
        out["costs"] = [{**asdict(c), "frames": list(c.frames)} for c in self.costs]
        return out


@dataclass(frozen=True)
class Made:
    """What a report is made from: a few arrays, since whoever holds a result holds this, and the collector's every
    visit costs by the object. `accepting`: the root's verdicts that make a member."""

    kind: str
    source_bytes: int
    accepting: frozenset[int]
    tables: TokenTables
    stats: BuildStats
    prepared: PreparedVocabulary
    artifact_bytes: int
    peak_bytes: int
    seconds: dict[str, float]


def report_on(
    made: Made,
    options: CompileOptions,
    treatment: tuple[tuple[str, str, str], ...],
    notes: tuple[Diagnostic, ...],
) -> Report:
    """The report. Costs some visits of the whole automaton, and one of each context."""
    a, stats, pack = _automaton(made), made.stats, made.prepared.tables
    sizes, length = stats.mask_sizes, measure_length(a)
    return Report(
        kind=made.kind,
        states=len(a.edges),
        frames=len(a.frames),
        symbols=len(a.symbols),
        contexts=stats.contexts,
        pairs=stats.pairs,
        lazy=stats.lazy,
        masks=len(sizes),
        largest_mask=max(sizes, default=0),
        mean_mask=sum(sizes) / len(sizes) if sizes else 0.0,
        artifact_bytes=made.artifact_bytes,
        source_bytes=made.source_bytes,
        seconds={name: round(value, 6) for name, value in made.seconds.items()},
        peak_bytes=made.peak_bytes,
        min_bytes=length.least,
        max_bytes=length.most,
        unbounded=_unbounded(length, made.kind),
        bounded_by=_imposed(options),
        costs=cost_by_place(made.tables, a.first_frame, len(pack.rows.row_base), made.artifact_bytes),
        treatment=treatment,
        notes=notes,
    )


def _automaton(made: Made) -> ByteAutomaton:
    """As it was when its tables were made."""
    tables, pack = made.tables, made.prepared
    a = unflatten(tables.automaton, tables.frame_names, base=(pack.library, pack.tables.automaton))
    a.start, a.accepting_verdicts = tables.start, made.accepting
    return a


_CURES = {
    "nesting": "set the option max_nesting",
    "string": "give it maxLength, or set the option default_max_length",
    "key": "close the object with additionalProperties: false, or set default_max_length",
    "number": "give it minimum and maximum, or set the option default_max_digits",
    "array": "give it maxItems, or set the option default_max_items",
    "object": "close it with additionalProperties: false, or set the option default_max_items",
}
_IMPOSING = ("max_nesting", "default_max_length", "default_max_items", "default_max_digits")


def _unbounded(length: Length, kind: str) -> Unbounded | None:
    loop = length.loop
    if loop is None:
        return None
    what = "string" if loop.name == "character" else "number" if loop.name == "integer" else loop.name
    hint = _CURES.get(what) if kind in ("json_schema", "tools") else None
    text = None if loop.after is None else loop.after.decode("utf-8", "backslashreplace")
    if text is not None and len(text) > LONGEST_TEXT:
        text = "…" + text[-LONGEST_TEXT:]
    return Unbounded(what, loop.pointer, text, hint or "bound what repeats here")


def _imposed(options: CompileOptions) -> tuple[str, ...]:
    return tuple(name for name in _IMPOSING if getattr(options, name) is not None)
