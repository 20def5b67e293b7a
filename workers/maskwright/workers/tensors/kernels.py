"""The Triton kernels: masks on logits, and one token for each of a batch of sequences.

`_mask_logits`: a program for each row and block of columns; it loads the words of its bits and stores minus infinity
where one is clear, without reading logits. `_accept_tokens`: a program of one warp for each sequence; its walk is a
loop of scalar loads, which differs from sequence to sequence in length and costs no launch. Rules are those of
`walk.py`; `tests/unit/workers` runs both forms against each other under Triton's interpreter
(TRITON_INTERPRET=1, set before this module is imported).

Parameters of kernels have no annotations: Triton would look for their names on the device. A pushed symbol may be
popped in the same token: stores to the stack are followed by a barrier, since the lanes of a program that load them
needn't be those that stored. The first launch compiles, so it must come before a graph is captured.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
import triton
import triton.language as tl

from maskwright.workers.state import MAX_RETURN_PUSHES
from maskwright.workers.tensors.state import BatchState
from maskwright.workers.tensors.tables import DeviceTables

BLOCK = 4096


@triton.jit
def _mask_logits(
    logits,
    bits,
    logit_rows,
    bit_rows,
    n_rows,
    columns,
    width,
    logit_stride,
    bit_stride,
    CHOOSE_LOGITS: tl.constexpr,
    CHOOSE_BITS: tl.constexpr,
    SHIFT: tl.constexpr,
    SIZE: tl.constexpr,
):
    i = tl.program_id(0)
    row = i.to(tl.int64)
    if CHOOSE_LOGITS:
        row = tl.load(logit_rows + i).to(tl.int64)
    bit_row = i.to(tl.int64)
    if CHOOSE_BITS:
        bit_row = (tl.load(bit_rows + i) >> SHIFT).to(tl.int64)
    at = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    end = tl.where((row >= 0) & (row < n_rows), width, 0)
    word = tl.load(bits + bit_row * bit_stride + (at >> 5), mask=at < tl.minimum(end, columns), other=0)
    clear = ((word >> (at & 31)) & 1) == 0
    tl.store(logits + row * logit_stride + at, float("-inf"), mask=(at < end) & clear)


def mask_logits(
    logits: torch.Tensor,
    bits: torch.Tensor,
    columns: int,
    logit_rows: torch.Tensor | None,
    bit_rows: torch.Tensor | None,
    shift: int = 0,
) -> None:
    """logits [rows, width], bits int32 [.., words], both with adjacent columns. Logits row `logit_rows[i]` (default i)
    is masked by bits row `bit_rows[i] >> shift` (default i); rows of logits that don't exist are left out.
    """
    n = len(logits) if logit_rows is None else len(logit_rows)
    if not n or not logits.shape[1]:
        return
    with _on(logits.device):
        _mask_logits[(n, triton.cdiv(logits.shape[1], BLOCK))](
            logits, bits, bits if logit_rows is None else logit_rows, bits if bit_rows is None else bit_rows,
            len(logits), columns, logits.shape[1], logits.stride(0), bits.stride(0),
            CHOOSE_LOGITS=logit_rows is not None, CHOOSE_BITS=bit_rows is not None, SHIFT=shift, SIZE=BLOCK,
        )  # fmt: skip


def _on(device: torch.device) -> AbstractContextManager[None]:
    """Triton launches on the current device."""
    found: AbstractContextManager[None] = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    return found


@triton.jit
def _accept_tokens(
    tokens, accepted,
    controls, contexts, state_entries, statuses, heights, stack,
    class_of, moves, action_start, action_push, action_target, return_start, returns,
    push_offset, pushes, row_offset, entries, rows, is_stop, token_start,
    token_bytes,
    vocab_size, words, capacity, n_classes, max_pushes,
):  # fmt: skip
    i = tl.program_id(0)
    given = tl.load(tokens + i).to(tl.int64)
    inside = (given >= 0) & (given < vocab_size)
    token = tl.where(inside, given, 0).to(tl.int32)
    status = tl.load(statuses + i)
    entry = tl.load(state_entries + i)
    word = tl.load(rows + (entry >> 1).to(tl.int64) * words + (token >> 5))
    legal = inside & (((word >> (token & 31)) & 1) == 1) & (status < 3)
    tl.store(accepted + i, legal.to(tl.int8))
    if legal & (status == 0):
        if (tl.load(is_stop + token) != 0) & ((entry & 1) == 1):
            status = 1
            entry = 3
        else:
            control = tl.load(controls + i)
            context = tl.load(contexts + i)
            height = tl.load(heights + i)
            own = stack + i.to(tl.int64) * (2 * capacity + 2)
            at = tl.load(token_start + token)
            end = tl.load(token_start + token + 1)
            spent = 0
            going = 1
            while going == 1:
                over = at >= end
                byte = tl.load(token_bytes + tl.minimum(at, end - 1)).to(tl.int32)
                column = tl.where(over, n_classes - 1, tl.load(class_of + byte))
                move = tl.load(moves + control * n_classes + column)
                if over & ((move == -1) | (height == 0)):
                    going = 0
                else:
                    popped = (move < -1) & ((move & 1) == 1)
                    if popped:
                        if height == 0:
                            move = -1
                        else:
                            height -= 1
                            symbol = tl.load(own + 2 * height)
                            context = tl.load(own + 2 * height + 1)
                            move = tl.load(returns + tl.load(return_start + symbol) + ((-3 - move) >> 1))
                    else:
                        at += 1
                    if move >= 0:
                        control = move
                    elif (move == -1) | (popped & (spent > max_pushes)):
                        status = 4
                        going = 0
                    else:
                        action = (-2 - move) >> 1
                        control = tl.load(action_target + action)
                        first = tl.load(action_start + action)
                        last = tl.load(action_start + action + 1)
                        if popped:
                            spent += last - first
                        while (first < last) & (status == 0):
                            if height >= capacity:
                                status = 3
                            else:
                                pushed = tl.load(action_push + first)
                                tl.store(own + 2 * height, pushed)
                                tl.store(own + 2 * height + 1, context)
                                context = tl.load(pushes + tl.load(push_offset + context) + pushed) - 1
                                height += 1
                                first += 1
                                if context < 0:
                                    status = 4
                        tl.debug_barrier()
                        if status != 0:
                            going = 0
            if status == 0:
                entry = tl.load(entries + tl.load(row_offset + context) + control)
                if entry == 0:
                    status = 4
            if status != 0:
                entry = 2
            tl.store(controls + i, control)
            tl.store(contexts + i, context)
            tl.store(heights + i, height)
        tl.store(statuses + i, status)
        tl.store(state_entries + i, entry)


def accept_tokens(tables: DeviceTables, state: BatchState, tokens: torch.Tensor, accepted: torch.Tensor) -> None:
    """Advances `state` by tokens, [B]; writes which were legal to `accepted`, bool [B]."""
    t, s = tables, state
    with _on(tokens.device):
        _accept_tokens[(len(tokens),)](
            tokens, accepted.view(torch.int8), s.control, s.context, s.entry, s.status, s.height, s.stack,
            t.class_of, t.moves, t.action_start, t.action_push, t.action_target, t.return_start, t.returns,
            t.push_offset, t.pushes, t.row_offset, t.entries, t.rows, t.is_stop, t.token_start, t.token_bytes,
            t.vocab_size, t.rows.shape[1], s.stack.shape[1] - 1, t.moves.shape[1], MAX_RETURN_PUSHES, num_warps=1,
        )  # fmt: skip
