"""One token for each of a batch of sequences, as torch operations.

All sequences take their steps together. A round does one of these for each: consume a byte, pop a symbol, or nothing
when it's done; what a round doesn't change is written back as it was, so shapes never depend on data. Rules are
`Matcher._walk`'s: a return is followed by the same byte, a final control returns after the last one, an action's
symbols are pushed one by one, each giving the context that the next is pushed in.

Where the caller may look at the tensors (the CPU's), rounds end when every sequence is done. Otherwise their number is
fixed: (longest token + 1) * (chained returns + 1), which is why both are bounded when the tables are laid out.
"""

from __future__ import annotations

import torch

from maskwright.workers.state import MAX_RETURN_PUSHES
from maskwright.workers.tensors.state import FREE, INCONSISTENT, OVERFLOW, RUNNING, TERMINATED, BatchState
from maskwright.workers.tensors.tables import DeviceTables

TERMINATED_ENTRY = 3  # the row of stop tokens, and may end


def accept(tables: DeviceTables, state: BatchState, tokens: torch.Tensor, *, rounds: int | None) -> torch.Tensor:
    """Advances `state` by tokens, [B] int32 or int64; returns which were legal, bool [B]. `rounds`: None to look when
    to stop.
    """
    inside = (tokens >= 0) & (tokens < tables.vocab_size)
    token = torch.where(inside, tokens, 0).to(torch.int32)
    words = tables.rows.shape[1]
    row = (state.entry >> 1).to(torch.int64)
    word = tables.rows.view(-1).index_select(0, row * words + (token >> 5))
    legal = inside & ((word >> (token & 31)) & 1 == 1) & (state.status < OVERFLOW)
    running = legal & (state.status == RUNNING)
    # Where the text may not end, a stop token in the mask is a symbol of the source.
    stop = running & (tables.is_stop.index_select(0, token) != 0) & (state.entry & 1 == 1)
    state.status.masked_fill_(stop, TERMINATED)
    state.entry.masked_fill_(stop, TERMINATED_ENTRY)
    _walk(tables, state, token, running & ~stop, rounds)
    return legal


def _walk(
    tables: DeviceTables, state: BatchState, token: torch.Tensor, moving: torch.Tensor, rounds: int | None
) -> None:
    at = tables.token_start.index_select(0, token)
    end = tables.token_start.index_select(0, token + 1)
    active, spent = moving.clone(), torch.zeros_like(at)
    done = 0
    while bool(active.any()) if rounds is None else done < rounds:
        _round(tables, state, at, end, active, spent, look=rounds is None)
        done += 1
    # The bound on rounds is proved when tables are laid out; what were still active would be a wrong table.
    state.status.masked_fill_(active, INCONSISTENT)
    settled = moving & (state.status == RUNNING)
    entry = tables.entries.index_select(0, _clamped(tables.row_offset, state.context) + state.control)
    state.entry.copy_(torch.where(settled, entry, state.entry))
    state.status.masked_fill_(settled & (entry == 0), INCONSISTENT)
    state.entry.masked_fill_(moving & (state.status >= OVERFLOW), TERMINATED_ENTRY - 1)


def _clamped(offsets: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
    return offsets.index_select(0, context.clamp(min=0))


def _round(
    tables: DeviceTables,
    state: BatchState,
    at: torch.Tensor,
    end: torch.Tensor,
    active: torch.Tensor,
    spent: torch.Tensor,
    *,
    look: bool,
) -> None:
    """One step of every active sequence. `at`, `active` and `spent` change in place, as the state does."""
    n_classes = tables.moves.shape[1]
    over = at >= end
    byte = tables.token_bytes.index_select(0, torch.minimum(at, end - 1).clamp(min=0)).to(torch.int32)
    column = torch.where(over, n_classes - 1, tables.class_of.index_select(0, byte))
    move = tables.moves.view(-1).index_select(0, state.control * n_classes + column)
    empty = state.height == 0
    active &= ~(over & ((move == -1) | empty))
    returns = (move < -1) & (move & 1 == 1)
    popped = active & returns & ~empty
    move = torch.where(returns, _pop(tables, state, move, popped), move)
    failed = active & ((move == -1) | (popped & (move < -1) & (spent > MAX_RETURN_PUSHES)))
    acts = active & ~failed & (move < -1)
    action = torch.where(acts, (-2 - move) >> 1, 0)
    target = tables.action_target.index_select(0, action)
    state.control.copy_(
        torch.where(acts, target, torch.where(active & ~failed & (move >= 0), move, state.control))
    )
    state.status.masked_fill_(failed, INCONSISTENT)
    at += (active & ~returns & ~over).to(torch.int32)
    _push(tables, state, action, acts, look=look)
    first, last = (tables.action_start.index_select(0, action + i) for i in (0, 1))
    spent += torch.where(acts & popped, last - first, 0)
    active &= state.status == RUNNING


def _pop(tables: DeviceTables, state: BatchState, move: torch.Tensor, popped: torch.Tensor) -> torch.Tensor:
    """Takes the top symbol off where `popped`; the moves that symbols have for their verdicts, -1 elsewhere."""
    batch, slots = state.stack.shape[:2]
    base = torch.arange(0, batch * slots, slots, dtype=torch.int32, device=move.device)
    top = state.stack.view(-1, 2).index_select(0, base + (state.height - 1).clamp(min=0))
    symbol = torch.where(popped, top[:, 0], 0)
    verdict = torch.where(popped, (-3 - move) >> 1, 0)
    found = tables.returns.index_select(0, tables.return_start.index_select(0, symbol) + verdict)
    state.context.copy_(torch.where(popped, top[:, 1], state.context))
    state.height -= popped.to(torch.int32)
    return torch.where(popped, found, -1)


def _push(tables: DeviceTables, state: BatchState, action: torch.Tensor, acts: torch.Tensor, *, look: bool) -> None:
    """Pushes the symbols of actions where `acts`; a full stack or a symbol that's never there ends the sequence."""
    batch, slots = state.stack.shape[:2]
    capacity, flat = slots - 1, state.stack.view(-1, 2)
    base = torch.arange(0, batch * slots, slots, dtype=torch.int32, device=action.device)
    at = tables.action_start.index_select(0, action)
    end = tables.action_start.index_select(0, action + 1)
    for _ in range(tables.most_pushes):
        pushing = acts & (at < end) & (state.status == RUNNING)
        if look and not bool(pushing.any()):
            return
        full = pushing & (state.height >= capacity)
        state.status.masked_fill_(full, OVERFLOW)
        pushing &= ~full
        symbol = tables.action_push.index_select(0, torch.where(pushing, at, 0))
        slot = base + torch.where(pushing, state.height, capacity)
        flat.index_copy_(0, slot.to(torch.int64), torch.stack([symbol, state.context], 1))
        where = torch.where(pushing, _clamped(tables.push_offset, state.context) + symbol, 0)
        context = tables.pushes.index_select(0, where) - 1
        state.status.masked_fill_(pushing & (context < 0), INCONSISTENT)
        state.context.copy_(torch.where(pushing & (context >= 0), context, state.context))
        state.height += pushing.to(torch.int32)
        at += pushing.to(torch.int32)


__all__ = ["FREE", "accept"]
