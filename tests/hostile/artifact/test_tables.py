"""Files whose container is right and whose tables are not: refused, or harmless to use.

Harmless means: whatever a matcher does with the file, nothing but ArtifactError comes out, in bounded time.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from damage import budget, exercise, load_and_use, put_together, resign, take_apart
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import toy

from maskwright.workers import (
    Artifact,
    ArtifactError,
    Matcher,
    VocabularyPack,
    allocate_token_bitmask,
    machine,
    tables,
)
from maskwright.workers.container import narrow, read_container
from maskwright.workers.costs import artifact_costs
from maskwright.workers.places import Places
from maskwright.workers.tables import AUTOMATON_SECTIONS, CONTEXT_SECTIONS, MAX_PUSHES, MAX_VERDICTS, ROW_SECTIONS

PACK_ONLY = (
    "token_offsets", "token_blob", "token_flags", "stop_ids", "control_row", "entry_controls", "code_count",
    "residual_count", "residual_token", "residual_place",
)  # fmt: skip
ARTIFACT = (*AUTOMATON_SECTIONS, *ROW_SECTIONS, *CONTEXT_SECTIONS)


@pytest.fixture(scope="module")
def pack() -> VocabularyPack:
    return VocabularyPack.from_bytes(toy().pack)


def test_the_files_taken_apart_and_put_together_are_accepted(pack: VocabularyPack) -> None:
    assert load_and_use(put_together(take_apart(toy().artifact)), pack)
    assert put_together(take_apart(toy().artifact), compress=True) == toy().artifact
    assert put_together(take_apart(toy().pack)) == toy().pack


def test_bit_flips_in_every_section_with_a_right_checksum(pack: VocabularyPack) -> None:
    data = put_together(take_apart(toy().artifact))
    accepted = 0
    for section in read_container(data).sections.values():
        step = max(1, section.stored // 24)
        for at in range(section.offset, section.offset + section.stored, step):
            damaged = bytearray(data)
            damaged[at] ^= 1 << at % 8
            accepted += load_and_use(resign(bytes(damaged)), pack, at)
    assert accepted  # some flips only change the language


def test_bit_flips_in_every_section_of_the_pack() -> None:
    data = toy().pack
    checked = [s for s in read_container(data).sections.values() if s.name in (*PACK_ONLY, *ARTIFACT)]
    for section in checked:
        for at in range(section.offset, section.offset + section.stored, max(1, section.stored // 16)):
            damaged = bytearray(data)
            damaged[at] ^= 1 << at % 8
            use_pack(resign(bytes(damaged)))


def use_pack(data: bytes) -> None:
    """An accepted pack is used under an artifact that names it."""
    try:
        pack = VocabularyPack.from_bytes(data)
        header, sections = take_apart(toy().artifact)
        header["pack"] = pack.digest
        artifact = Artifact.from_bytes(put_together((header, sections)), pack)
    except ArtifactError:
        return
    exercise(artifact)


@pytest.mark.parametrize("name", ARTIFACT)
def test_missing_sections_and_wrong_dtypes(pack: VocabularyPack, name: str) -> None:
    header, sections = take_apart(toy().artifact)
    original = sections.pop(name)
    with pytest.raises(ArtifactError) as caught:
        Artifact.from_bytes(put_together((header, sections)), pack)
    assert (caught.value.section, caught.value.reason) == (name, "the section is missing")
    for dtype in (np.int32, np.uint64):
        changed = {**sections, name: original.astype(dtype)}
        with pytest.raises(ArtifactError) as caught:
            Artifact.from_bytes(put_together((header, changed)), pack)
        assert caught.value.section == name and "dtype" in caught.value.reason


@pytest.mark.parametrize("name", (*PACK_ONLY, *AUTOMATON_SECTIONS, *ROW_SECTIONS))
def test_missing_sections_of_the_pack(name: str) -> None:
    header, sections = take_apart(toy().pack)
    del sections[name]
    with pytest.raises(ArtifactError) as caught:
        VocabularyPack.from_bytes(put_together((header, sections)))
    assert caught.value.section == name


@pytest.mark.parametrize("name", ARTIFACT)
@pytest.mark.parametrize("value", [0, 1, 255, 65_535, (1 << 32) - 1])
def test_huge_and_null_values_everywhere(pack: VocabularyPack, name: str, value: int) -> None:
    header, sections = take_apart(toy().artifact)
    wide = sections[name].astype(np.uint32)
    for at in {0, len(wide) // 2, len(wide) - 1}:
        changed = wide.copy()
        changed[at] = value
        load_and_use(put_together((header, {**sections, name: changed})), pack, at)
    load_and_use(put_together((header, {**sections, name: np.full_like(wide, value)})), pack)


@pytest.mark.parametrize("name", ARTIFACT)
def test_lengths(pack: VocabularyPack, name: str) -> None:
    header, sections = take_apart(toy().artifact)
    array = sections[name]
    for changed in (array[:0], array[:-1], np.concatenate([array, array[:1]]), np.tile(array, 3)):
        load_and_use(put_together((header, {**sections, name: changed})), pack)


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(ARTIFACT),
        st.sampled_from(["set", "swap", "cut", "repeat", "fill"]),
        st.integers(0, 10_000),
        st.one_of(st.integers(0, 40), st.sampled_from([255, 256, 65_535, 1 << 31, (1 << 32) - 1])),
    ),
    min_size=1,
    max_size=4,
)


def change(array: np.ndarray, how: str, at: int, value: int) -> np.ndarray:
    out = array.astype(np.uint32)
    if not len(out):
        return np.full(1, value, np.uint32) if how == "repeat" else out
    i = at % len(out)
    if how == "set":
        out[i] = value
    elif how == "swap":
        j = value % len(out)
        out[i], out[j] = out[j], out[i]
    elif how == "cut":
        out = out[:i]
    elif how == "repeat":
        out = np.concatenate([out, out[i : i + 1 + value % 4]])
    else:
        out[:] = value
    return out


@settings(max_examples=300, deadline=None)
@given(changes=CHANGES, seed=st.integers(0, 100))
def test_random_damage(changes: list[tuple[str, str, int, int]], seed: int) -> None:
    header, sections = take_apart(toy().artifact)
    for name, how, at, value in changes:
        sections[name] = narrow(change(sections[name], how, at, value))
    load_and_use(put_together((header, sections)), VocabularyPack.from_bytes(toy().pack), seed)


# -- one rule at a time ------------------------------------------------------------------------------------


def damaged(**changes: Any) -> bytes:
    """The artifact with sections replaced by functions of themselves."""
    header, sections = take_apart(toy().artifact)
    for name, function in changes.items():
        wide = sections[name].astype(np.uint32)
        sections[name] = narrow(np.asarray(function(wide)))
    return put_together((header, sections))


def put(at: int, value: int) -> Any:
    def function(array: np.ndarray) -> np.ndarray:
        array[at] = value
        return array

    return function


# Own controls are 6.. (root 6-8, list 9-12, pair 13-16), symbols 1..6, frames 2..4; positions count from the
# first own.
RULES: list[tuple[dict[str, Any], str, str]] = [
    ({"edge_high": put(1, 0)}, "edge_low", "above its edge_high"),
    ({"edge_low": put(3, ord("(")), "edge_high": put(3, ord("a"))}, "edge_low", "above the edge before"),
    ({"edge_move": put(0, 2 * 400)}, "edge_move", "no control"),
    ({"edge_move": put(0, 2 * 400 + 1)}, "edge_move", "no control"),
    ({"edge_move": put(0, 2 * 9)}, "edge_move", "leaves its frame"),
    ({"edge_move": put(1, 2 * 5)}, "edge_move", "leaves its frame"),
    ({"edge_move": put(1, 2 * 0 + 1)}, "edge_move", "leaves its frame"),
    ({"verdict": put(1, 2)}, "verdict", "doesn't have"),
    ({"frame_verdicts": put(0, MAX_VERDICTS), "verdict": put(1, MAX_VERDICTS)}, "frame_verdicts", "below"),
    ({"frame_verdicts": put(0, 0xFFFFFFFF), "verdict": put(1, 0xC0000001)}, "frame_verdicts", "below"),
    ({"frame_controls": lambda a: a[::-1] * 0 + [1, 1, 1]}, "frame_controls", "sum"),
    ({"frame_symbols": lambda a: [5, 1, 1]}, "frame_symbols", "sum"),
    ({"symbol_callee": put(0, 9)}, "symbol_callee", "below"),
    ({"action_push": put(0, 99)}, "action_push", "below"),
    ({"action_target": put(0, 99)}, "action_target", "below"),
    ({"action_target": put(0, 7)}, "action_target", "frame that the last symbol"),
    ({"return_move": put(0, 99)}, "return_move", "no control or action"),
    ({"return_move": put(0, 98)}, "return_move", "no control or action"),
    ({"return_move": put(0, 2 * 9 + 1)}, "return_move", "caller's frame"),
    ({"return_move": lambda a: a[:-1]}, "return_move", "expected"),
    ({"row_base": put(0, 200)}, "row_base", "earlier"),
    ({"row_base": lambda a: a * 0 + np.arange(len(a)) + 6 + 1}, "row_base", "earlier"),
    ({"patch_count": put(0, 99)}, "patch_count", "sum"),
    ({"patch_flip": put(0, 9999)}, "patch_flip", "names flip"),
    ({"patch_flip": lambda a: a * 0}, "patch_flip", "isn't above"),
    ({"flip_step": put(0, 10)}, "flip_step", "steps to word"),
    ({"flip_bits": lambda a: a * 0 + 0xFFFFFFFF}, "flip_bits", "isn't text"),
    ({"flip_bits": lambda a: a[:-1]}, "flip_bits", "expected"),
    ({"context_frame": put(0, 5)}, "context_frame", "below"),
    (
        {"context_frame": lambda a: a[:0], "context_rows": lambda a: a[:0], "context_push": lambda a: a[:0]},
        "context_frame",
        "no context",
    ),
    ({"context_rows": put(0, 1)}, "context_rows", "neither"),
    ({"context_rows": put(0, 5000)}, "context_rows", "below"),
    ({"context_rows": lambda a: a[:-1]}, "context_rows", "need"),
    ({"context_push": put(0, 1)}, "context_push", "frame that its symbol calls"),
    ({"context_push": put(0, 60_000)}, "context_push", "below"),
    ({"context_push": lambda a: [*a, 0]}, "context_push", "need"),
]


@pytest.mark.parametrize(("changes", "section", "reason"), RULES)
def test_each_rule_refuses(pack: VocabularyPack, changes: dict[str, Any], section: str, reason: str) -> None:
    data = damaged(**changes)
    with pytest.raises(ArtifactError) as caught:
        Artifact.from_bytes(data, pack)
    assert (caught.value.section, caught.value.offset) == (section, read_container(data).offset(section))
    assert reason in caught.value.reason, str(caught.value)


@pytest.mark.parametrize("most", [0, machine.MOST_ROWS])
def test_the_highest_verdict_is_one(pack: VocabularyPack, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(machine, "MOST_ROWS", most)
    data = damaged(frame_verdicts=put(0, MAX_VERDICTS - 1), verdict=put(2, MAX_VERDICTS - 1))
    assert load_and_use(data, pack)


def test_more_numbers_than_a_move_can_tell_are_refused(pack: VocabularyPack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_NUMBERS", 17)
    with pytest.raises(ArtifactError, match="17 controls, 9 actions: too many"):
        Artifact.from_bytes(toy().artifact, pack)
    monkeypatch.setattr(tables, "MAX_NUMBERS", 18)
    Artifact.from_bytes(toy().artifact, pack)


def test_a_pack_of_many_controls_takes_memory_as_its_file_does() -> None:
    n = 1 << 17
    header, sections = take_apart(toy().pack)
    for name in ("edge_count", "verdict", "control_row", "residual_count"):
        sections[name] = narrow(np.concatenate([sections[name], np.zeros(n, np.int64)]))
    sections["frame_controls"] = sections["frame_controls"].astype(np.uint32)
    sections["frame_controls"][-1] += n
    data = put_together((header, sections), compress=True)
    assert peak_memory(lambda: VocabularyPack.from_bytes(data)) < 256 * n


def peak_memory(run: Callable[[], object]) -> int:
    """Bytes that are held at most while it runs, beyond those of before."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_an_action_pushes_a_bounded_number(pack: VocabularyPack) -> None:
    header, sections = take_apart(toy().artifact)
    listing = [1, *[4] * MAX_PUSHES]  # root calls list, list calls list, and so on
    push = sections["action_push"].tolist()
    count = sections["action_count"].tolist()
    sections["action_push"] = narrow(np.array([*listing, *push[count[0] :]]))
    for n, accepted in ((MAX_PUSHES, True), (MAX_PUSHES + 1, False)):
        sections["action_push"] = narrow(np.array([*listing[:n], *push[count[0] :]]))
        sections["action_count"] = narrow(np.array([n, *count[1:]]))
        assert load_and_use(put_together((header, sections)), pack) == accepted


