"""The writer: write and read is identity, the same input gives the same bytes, and the bytes are those that
FORMAT.md tells.
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy import toy

from maskwright.compiler import artifact as package
from maskwright.compiler.artifact import (
    ArtifactMeta,
    PackMeta,
    VocabularyData,
    read_pack_tables,
    write_artifact,
    write_pack,
)
from maskwright.compiler.tokens.tables import NO_BASE, UNREACHED
from maskwright.workers import ArtifactError, VocabularyPack
from maskwright.workers.container import file_digest, narrow, read_container, write_container
from maskwright.workers.tables import read_rows

META = ArtifactMeta("regex", "cd" * 32, "{}", "00" * 32, "11" * 32, "0.0.0")


def same(one: Any, two: Any) -> None:
    """Equal tables, arrays by value and dtype."""
    for field in dataclasses.fields(one):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if dataclasses.is_dataclass(a):
            same(a, b)
        elif isinstance(a, np.ndarray):
            assert a.dtype == b.dtype and a.tolist() == b.tolist(), field.name
        else:
            assert a == b, field.name


def test_a_pack_written_and_read_is_the_same() -> None:
    same(toy().pack_tables, read_pack_tables(VocabularyPack.from_bytes(toy().pack)))


def test_an_artifact_holds_its_tables() -> None:
    c, t = read_container(toy().artifact), toy().tables
    rows, push = c.array("context_rows").astype(np.int64), c.array("context_push").astype(np.int64)
    assert np.where(rows == 0, UNREACHED, rows - 4).tolist() == t.contexts.context_rows.tolist()
    assert np.where(push == 0, UNREACHED, push - 1).tolist() == t.contexts.context_push.tolist()
    base = c.array("row_base").astype(np.int64)
    assert np.where(base == 0, NO_BASE, base - 1).tolist() == t.rows.row_base.tolist()
    move = c.array("edge_move").astype(np.int64)
    assert np.where(move & 1, -2 - (move >> 1), move >> 1).tolist() == t.automaton.edge_move.tolist()
    for name in ("edge_low", "edge_high", "frame_verdicts", "action_target", "action_push", "symbol_callee"):
        assert c.array(name).tolist() == getattr(t.automaton, name).tolist()
    rows = read_rows(c, len(toy().pack_tables.rows.row_base), np.full(10, 0xFFFFFFFF, np.uint32))
    assert rows.patch_start.tolist() == t.rows.patch_start.tolist()
    assert rows.patch_word.tolist() == t.rows.patch_word.tolist()
    assert rows.patch_xor.tolist() == t.rows.patch_xor.tolist()
    assert c.header["start"] == t.start and c.json("frame_names") == [list(n) for n in t.frame_names]


def test_bytes_do_not_depend_on_the_process() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1] / 'workers')!r}); "
        "from toy import toy; "
        "from maskwright.workers.container import file_digest as d; print(d(toy().artifact), d(toy().pack))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "77"}
    )
    assert run.stdout.split() == [file_digest(toy().artifact), file_digest(toy().pack)]


def test_integers_are_stored_in_the_smallest_dtype() -> None:
    tops = [
        (0, "uint8"),
        (255, "uint8"),
        (256, "uint16"),
        (65_535, "uint16"),
        (65_536, "uint32"),
        (2**32 - 1, "uint32"),
    ]
    for top, dtype in tops:
        assert narrow(np.array([0, top])).dtype == dtype
    for bad in ([-1], [2**32]):
        with pytest.raises(ValueError, match="32 bits"):
            narrow(np.array(bad))


def test_compression_only_where_it_pays() -> None:
    noise = np.random.default_rng(0).integers(0, 256, 5000).astype(np.uint8)
    half = np.where(np.arange(5000) < 2400, noise, 0)  # a stream's few bytes more leave less than half
    less = np.where(np.arange(5000) < 2600, noise, 0)
    sections = [("few", np.zeros(2048, np.uint8)), ("zeros", np.zeros(2049, np.uint8)), ("noise", noise)]
    sections += [("half", half.astype(np.uint8)), ("less", less.astype(np.uint8))]
    c = read_container(write_container({}, sections, compress=True))
    assert {s.name: s.codec for s in c.sections.values()} == {
        "few": "raw", "zeros": "zlib", "noise": "raw", "half": "zlib", "less": "raw",
    }  # fmt: skip
    for name, array in sections:
        assert c.array(name).tolist() == array.tolist()
    c = read_container(write_container({}, sections, compress=False))
    assert {s.codec for s in c.sections.values()} == {"raw"}
    assert {s.offset % 64 for s in c.sections.values()} == {0}


@pytest.mark.parametrize("n", range(0, 140, 7))
def test_headers_of_any_length(n: int) -> None:
    data = write_container({"x": "y" * n}, [("a", np.arange(n, dtype=np.uint16))], compress=False)
    assert read_container(data).array("a").tolist() == list(range(n))


@pytest.mark.parametrize(
    "sections",
    [
        [("A", np.zeros(1, np.uint8))],
        [("a", np.zeros((1, 1), np.uint8))],
        [("a", np.zeros(1, np.float32))],
        [("a", np.zeros(1, np.int64))],
        [("a", np.zeros(1, np.uint8)), ("a", np.zeros(1, np.uint8))],
    ],
)
def test_sections_that_cannot_be_written(sections: Any) -> None:
    with pytest.raises(ValueError):
        write_container({}, sections, compress=False)


def test_tables_that_cannot_be_written() -> None:
    a = toy().tables.automaton
    move = a.edge_move.copy()
    move[0] = -1
    with pytest.raises(ValueError, match="no move"):
        write_artifact(dataclasses.replace(toy().tables, automaton=dataclasses.replace(a, edge_move=move)), meta=META)
    words = VocabularyData([b"a"], {0: "<a>"}, [])
    with pytest.raises(ValueError, match="special and has bytes"):
        write_pack(toy().pack_tables, vocabulary=words, meta=PackMeta("", "0"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("code_count", [3, 1]),
        ("code_verdict", [0, 0, 300, 0, 0]),
        ("hot", [1, 1, 2, 1, 1, 1]),
        ("hot", [1]),
        ("entry_names", list(b'["word"]')),
        ("entry_names", list(b'["word", 1]')),
        ("frame_names", list(b'[["word", ""]]')),
        ("frame_names", list(b'[["word", ""], ["tree"]]')),
    ],
)
def test_what_only_the_compiler_reads_is_checked_there(name: str, value: list[int]) -> None:
    c = read_container(toy().pack)
    header = {k: v for k, v in c.header.items() if k != "sections"}
    sections = {n: c.array(n) for n in c.sections} | {name: narrow(np.array(value))}
    pack = VocabularyPack.from_bytes(write_container(header, sections.items(), compress=False))
    with pytest.raises(ArtifactError) as caught:
        read_pack_tables(pack)
    assert caught.value.section == name


def test_the_example_in_the_format_document_is_what_the_writer_makes() -> None:
    text = (Path(package.__file__).parent / "FORMAT.md").read_text()
    dump = "".join(re.findall(r"^    [0-9a-f]{4}  ((?:[0-9a-f]{2} ?)+)", text, re.M))
    example = write_container(
        {"kind": "example"},
        [("verdict", np.array([0, 1], np.uint8)), ("edge_move", np.array([2, 700], np.uint16))],
        compress=True,
    )
    assert bytes.fromhex(dump) == example
