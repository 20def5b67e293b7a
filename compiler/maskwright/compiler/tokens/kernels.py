"""The hot loops, compiled by numba: filling the trie, walking it, running suffixes, counting characters.

Kernels take flat arrays and sizes as arguments only (numba freezes module globals into its disk cache) and allocate
nothing but their results. A machine (`machine.Machine`) is a NamedTuple of arrays; moves are as in `tables.py`. What a
run does with a byte is `read_byte`, the same for every walk.

The walk's own stack is kept in an arena of (symbol, parent) entries. `top[d]` is the arena's height when depth d's
state was made; a sibling starts again at its parent's height, so entries that are still referred to are never
overwritten, and backtracking costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.compiler.jit import borrowing, inlined, kernel

if TYPE_CHECKING:
    from maskwright.compiler.tokens.machine import Machine
    from maskwright.compiler.tokens.trie import RestTries, Trie

Array = np.ndarray[Any, Any]

FALSE = -1
TRUE = -2
FULL = -3
"""What a rest is worth, besides a code; FULL: the arena is."""
DEAD, NO_ROOM, LEFT = -1, -2, -3
"""What `read_byte` ends in instead of a control; LEFT - v: the frame in which the run began was left with verdict v."""
OPEN_REST, DEAD_REST = -1, -2
"""What `count_characters` says of a rest that doesn't close the string, and of one that can't go on in a string."""


@kernel
def fill_trie(order: Array, text: Array, start: Array, longest: int) -> tuple[Array, Array, Array, Array]:
    """Preorder byte, depth, end and token_start of the trie over the tokens of `order` (sorted by bytes)."""
    most = 1
    for t in order:
        most += start[t + 1] - start[t]
    byte = np.zeros(most, np.uint8)
    depth = np.zeros(most, np.int32)
    end = np.zeros(most, np.int32)
    token_start = np.zeros(most + 1, np.int32)
    path = np.zeros(longest + 1, np.int32)
    nodes = 1
    have = 0
    for k in range(len(order)):
        t = order[k]
        length = start[t + 1] - start[t]
        same = 0
        while same < have and same < length and byte[path[same + 1]] == text[start[t] + same]:
            same += 1
        for d in range(have, same, -1):
            end[path[d]] = nodes
        for d in range(same + 1, length + 1):
            byte[nodes] = text[start[t] + d - 1]
            depth[nodes] = d
            token_start[nodes] = k
            path[d] = nodes
            nodes += 1
        have = length
    for d in range(have, -1, -1):
        end[path[d]] = nodes
    token_start[nodes] = len(order)
    # A node's tokens are those counted before its successor was made: equal tokens follow each other in `order`.
    return byte[:nodes].copy(), depth[:nodes].copy(), end[:nodes].copy(), token_start[: nodes + 1].copy()


@inlined
def find_move(m: Machine, control: int, byte: int) -> int:
    if control < m.first_control:
        return m.base_moves[control, byte]  # type: ignore[no-any-return]
    return m.own_moves[control - m.first_control, byte]  # type: ignore[no-any-return]


@inlined
def enter(
    m: Machine, move: int, arena_symbol: Array, arena_parent: Array, stack: int, top: int
) -> tuple[int, int, int]:
    """Goes where a move leads (DEAD where it's none) and pushes its symbols: control or NO_ROOM, stack, height."""
    if move < DEAD:
        action = -2 - move
        move = m.action_target[action]
        for k in range(m.action_start[action], m.action_start[action + 1]):
            if top >= len(arena_symbol):
                move = NO_ROOM
                break
            arena_symbol[top], arena_parent[top] = m.action_push[k], stack
            stack = top
            top += 1
    return move, stack, top


@inlined
def read_byte(
    m: Machine, byte: int, arena_symbol: Array, arena_parent: Array, control: int, stack: int, top: int
) -> tuple[int, int, int]:
    """A run's step: returns that `byte` asks for, then the move on it. The new control, stack and arena height, or
    instead of the control how the run ended without reading: DEAD, NO_ROOM, LEFT - verdict.
    """
    move = find_move(m, control, byte)
    while move == DEAD:
        v = m.verdict[control]
        if v < 0:
            control = DEAD
            break
        if stack < 0:
            control = LEFT - v
            break
        back = m.return_move[m.return_start[arena_symbol[stack]] + v]
        control, stack, top = enter(m, back, arena_symbol, arena_parent, arena_parent[stack], top)
        if control < 0:
            break
        move = find_move(m, control, byte)
    if move != DEAD:
        control, stack, top = enter(m, move, arena_symbol, arena_parent, stack, top)
    return control, stack, top


@borrowing
def walk_controls(
    m: Machine,
    trie: Trie,
    controls: Array,
    follow: Array,
    follow_rows: Array,
    control_at: Array,
    stack_at: Array,
    top_at: Array,
    arena_symbol: Array,
    arena_parent: Array,
    local: Array,
    left_token: Array,
    left_offset: Array,
    left_verdict: Array,
    local_end: Array,
    left_end: Array,
) -> int:
    """`walk` of one control after the other, as long as there's room for every token. Returns how many were walked, -1
    when the arena is full. `follow[slice(*follow_rows[i])]` is what may follow control i's frame.
    """
    locals_, lefts, room = 0, 0, len(local) - len(trie.order)
    for i in range(len(controls)):
        if locals_ > room or lefts > room:
            return i
        locals_, lefts = walk(
            m, trie, controls[i], follow[follow_rows[i, 0] : follow_rows[i, 1]], control_at, stack_at, top_at,
            arena_symbol, arena_parent, local, left_token, left_offset, left_verdict, locals_, lefts,
        )  # fmt: skip
        if locals_ < 0:
            return -1
        local_end[i], left_end[i] = locals_, lefts
    return len(controls)


@borrowing
def walk(
    m: Machine,
    trie: Trie,
    control: int,
    follow: Array,
    control_at: Array,
    stack_at: Array,
    top_at: Array,
    arena_symbol: Array,
    arena_parent: Array,
    local: Array,
    left_token: Array,
    left_offset: Array,
    left_verdict: Array,
    locals_: int,
    lefts: int,
) -> tuple[int, int]:
    """Walks the whole vocabulary from `control` with an empty stack of its own.

    Appends to `local`, which holds `locals_`, the tokens that run within what the walk pushed, and to `left_*`, which
    hold `lefts`, the residuals: tokens that leave the frame with a verdict before byte `offset`, which must be in
    `follow` [verdicts, 256] (the last row holds for all further verdicts). Returns both counts, -1 when the arena is
    full.
    """
    control_at[0], stack_at[0], top_at[0] = control, -1, 0
    n, nodes = 1, len(trie.byte)
    while n < nodes:
        d = trie.depth[n]
        b = trie.byte[n]
        c, s, top = read_byte(m, b, arena_symbol, arena_parent, control_at[d - 1], stack_at[d - 1], top_at[d - 1])
        if c >= 0:
            for k in range(trie.token_start[n], trie.token_start[n + 1]):
                local[locals_] = trie.order[k]
                locals_ += 1
            control_at[d], stack_at[d], top_at[d] = c, s, top
            n += 1
            continue
        if c == NO_ROOM:
            return -1, -1
        if c <= LEFT:
            v = LEFT - c
            if follow[min(v, len(follow) - 1), b]:
                for k in range(trie.token_start[n], trie.token_start[trie.end[n]]):
                    left_token[lefts], left_offset[lefts], left_verdict[lefts] = trie.order[k], d - 1, v
                    lefts += 1
        n = trie.end[n]
    return locals_, lefts


@inlined
def mix(number: int, answer: int) -> tuple[np.uint64, np.uint64]:
    """Two well mixed words for a pair (splitmix64's finaliser, and that once more)."""
    z = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(answer) * np.uint64(0xD1B54A32D192ED03)
    z += np.uint64(0x2545F4914F6CDD1D)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    y = (z ^ (z >> np.uint64(29))) * np.uint64(0x8CB92BA72F3D8DD7)
    return z, y ^ (y >> np.uint64(32))


@borrowing
def sum_answers(
    m: Machine,
    trie: Trie,
    control: int,
    mark_dead: bool,
    follow: Array,
    stands_for: Array,
    n_suffixes: int,
    suffix_of: Array,
    place: Array,
    control_at: Array,
    stack_at: Array,
    top_at: Array,
    arena_symbol: Array,
    arena_parent: Array,
    total: Array,
) -> bool:
    """Adds to `total` [2, suffixes] what a control answers to each rest of the trie; see `merge_rests`.

    Answers are 1: read, 2: dead (added only with `mark_dead`), 3 + verdict * n_suffixes + what remains; a rest whose
    first byte the control doesn't take adds nothing. Returns False when the arena is full.
    """
    control_at[0], stack_at[0], top_at[0] = control, -1, 0
    good_low, good_high = mix(control, 1)
    dead_low, dead_high = mix(control, 2)
    n, nodes = 1, len(trie.byte)
    while n < nodes:
        d = trie.depth[n]
        b = trie.byte[n]
        c, s, top = read_byte(m, b, arena_symbol, arena_parent, control_at[d - 1], stack_at[d - 1], top_at[d - 1])
        if c >= 0:
            for k in range(trie.token_start[n], trie.token_start[n + 1]):
                total[0, trie.order[k]] += good_low
                total[1, trie.order[k]] += good_high
            control_at[d], stack_at[d], top_at[d] = c, s, top
            n += 1
            continue
        if c == NO_ROOM:
            return False
        v = LEFT - c if c <= LEFT and follow[min(LEFT - c, len(follow) - 1), b] else -1
        if d > 1 and (v >= 0 or mark_dead):
            for k in range(trie.token_start[n], trie.token_start[trie.end[n]]):
                x = trie.order[k]
                low, high = dead_low, dead_high
                if v >= 0:
                    rest = stands_for[suffix_of[place[x] + d - 1]]
                    if rest >= 0:
                        low, high = mix(control, 3 + v * n_suffixes + rest)
                    elif not mark_dead:
                        continue
                total[0, x] += low
                total[1, x] += high
        n = trie.end[n]
    return True


@inlined
def run_suffix(
    m: Machine,
    move: int,
    suffix: int,
    n_suffixes: int,
    text: Array,
    suffix_of: Array,
    at: int,
    stop: int,
    arena_symbol: Array,
    arena_parent: Array,
) -> int:
    """What suffix `text[at:stop]` is worth from a move: FALSE, TRUE, or the code of what's left when the frame that the
    move leads to is left too. Suffix 0, the empty rest, asks whether the text may end. FULL when the arena is full.
    """
    c, s, top = enter(m, move, arena_symbol, arena_parent, -1, 0)
    while suffix != 0 and at < stop and c >= 0:
        c, s, top = read_byte(m, text[at], arena_symbol, arena_parent, c, s, top)
        at += 1
    if c >= 0 and suffix != 0:
        return TRUE
    while c >= 0:  # the empty rest: whatever is open has to return
        v = m.verdict[c]
        if v < 0 or s < 0:
            c = LEFT - v if v >= 0 else DEAD
            break
        back = m.return_move[m.return_start[arena_symbol[s]] + v]
        c, s, top = enter(m, back, arena_symbol, arena_parent, arena_parent[s], top)
    if c == NO_ROOM:
        return FULL
    if c == DEAD:
        return FALSE
    rest = suffix_of[at - 1] if suffix != 0 else 0
    return (LEFT - c) * n_suffixes + rest


@borrowing
def run_suffixes(
    m: Machine,
    returns: Array,
    codes: Array,
    n_suffixes: int,
    text: Array,
    suffix_of: Array,
    place: Array,
    end: Array,
    arena_symbol: Array,
    arena_parent: Array,
    out: Array,
) -> bool:
    """`run_suffix` of each code, verdict * n_suffixes + suffix, for a caller that goes on in `returns[verdict]`.
    Returns False when the arena is full.
    """
    for i in range(len(codes)):
        suffix = codes[i] % n_suffixes
        out[i] = run_suffix(
            m, returns[codes[i] // n_suffixes], suffix, n_suffixes, text, suffix_of, place[suffix], end[suffix],
            arena_symbol, arena_parent,
        )  # fmt: skip
        if out[i] == FULL:
            return False
    return True


@borrowing
def run_rests(
    m: Machine,
    returns: Array,
    rests: RestTries,
    n_suffixes: int,
    suffix_of: Array,
    control_at: Array,
    stack_at: Array,
    top_at: Array,
    arena_symbol: Array,
    arena_parent: Array,
    out: Array,
) -> bool:
    """As `run_suffixes`, for codes that were put into tries once: what they begin with is read once, and what can't be
    read is passed over. Empty rests aren't looked at. `out` holds FALSE before. Returns False when the arena is full.
    """
    for start in range(len(returns)):
        c, s, top = enter(m, returns[start], arena_symbol, arena_parent, -1, 0)
        if c == NO_ROOM:
            return False
        if c == DEAD:
            continue
        control_at[0], stack_at[0], top_at[0] = c, s, top
        n, stop = rests.root[start] + 1, rests.root[start + 1]
        while n < stop:
            d, b = rests.depth[n], rests.byte[n]
            c, s, top = read_byte(m, b, arena_symbol, arena_parent, control_at[d - 1], stack_at[d - 1], top_at[d - 1])
            if c >= 0:
                for k in range(rests.code_start[n], rests.code_start[n + 1]):
                    out[rests.order[k]] = TRUE
                control_at[d], stack_at[d], top_at[d] = c, s, top
                n += 1
                continue
            if c == NO_ROOM:
                return False
            if c <= LEFT:
                for k in range(rests.code_start[n], rests.code_start[rests.end[n]]):
                    i = rests.order[k]
                    out[i] = (LEFT - c) * n_suffixes + suffix_of[rests.place[i] + d - 1]
            n = rests.end[n]
    return True


@kernel
def count_characters(
    moves: Array, quote: int, text: Array, place: Array, end: Array, suffix_of: Array
) -> tuple[Array, Array]:
    """For each suffix, read inside a JSON string: how many characters it needs before it ends or closes the string,
    and the rest behind the quote (0: nothing), OPEN_REST when it doesn't close, DEAD_REST when it can't be read.

    `moves` [states, 256] is the automaton of a string's inside; state 0 is the one between characters.
    """
    characters = np.zeros(len(place), np.int64)
    rest = np.full(len(place), OPEN_REST, np.int64)
    for n in range(len(place)):
        state = 0
        for at in range(place[n], end[n]):
            if state == 0 and text[at] == quote:
                rest[n] = 0 if at + 1 == end[n] else suffix_of[at + 1]
                break
            if state == 0:
                characters[n] += 1
            state = moves[state, text[at]]
            if state < 0:
                rest[n] = DEAD_REST
                break
    return characters, rest
