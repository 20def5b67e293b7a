"""What's remembered of tokens is what walking their bytes finds, whatever is on the stack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from damage import put_together, take_apart
from toy import toy

from maskwright.compiler import Compiler, Vocabulary
from maskwright.compiler.tokens import build
from maskwright.workers import Artifact, Matcher, VocabularyPack, allocate_token_bitmask, matcher, ways

GRAMMAR = """
start: e
e: t ("+" t)*
t: NUMBER | NAME "(" (e ("," e)*)? ")" | "(" e ")" | "[" e "]"
NAME: /[a-z]+/
NUMBER: /[0-9]+/
"""
SCHEMA = {"properties": {"a": {"$ref": "#"}, "list": {"items": {"$ref": "#"}}, "b": {"enum": ["x", "xy", 1, None]}}}
TOKENS = b") )) ]] ))) )))) (( [( ([ )+ )+( ), +[ a( ab(b( 1)".split()
TOKENS += b'{"a": ": {" }} }]} {"a":{"a": "xy"} }, "}, {"list":[ }] x" "a }}}}}}'.split()


def make(kind: str) -> Artifact:
    if kind == "toy":
        return Artifact.from_bytes(toy().artifact, VocabularyPack.from_bytes(toy().pack))
    tokens: list[bytes | None] = [bytes([b]) for b in range(128)] + [*TOKENS]
    vocabulary = Vocabulary.from_tokens([*tokens, None], {len(tokens): "<end>"}, [len(tokens)])
    compiler = Compiler(vocabulary)
    result = compiler.compile_json_schema(SCHEMA) if kind == "schema" else compiler.compile_lark(GRAMMAR)
    return Artifact.from_bytes(result.to_bytes(), VocabularyPack.from_bytes(vocabulary.pack_bytes()))


@pytest.fixture(params=["toy", "schema", "grammar", "lazy"])
def artifact(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    if request.param == "lazy":
        monkeypatch.setattr(build, "COMPLETE_CONTEXTS", 1)
    return make(request.param)


def follow(artifact: Artifact, seed: int) -> None:
    """Random legal tokens, long ones first, through a matcher that knows ways and one that walks; stop, rollback."""
    knows, walks = Matcher(artifact), Matcher(artifact)
    walks._known, walks._most_known = ways.Ways(), 0
    assert knows._known is artifact.ways
    mask, rng = allocate_token_bitmask(1, artifact.vocab_size), np.random.default_rng(seed)
    size = np.array([len(artifact.pack.token_bytes(t) or b"") for t in range(artifact.vocab_size)])
    for _ in range(40):
        knows.fill_next_token_bitmask(mask)
        legal = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        token = int(rng.choice(legal, p=(weight := 1.0 + size[legal] ** 2) / weight.sum()))
        illegal = int(rng.choice(np.setdiff1d(np.arange(artifact.vocab_size), legal)))
        assert not knows.accept_token(illegal) and not walks.accept_token(illegal)
        if rng.random() < 0.2 and knows.accepted():
            n = int(rng.integers(1, len(knows.accepted()) + 1))
            knows.rollback(n)
            walks.rollback(n)
            continue
        assert knows.accept_token(token) and walks.accept_token(token)
        assert (*knows._state[:4], *knows._state[5:]) == (*walks._state[:4], *walks._state[5:])
    assert not walks._known


def depth(tree: Any) -> int:
    return 1 + max(map(depth, tree.values())) if isinstance(tree, dict) else 0


def test_known_tokens_lead_where_their_bytes_do(artifact: Artifact) -> None:
    before = artifact.memory_size_bytes
    for seed in range(60):
        follow(artifact, seed % 40)  # some of them again
    known = artifact.ways
    assert len(known) > 30 and max(map(depth, known.values())) >= 2
    pushes = [way[4] for way in known.values() if isinstance(way, tuple)]
    assert () in pushes and any(pushes)
    assert before + ways.WAY_BYTES * len(known) <= artifact.memory_size_bytes


def test_what_is_known_is_bounded(artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher, "MOST_WAYS", 12)
    artifact.ways.left = 5
    for seed in range(30):
        follow(artifact, seed)
    assert 5 < len(artifact.ways) <= 12 and artifact.ways.left == 0
    assert sum(not isinstance(tree, tuple) for tree in artifact.ways.values()) <= 5


@pytest.mark.parametrize("kind", ["schema", "grammar"])
def test_what_ends_on_the_empty_stack_is_walked(kind: str) -> None:
    # The same control in the same context, but with a frame to return to the second time.
    artifact = make(kind)
    text, deeper = (b"{}", b'{"a":{}}') if kind == "schema" else (b"(1)", b"((1))")
    for _ in range(3):
        for data in (text, deeper, text):
            m = Matcher(artifact)
            for byte in data:
                assert not m.is_accepting() and m.accept_token(byte)
            assert m.is_accepting()


def test_a_token_that_returned_on_a_deeper_stack() -> None:
    # The toy's root calls itself twice, in its own context: "[" and up to three "!", of which two return.
    header, sections = take_apart(toy().artifact)
    sections["symbol_callee"][0], sections["context_push"][0] = 2, 1
    sections["action_count"][0], sections["action_target"][0] = 2, 7
    sections["action_push"] = np.insert(sections["action_push"], 0, 1)
    pack = VocabularyPack.from_bytes(toy().pack)
    artifact = Artifact.from_bytes(put_together((header, sections)), pack)
    bracket, mark = (next(t for t in range(300) if pack.token_bytes(t) == text) for text in (b"[", b"!"))
    for _ in range(2):
        m, walks = Matcher(artifact), Matcher(artifact)
        walks._known, walks._most_known = ways.Ways(), 0
        for token in (bracket, mark, mark, mark):
            assert m.accept_token(token) and walks.accept_token(token)
            assert (*m._state[:4], m._state[6]) == (*walks._state[:4], walks._state[6])
        assert m._state[:3] == (8, 0, None)
    assert any(isinstance(way, dict) for way in artifact.ways.values())


def test_a_stop_token_that_is_text_keeps_to_itself() -> None:
    artifact = make("grammar")
    one, plus = Matcher(artifact), ord("+")
    for _ in range(2):
        for token in b"(1+1)+1":
            assert one.accept_token(token)
        one.reset()
    stops = Matcher(artifact, stop_token_ids=[plus])
    assert stops.accept_token(ord("(")) and stops.accept_token(ord("1")) and not stops.accept_token(plus)
    assert stops.accept_token(ord(")")) and stops.accept_token(plus) and stops.is_terminated()
    assert not one.is_terminated() and one.accept_token(ord("1")) and one.accept_token(plus)
    assert not one.is_terminated()


def test_known_or_not_a_token_is_an_integer() -> None:
    m = Matcher(make("grammar"))
    for _ in range(2):
        with pytest.raises(TypeError):
            m.accept_token(float(ord("1")))  # type: ignore[arg-type]
        assert m.accept_token(np.int64(ord("1")))  # type: ignore[arg-type]
        assert m.accepted() == (ord("1"),) and type(m.accepted()[0]) is int
        m.reset()


def test_after_the_end_nothing_is_known() -> None:
    artifact = make("grammar")
    for _ in range(2):
        m = Matcher(artifact)
        assert m.accept_token(ord("1")) and m.accept_token(ord("+")) and m.accept_token(ord("1"))
        assert m.accept_token(m.stop_token_ids[0]) and not m.accept_token(ord("+"))
        again = Matcher.restore(artifact, m.snapshot())
        assert again.is_terminated() and not again.accept_token(ord("+"))