def test_returns_that_push_for_ever_end(pack: VocabularyPack) -> None:
    """A list in a list returns to pushing itself, at a control that returns at once."""
    header, sections = take_apart(toy().artifact)
    count, push = sections["action_count"].tolist(), sections["action_push"].tolist()
    action = len(toy().pack_tables.automaton.action_target) + len(count)
    for pushes in ([4], [4] * MAX_PUSHES):
        sections["action_count"] = narrow(np.array([*count, len(pushes)]))
        sections["action_push"] = narrow(np.array([*push, *pushes]))
        sections["action_target"] = narrow(np.array([*take_apart(toy().artifact)[1]["action_target"].tolist(), 12]))
        moves = take_apart(toy().artifact)[1]["return_move"].astype(np.uint32)
        moves[4] = 2 * action + 2  # of symbol 4: list calls list
        sections["return_move"] = narrow(moves)
        matcher = Matcher(Artifact.from_bytes(put_together((header, sections)), pack))
        assert matcher.accept_string("[[")
        begin = time.monotonic()
        assert not matcher.accept_string("]")
        assert matcher.min_tokens_to_finish() == math.inf and matcher.completions_left() == 0
        places = Places(artifact_costs(matcher.artifact), *matcher._state[:3:2])
        closing = toy().vocabulary.token_bytes.index(b"]")
        assert places.run(np.array([closing])).tolist() == [0]
        assert time.monotonic() - begin < 4
        assert matcher.where().may_end is False


