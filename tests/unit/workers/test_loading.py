"""Packs and artifacts as files: what they tell, where packs are found, sharing between threads, what
importing needs.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest
from toy import EXTRA, VOCAB_SIZE, toy

from maskwright.compiler import Compiler, Vocabulary
from maskwright.compiler.tokens import build
from maskwright.workers import (
    Artifact,
    ArtifactError,
    Matcher,
    PackNotFound,
    VocabularyPack,
    WrongVocabulary,
    allocate_token_bitmask,
    rows,
)
from maskwright.workers.container import file_digest


@pytest.fixture
def pack() -> VocabularyPack:
    return VocabularyPack.from_bytes(toy().pack)


def test_a_pack_tells_its_vocabulary(pack: VocabularyPack) -> None:
    data = toy().vocabulary
    assert pack.vocab_size == VOCAB_SIZE
    assert pack.digest == file_digest(toy().pack)
    assert [pack.token_bytes(i) for i in range(VOCAB_SIZE)] == list(data.token_bytes)
    assert pack.token_bytes(-1) is None and pack.token_bytes(VOCAB_SIZE) is None
    assert {i: pack.special_text(i) for i in data.special_texts} == data.special_texts
    assert pack.special_text(0) is None and pack.special_text(VOCAB_SIZE) is None
    assert pack.stop_token_ids == (300,)
    text = {i for i, b in enumerate(data.token_bytes) if b is not None}
    bits = np.unpackbits(pack.text_words.view(np.uint8), bitorder="little")
    assert set(np.flatnonzero(bits).tolist()) == text


def test_further_sections_come_back_as_they_were(pack: VocabularyPack) -> None:
    for name, array in EXTRA.items():
        found = pack.section(name)
        assert found.dtype == array.dtype and (found == array).all()
        with pytest.raises(ValueError):
            found[0] = 1
    assert set(EXTRA) < set(pack.section_names())
    with pytest.raises(ArtifactError, match="missing"):
        pack.section("nothing")


def test_an_artifact_tells_its_origin(pack: VocabularyPack) -> None:
    a = Artifact.from_bytes(toy().artifact, pack)
    assert a.vocab_size == VOCAB_SIZE and a.digest == file_digest(toy().artifact)
    assert a.header["source"] == {"kind": "regex", "digest": "ab" * 32}
    assert (a.header["pack"], a.header["vocabulary"]) == (pack.digest, pack.fingerprint)
    assert a.header["options"] == {"x": 1} and a.header["compiler"] == "0.0.0"
    assert a.frame_name(3) == ("list", "/items") and a.frame_name(1) == ("tree", "")
    assert sum(stored for _, stored, _ in a.section_sizes()) < len(toy().artifact)
    with pytest.raises(ArtifactError):
        a.frame_name(99)


def test_memory_grows_with_the_rows_used(pack: VocabularyPack) -> None:
    a = Artifact.from_bytes(toy().artifact, pack)
    before = a.memory_size_bytes
    m = Matcher(a)
    mask = np.zeros((1, 10), np.int32)
    m.fill_next_token_bitmask(mask)
    assert m.accept_string("[(()):a,")
    m.fill_next_token_bitmask(mask)
    assert before < a.memory_size_bytes < before + 100_000


GRAMMAR = 'start: a+\na: "(" a ")" | "[" b "]" | /[a-f]{30}x/\nb: "{" a "}" | "<" b ">" | /[0-9]{9}y/\n'
SCHEMA = {"properties": {f"key {i}": {"enum": [f"{i * 7919} {k}" for k in range(i)]} for i in range(90)}}


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("kind", ["lark", "schema"])
def test_memory_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch, kind: str, complete: bool) -> None:
    if not complete:
        monkeypatch.setattr(build, "COMPLETE_CONTEXTS", 1)
    vocabulary = Vocabulary.demo()
    pack, compiler = VocabularyPack.from_bytes(vocabulary.pack_bytes()), Compiler(vocabulary)
    result = compiler.compile_lark(GRAMMAR) if kind == "lark" else compiler.compile_json_schema(SCHEMA)
    data, mask = result.to_bytes(), allocate_token_bitmask(1, pack.vocab_size)
    texts = ["([{([<123456789y>])}])"] if kind == "lark" else [f'{{"key {i}":"{i * 7919} 1"' for i in range(2, 90)]

    def use(artifact: Artifact) -> None:
        for text in texts:
            matcher = Matcher(artifact)
            for byte in text.encode():
                matcher.fill_next_token_bitmask(mask)
                assert matcher.accept_string(bytes([byte]))

    use(Artifact.from_bytes(data, pack))  # what the pack keeps
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        artifact = Artifact.from_bytes(data, pack)
        for _ in range(2):
            gc.collect()
            held = tracemalloc.get_traced_memory()[0] - before + len(data)
            assert 0.5 < artifact.memory_size_bytes / held < 2
            use(artifact)
    finally:
        tracemalloc.stop()


def test_dense_rows_of_all_artifacts_of_a_pack_are_bounded(
    monkeypatch: pytest.MonkeyPatch, pack: VocabularyPack
) -> None:
    monkeypatch.setattr(rows, "FEW_WORDS", -1)
    recent = pack.rows.recent
    recent.most = 3
    artifacts = [Artifact.from_bytes(toy().artifact, pack) for _ in range(2)]
    texts = ["[", "[a", "[a,", "[[", "[[]", "[(", "[()", "[(()", "[():", "[():a"]
    views: dict[str, list[int]] = {}
    for _ in range(2):
        for a in artifacts:
            for text in texts:
                m = Matcher(a)
                mask = np.zeros((1, 10), np.int32)
                assert m.accept_string(text)
                m.fill_next_token_bitmask(mask)
                assert views.setdefault(text, mask[0].tolist()) == mask[0].tolist()
            first = pack.rows.n_rows + 1
            assert sum(row is not None for b in artifacts for row in b.rows.dense[first:]) <= 2
            assert sum(len(b.rows.aside) for b in artifacts) <= 1
    assert len(recent) == 3
    kept = [weakref.ref(a) for a in artifacts]
    del artifacts, a, m
    gc.collect()
    assert all(a() is None for a in kept)  # the queues keep no artifact alive


def test_the_rows_least_recently_used_are_dropped(monkeypatch: pytest.MonkeyPatch, pack: VocabularyPack) -> None:
    monkeypatch.setattr(rows, "FEW_WORDS", -1)
    pack.rows.recent.most = 6
    pool, words = Artifact.from_bytes(toy().artifact, pack).rows, np.zeros(10, np.uint32)
    view = words.data

    def held(index: int) -> memoryview | None:
        return pool.dense[index] or pool.aside.get(index)

    often, *others = range(pack.rows.n_rows + 1, len(pool.dense))
    assert len(others) > 12
    pool.fill(view, words, often)
    row = held(often)
    for done, index in enumerate(3 * others):
        pool.fill(view, words, index)
        if done % 2:
            pool.fill(view, words, often)
        assert row is not None and held(often) is row
        assert sum(held(i) is not None for i in others) <= 6
    left = [i for i in others if held(i) is not None]
    assert len(left) >= 4 and left == others[-len(left) :]


def test_the_pack_is_found_beside_the_artifact_or_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: VocabularyPack
) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "out" / "x.mwa"
    path.parent.mkdir()
    path.write_bytes(toy().artifact)
    name = f"{pack.digest}.mwpack"
    with pytest.raises(PackNotFound) as caught:
        Artifact.load(path)
    assert caught.value.digest == pack.digest
    assert caught.value.searched == (str(path.parent / name), str(tmp_path / "cache" / "packs" / name))
    (tmp_path / "cache" / "packs").mkdir(parents=True)
    (tmp_path / "cache" / "packs" / name).write_bytes(toy().pack)
    assert Artifact.load(path).digest == Artifact.from_bytes(toy().artifact, pack).digest
    (path.parent / name).write_bytes(toy().pack)
    assert Matcher(Artifact.load(str(path))).accept_string("[]")
    assert Artifact.load(path, pack).pack is pack


def test_a_wrong_pack_beside_the_artifact_is_refused(tmp_path: Path, pack: VocabularyPack) -> None:
    from maskwright.workers.container import read_container, write_container

    c = read_container(toy().pack)
    header = {k: v for k, v in c.header.items() if k != "sections"} | {"compiler": "9.9.9"}
    other = write_container(header, [(n, c.array(n)) for n in c.sections], compress=False)
    (tmp_path / "x.mwa").write_bytes(toy().artifact)
    (tmp_path / f"{pack.digest}.mwpack").write_bytes(other)
    with pytest.raises(WrongVocabulary) as caught:
        Artifact.load(tmp_path / "x.mwa")
    assert caught.value.field == "pack" and caught.value.found == file_digest(other)


def test_a_pack_in_use_is_not_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "p.mwpack"
    path.write_bytes(toy().pack)
    first = VocabularyPack.load(path)
    assert VocabularyPack.load(path) is first
    alias = tmp_path / "alias.mwpack"
    alias.symlink_to(path)
    assert VocabularyPack.load(alias) is first
    number = id(first)
    del first
    gc.collect()
    again = VocabularyPack.load(path)
    assert again.digest == file_digest(toy().pack) and number
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ArtifactError, match="empty"):
        VocabularyPack.load(tmp_path / "empty")
    with pytest.raises(FileNotFoundError):
        VocabularyPack.load(tmp_path / "none")


def test_threads_share_an_artifact(pack: VocabularyPack) -> None:
    texts = ["[(()(())):abc,[[a],[]],bd]", "[a,b,c,d]", "[[[[[[]]]]]]!", "[(()):ad,", "[]]"] * 20
    alone = [Matcher(Artifact.from_bytes(toy().artifact, pack)).accept_string(t) for t in texts]
    shared = Artifact.from_bytes(toy().artifact, VocabularyPack.from_bytes(toy().pack))
    found: dict[int, list[bool]] = {}

    def work(n: int) -> None:
        found[n] = [Matcher(shared).accept_string(t) for t in texts]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(found[n] == alone for n in range(8))


def test_importing_the_runtime_needs_numpy_alone() -> None:
    code = (
        "import sys, maskwright.workers as w; assert w.Matcher; "
        "heavy = ('numba', 'lark', 'grpc', 'google', 'tokenizers', 'torch', 'scipy'); "
        "names = [m for m in sys.modules if m.split('.')[0] in heavy or '.compiler' in m]; "
        "print(sorted(names))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
