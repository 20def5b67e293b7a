"""Lay out what `Pushdown` says as a `Machine`: every control that can be reached, as far as LR states alone
tell.

A Pop may find under an LR state whatever LR states have a transition to it. So returns are made for pairs of
a Pop and a symbol as they come up. How much of that really happens is found by `liveness.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import LimitExceeded, out_of_time
from maskwright.compiler.grammar.lark_tables import END
from maskwright.compiler.grammar.machine import (
    ACCEPT,
    Accept,
    Begin,
    Control,
    Enter,
    Exit,
    Go,
    InCharacter,
    InEmbedded,
    Lexing,
    Machine,
    Outcome,
    Pop,
    Stack,
    Transition,
)
from maskwright.compiler.grammar.pushdown import Pushdown, tell_apart
from maskwright.compiler.grammar.scan import Rest
from maskwright.compiler.options import Limits


def assemble(pushdown: Pushdown, limits: Limits | None = None, deadline: float | None = None) -> Machine:
    """The machine. Raises LimitExceeded, CompileError."""
    return _Assembly(pushdown, limits or Limits(), deadline).run()


class _Assembly:
    def __init__(self, pushdown: Pushdown, limits: Limits, deadline: float | None) -> None:
        self.b, self.limits, self.deadline = pushdown, limits, deadline
        self.out = Machine()
        self.numbers: dict[Control, int] = {}
        self.keys: list[Control] = []
        self.verdicts: dict[Pop | Accept | Exit, int] = {ACCEPT: 0}
        self.after: dict[tuple[str, tuple[tuple[Stack, int], ...]], int] = {}
        """Symbols of called characters ("") and embedded terminals, by where they return to; numbered after
        the LR states.
        """
        self.work: list[Control] = []
        self.pairs: set[tuple[Pop, int]] = set()
        self.exposed: list[tuple[Pop, int]] = []

    def run(self) -> Machine:
        self.out.accept = self.control(ACCEPT)
        history = self.b.scanner.text_start()
        start = self.b.lex((0,), Rest(b"", history))
        assert isinstance(start, Go)
        self.out.start = self.control(Lexing(0, start.scan))
        while self.work or self.exposed:
            if self.work:
                self.expand(self.work.pop())
            else:
                self.expose(*self.exposed.pop())
        self.out.n_verdicts, self.out.n_states = len(self.verdicts), self.b.tables.n_states
        return self.out

    def control(self, key: Control) -> int:
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.keys)
            if found >= self.limits.states:
                raise LimitExceeded("states", self.limits.states, found + 1, "pushdown")
            if self.deadline is not None and found % 64 == 0 and now() > self.deadline:
                raise out_of_time(self.limits.compile_seconds, self.deadline, "pushdown")
            self.keys.append(key)
            self.out.edges.append([])
            self.out.verdict.append(-1)
            self.work.append(key)
        return found

    def expand(self, key: Control) -> None:
        n = self.numbers[key]
        if isinstance(key, InCharacter):
            self.out.characters[n] = key.sets
            self.expand_character(n, key)
            return
        if isinstance(key, Lexing | Accept):
            self.out.tops[n] = key.top if isinstance(key, Lexing) else 0
        if not isinstance(key, Lexing):
            self.out.verdict[n] = self.verdict(Exit(0) if isinstance(key, InEmbedded) else key)
            return
        outcomes, verdict = self.b.decide(key)
        edges = self.out.edges[n]
        for low, high, outcome in outcomes:
            if outcome is None:
                continue
            pushes, target = self.move(outcome, key.top)
            if edges and edges[-1].high + 1 == low and (edges[-1].pushes, edges[-1].target) == (pushes, target):
                edges[-1] = Transition(edges[-1].low, high, pushes, target)
            else:
                edges.append(Transition(low, high, pushes, target))
        if verdict is not None:
            assert not isinstance(verdict, Go)
            self.out.verdict[n] = self.verdict(verdict)
            self.see(verdict, self.b.below[key.top])

    def expand_character(self, n: int, key: InCharacter) -> None:
        machine = tell_apart(key.sets)
        if machine.labels[key.state] >= 0:
            self.out.verdict[n] = self.verdict(Exit(machine.labels[key.state]))
        for low, high, t in machine.transitions[key.state]:
            self.out.edges[n].append(Transition(low, high, (), self.control(InCharacter(key.sets, t))))

    def enter(self, call: Enter, popped: int) -> tuple[Stack, int]:
        """The return address, and the control inside the character."""
        symbol = self.address("", tuple(self.move(exit, popped) for exit in call.exits))
        return (symbol,), self.control(InCharacter(call.sets, call.state))

    def begin(self, call: Begin) -> tuple[Stack, int]:
        """The known part of the stack and the return address, and the control that stands for the frame."""
        top = call.stack[-1]
        out = self.b.act((top,), call.terminal, self.b.fresh_rest())
        assert out is not None
        symbol = self.address(call.terminal, (self.move(out, top),))
        target = self.control(InEmbedded(call.terminal))
        self.out.embedded[target] = call.terminal
        return (*call.stack[:-1], symbol), target

    def address(self, terminal: str, moves: tuple[tuple[Stack, int], ...]) -> int:
        symbol = self.after.get((terminal, moves))
        if symbol is None:
            symbol = self.after[terminal, moves] = self.b.tables.n_states + len(self.after)
            self.out.returns[symbol] = {self.verdict(Exit(i)): move for i, move in enumerate(moves)}
        return symbol

    def verdict(self, outcome: Pop | Accept | Exit) -> int:
        return self.verdicts.setdefault(outcome, len(self.verdicts))

    def move(self, outcome: Go | Pop | Accept | Enter | Begin, popped: int) -> tuple[Stack, int]:
        """Where an outcome leads; a Pop goes over what lies below LR state `popped`."""
        if isinstance(outcome, Enter):
            return self.enter(outcome, popped)
        if isinstance(outcome, Begin):
            return self.begin(outcome)
        if isinstance(outcome, Go):
            return outcome.stack[:-1], self.control(Lexing(outcome.stack[-1], outcome.scan, outcome.blocked))
        self.see(outcome, self.b.below[popped])
        return (), self.control(outcome)

    def see(self, outcome: Pop | Accept, symbols: Iterable[int]) -> None:
        """Symbols that a Pop may find on the stack."""
        if isinstance(outcome, Pop):
            for s in sorted(symbols):
                if (outcome, s) not in self.pairs:
                    self.pairs.add((outcome, s))
                    self.exposed.append((outcome, s))

    def expose(self, pop: Pop, symbol: int) -> None:
        """What a Pop does when `symbol` is on top of the stack."""
        outcome: Outcome
        if pop.more:
            outcome = pop._replace(more=pop.more - 1)
        else:
            state = self.b.tables.gotos[symbol].get(pop.origin)
            if state is None:
                return
            if pop.terminal == END and state == self.b.tables.end_state:
                outcome = ACCEPT
            else:
                outcome = self.b.act((symbol, state), pop.terminal, pop.rest)
        if outcome is not None:
            v = self.verdict(pop)
            self.out.returns[symbol][v] = self.move(outcome, symbol)
