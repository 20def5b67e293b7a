"""Lazy contexts: equal to the complete table, safe between threads, in snapshots, and against damage."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from maskwright.compiler import Compiler, Vocabulary
from maskwright.compiler.tokens import build
from maskwright.workers import Artifact, ArtifactError, Matcher, VocabularyPack, allocate_token_bitmask
from maskwright.workers.container import read_container, write_container
from maskwright.workers.specials import LAZY_CONTEXTS

GRAMMAR = """
start: e
e: t (("+" | "-") t)*
t: f ("*" f)*
f: NUMBER | NAME "(" (e ("," e)*)? ")" | "(" e ")" | "[" e "]"
NAME: /[a-z]+/
NUMBER: /[0-9]+/
%ignore " "
"""
TEXTS = ["f(1, g((2 + [3]) * 4))", "[[(1)]]", "a(b(c(d())), [2])", "((((1))))*[(2)]"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, VocabularyPack]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))
        tokens = [bytes([b]) for b in range(128)]
        tokens += [
            t.encode() for t in ("))", ")))", ")]", "])", "(((", ", ", ")*[", "((1", "]]", ")),", "))))*[", "ab(")
        ]
        vocabulary = Vocabulary.from_tokens([*tokens, None], {len(tokens): "<end>"}, [len(tokens)])
        complete = Compiler(vocabulary).compile_lark(GRAMMAR).to_bytes()
        patch.setattr(build, "COMPLETE_CONTEXTS", 1)
        lazy = Compiler(vocabulary).compile_lark(GRAMMAR).to_bytes()
        return complete, lazy, VocabularyPack.from_bytes(vocabulary.pack_bytes())


def trail(artifact: Artifact, text: str, rng: np.random.Generator) -> list[tuple[bytes, bool]]:
    """Masks along random cuts of a text into tokens."""
    m, mask = Matcher(artifact), allocate_token_bitmask(1, artifact.vocab_size)
    pack, rest, out = artifact.pack, text.encode(), []
    while rest:
        m.fill_next_token_bitmask(mask)
        out.append((mask.tobytes(), m.is_accepting()))
        fits = [t for t in range(pack.vocab_size) if (b := pack.token_bytes(t)) and rest.startswith(b)]
        token = int(rng.choice(fits))
        assert m.accept_token(token)
        rest = rest[len(pack.token_bytes(token) or b"") :]
    m.fill_next_token_bitmask(mask)
    return [*out, (mask.tobytes(), m.is_accepting())]


def test_masks_equal_those_of_the_complete_table(made: tuple[bytes, bytes, VocabularyPack]) -> None:
    complete, lazy = (Artifact.from_bytes(data, made[2]) for data in made[:2])
    assert complete.lazy is None and lazy.lazy is not None
    for seed in range(20):
        for text in TEXTS:
            one, two = (trail(a, text, np.random.default_rng(seed)) for a in (complete, lazy))
            assert one == two and one[-1][1]
    contexts = len(lazy.lazy.frames)
    trail(lazy, TEXTS[0], np.random.default_rng(0))
    assert len(lazy.lazy.frames) == contexts


def test_threads_share_an_artifact(made: tuple[bytes, bytes, VocabularyPack]) -> None:
    want = [trail(Artifact.from_bytes(made[0], made[2]), t, np.random.default_rng(1)) for t in TEXTS]
    artifact = Artifact.from_bytes(made[1], made[2])
    wrong: list[str] = []

    def work(shift: int) -> None:
        for i in range(len(TEXTS)):
            k = (i + shift) % len(TEXTS)
            if trail(artifact, TEXTS[k], np.random.default_rng(1)) != want[k]:
                wrong.append(TEXTS[k])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_snapshot_moves_to_an_artifact_that_met_nothing(made: tuple[bytes, bytes, VocabularyPack]) -> None:
    m = Matcher(Artifact.from_bytes(made[1], made[2]))
    assert m.accept_string("f(1, g((2")
    other = Matcher.restore(Artifact.from_bytes(made[1], made[2]), m.snapshot())
    assert other.accept_string(")))") and other.is_accepting()


DAMAGE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "lazy_codes": lambda a: a[:-1],
    "lazy_start": lambda a: np.full_like(a, 2),
    "lazy_gather": lambda a: np.full(len(a), 60_000, np.uint16),
    "lazy_end": lambda a: np.full(len(a), 60_000, np.uint16),
    "lazy_base": lambda a: np.full(len(a), 60_000, np.uint16),
    "lazy_group_count": lambda a: a + 1,
    "lazy_group_place": lambda a: np.full(len(a), 60_000, np.uint16),
    "lazy_group_row": lambda a: np.full(len(a), 60_000, np.uint16),
}


@pytest.mark.parametrize("section", DAMAGE)
def test_damage_is_refused(made: tuple[bytes, bytes, VocabularyPack], section: str) -> None:
    container = read_container(made[1])
    header = {k: v for k, v in container.header.items() if k != "sections"}
    changed = [(n, DAMAGE[n](container.array(n)) if n == section else container.array(n)) for n in container.sections]
    data = write_container(header, changed, compress=False, required=LAZY_CONTEXTS)
    with pytest.raises(ArtifactError) as refused:
        Artifact.from_bytes(data, made[2])
    assert refused.value.section == section
    missing = [pair for pair in changed if pair[0] != section]
    with pytest.raises(ArtifactError):
        Artifact.from_bytes(write_container(header, missing, compress=False, required=LAZY_CONTEXTS), made[2])