@pytest.mark.parametrize("target", [9, 12])
def test_what_returns_push_is_bounded_in_questions_and_budgets_too(pack: VocabularyPack, target: int) -> None:
    """As above, from a control that may return and may go on; at 9 that's where the pushes lead, too."""
    header, sections = take_apart(toy().artifact)
    action = len(toy().pack_tables.automaton.action_target) + len(sections["action_count"])
    for name, more in (("action_count", [MAX_PUSHES]), ("action_push", [4] * MAX_PUSHES), ("action_target", [target])):
        sections[name] = narrow(np.concatenate([sections[name], np.array(more)]))
    sections["return_move"] = narrow(put(4, 2 * action + 2)(sections["return_move"].astype(np.uint32)))
    sections["verdict"] = put(3, 1)(sections["verdict"])
    artifact = Artifact.from_bytes(put_together((header, sections)), pack)

    going_on = np.array([toy().vocabulary.token_bytes.index(b"a")])

    def ask() -> None:
        for text in ("[", "[["):
            matcher = Matcher(artifact)
            assert matcher.accept_string(text)
            assert set(b"([abcd") <= set(matcher.expected_bytes())
            assert Places(artifact_costs(artifact), *matcher._state[:3:2]).run(going_on)[0]
            budget(matcher, allocate_token_bitmask(1, artifact.vocab_size))

    assert peak_memory(ask) < 32 << 20


