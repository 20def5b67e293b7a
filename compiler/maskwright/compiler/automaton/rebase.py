"""Put an automaton that stands alone on top of a library, so that it can be compiled against a vocabulary pack."""

from __future__ import annotations

from dataclasses import replace

from maskwright.compiler.automaton.ir import ByteAutomaton, Edge, Move, Symbol


def rebase(a: ByteAutomaton, base: ByteAutomaton) -> ByteAutomaton:
    """The same automaton, its controls, symbols and frames numbered from the base's counts on. It calls nothing
    there.
    """
    assert a.base is None
    controls, symbols, frames = base.n_controls, base.n_symbols, base.n_frames
    moves: dict[Move, Move] = {}

    def move(m: Move) -> Move:
        found = moves.get(m)
        if found is None:
            found = moves[m] = Move(m.target + controls, tuple(s + symbols for s in m.pushes))
        return found

    return replace(
        a,
        edges=[tuple(Edge(e.low, e.high, move(e.move)) for e in es) for es in a.edges],
        frame=[f + frames for f in a.frame],
        symbols=[
            Symbol(s.caller + frames, s.callee + frames, tuple(None if m is None else move(m) for m in s.returns))
            for s in a.symbols
        ],
        entries={name: c + controls for name, c in a.entries.items()},
        start=None if a.start is None else a.start + controls,
        base=base,
    )
