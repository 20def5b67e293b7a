"""Cut the bytes that the vocabulary can't spell.

A mask must never lead to where no token goes on. A byte is spellable when some token is exactly that byte; over
spellable bytes every live control has a legal token. So edges on other bytes are cut (the language is narrowed to
texts of spellable bytes) and what can't finish any more is cut with them. Byte-level and byte-fallback vocabularies
spell all 256.
"""

from __future__ import annotations

from dataclasses import replace

from maskwright.compiler.automaton.ir import ByteAutomaton, Edge
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.options import Limits

ALL = (1 << 256) - 1
STRING_BYTES = sum(1 << b for b in (*range(0x20, 0x7F), *range(0x80, 0xC0), *range(0xC2, 0xF5)))
"""What JSON strings are written in: the pack's frames, cut when the pack was built, would take all of these."""


def cut_unspellable(
    a: ByteAutomaton, spellable: int, limits: Limits | None = None
) -> tuple[ByteAutomaton, tuple[Diagnostic, ...]]:
    """The automaton over spellable bytes (bit b of `spellable`), with a note when something was cut.

    Raises CompileError (VOCABULARY_INCOMPLETE) naming the missing bytes when no text is left.
    """
    missing = _missing(a, spellable)
    if not missing:
        return a, ()
    cut = replace(a, edges=[tuple(_cut(es, spellable)) for es in a.edges])
    detail = {"bytes": missing}
    names = ", ".join(f"0x{b:02x}" for b in missing[:16]) + (", …" if len(missing) > 16 else "")
    try:
        live = specialise(cut, limits)
    except CompileError as refused:
        if any(d.code is not Code.UNSATISFIABLE for d in refused.diagnostics):
            raise
        message = f"every text needs a byte that no token spells: {names}"
        raise CompileError(Diagnostic(Code.VOCABULARY_INCOMPLETE, message, detail=detail)) from refused
    message = f"texts with these bytes are left out, because no token spells them alone: {names}"
    return live, (Diagnostic(Code.VOCABULARY_INCOMPLETE, message, severity="warning", detail=detail),)


def _missing(a: ByteAutomaton, spellable: int) -> list[int]:
    if spellable == ALL:
        return []
    used = STRING_BYTES if any(s.callee < a.first_frame for s in a.symbols) else 0
    for es in a.edges:
        for e in es:
            used |= (1 << e.high + 1) - (1 << e.low)
    wanted = used & ~spellable
    return [b for b in range(256) if wanted >> b & 1]


def _cut(edges: tuple[Edge, ...], spellable: int) -> list[Edge]:
    out: list[Edge] = []
    for e in edges:
        for b in range(e.low, e.high + 1):
            if not spellable >> b & 1:
                continue
            if out and out[-1].high == b - 1 and out[-1].move == e.move and out[-1].high >= e.low:
                out[-1] = Edge(out[-1].low, b, e.move)
            else:
                out.append(Edge(b, b, e.move))
    return out