def test_a_mask_that_the_automaton_does_not_take_is_an_error(pack: VocabularyPack) -> None:
    header, sections = take_apart(toy().artifact)
    words = pack.text_words
    rows = len(sections["row_base"])
    sections["row_base"] = narrow(np.zeros(rows, np.int64))
    sections["patch_count"] = narrow(np.full(rows, len(words)))
    sections["patch_flip"] = narrow(np.tile(np.minimum(np.arange(len(words)), 1), rows))
    sections["flip_step"] = sections["patch_flip"][: len(words)]
    sections["flip_bits"] = words
    artifact = Artifact.from_bytes(put_together((header, sections)), pack)
    matcher = Matcher(artifact)
    with pytest.raises(ArtifactError, match="the automaton doesn't take it"):
        matcher.accept_token(0)
    assert matcher.where().expected == b"["


@pytest.mark.parametrize(("n", "accepted"), [(1, True), (16, True), (17, False), (200_000, False)])
def test_chains_of_rows_are_bounded(pack: VocabularyPack, n: int, accepted: bool) -> None:
    header, sections = take_apart(toy().artifact)
    first = pack.rows.n_rows
    sections["row_base"] = narrow(np.arange(first, first + n))
    sections["patch_count"] = narrow(np.zeros(n, np.int64))
    sections["patch_flip"] = np.zeros(0, np.uint8)
    rows = sections["context_rows"].astype(np.uint32)
    rows[rows >= 2] = 2 * (first + n)
    sections["context_rows"] = narrow(rows)
    assert load_and_use(put_together((header, sections)), pack) == accepted
