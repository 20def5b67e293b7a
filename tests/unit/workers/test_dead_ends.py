"""Dead ends, and what models and vocabularies do that a matcher must bear: several stop tokens, stop tokens that are
text of the grammar, padding, tokens that span many syntactic units, bytes of characters, drafts across the end.
"""

from __future__ import annotations

import gc
import math
import random
import weakref

import numpy as np
import pytest
from compiled import PIECES, STOP, lark, mask_of, pack, regex, schema, token, vocabulary

from maskwright.compiler import Compiler
from maskwright.compiler.tokens import build
from maskwright.workers import (
    Artifact,
    BatchMatcher,
    DeadEnd,
    DeadEndCause,
    Matcher,
    VocabularyPack,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
)

END = STOP + 1
NESTED = {
    "type": "object",
    "properties": {
        "name": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "kind": {"enum": ["ask"]},
    },
    "required": ["name", "kind"],
    "additionalProperties": False,
}
TREE = {"$id": "tree", "type": "array", "items": {"$ref": "tree"}, "maxItems": 3}


# -- dead ends -----------------------------------------------------------------------------------------------------


def test_a_stop_token_that_hides_the_only_way_on() -> None:
    m = Matcher(regex("a(bc|bd)"), [ord("b")])
    assert mask_of(m) == {ord("a")}
    assert m.accept_string("") and m.accept_token(ord("a"))
    with pytest.raises(DeadEnd) as caught:
        mask_of(m)
    end = caught.value
    assert end.cause is DeadEndCause.UNSUPPORTED and "[98]" in end.detail
    assert end.prefix == (b"", ord("a")) and end.text == b"a"
    assert end.place.expected == b"b" and not end.place.may_end
    assert end.vocabulary == m.artifact.pack.fingerprint and end.artifact == m.artifact.digest
    for part in (str(end.cause), "2 steps", end.vocabulary, end.artifact):
        assert part in str(end)
    with pytest.raises(DeadEnd):
        mask_of(m)
    assert m.min_tokens_to_finish() == math.inf
    with pytest.raises(ValueError, match="5 tokens remain, finishing takes up to inf"):
        mask_of(m, 5)


def test_a_sampler_tells_where_its_distribution_went() -> None:
    m = Matcher(schema(NESTED))
    assert m.accept_string('{"name":')
    legal = sorted(mask_of(m))
    outside = m.report_empty(width=m.vocab_size, kept=[STOP, 1, 2])
    assert outside.cause is DeadEndCause.OUTSIDE_TRUNCATION
    assert f"{len(legal)} tokens are legal" in outside.detail and "3 were kept outside, 0 of them" in outside.detail
    assert outside.prefix == (b'{"name":',) and outside.text == b'{"name":'
    narrow = m.report_empty(width=legal[0])
    assert narrow.cause is DeadEndCause.VOCABULARY_MISMATCH and f"{legal[0]} columns" in narrow.detail
    assert m.report_empty(width=legal[0] + 1).cause is DeadEndCause.OUTSIDE_TRUNCATION
    assert m.dead_end(DeadEndCause.VOCABULARY_MISMATCH, "x").cause is DeadEndCause.VOCABULARY_MISMATCH
    stuck = Matcher(regex("a"), [])
    assert stuck.accept_string("a")
    with pytest.raises(DeadEnd, match="no stop token"):
        stuck.report_empty()


def test_a_dead_end_leaves_the_matcher_as_it_was() -> None:
    m = Matcher(regex("a(b|c)"), [ord("b"), ord("c"), STOP])
    mask = allocate_token_bitmask(1, m.vocab_size)
    assert m.accept_token(ord("a"))
    with pytest.raises(DeadEnd):
        m.fill_next_token_bitmask(mask)
    assert not mask.any()
    m.rollback()
    assert mask_of(m) == {ord("a")}


# -- stop tokens ---------------------------------------------------------------------------------------------------


def test_several_stop_tokens_are_legal_together_and_only_at_the_end() -> None:
    m = Matcher(schema({"enum": [1, 12]}), [STOP, END, END])
    assert not mask_of(m) & {STOP, END}
    assert m.accept_string("1")
    assert {STOP, END} <= mask_of(m) and m.min_tokens_to_finish() == 1
    assert m.accept_token(END) and m.is_terminated() and mask_of(m) == {STOP, END}
    assert m.accept_token(STOP) and m.min_tokens_to_finish() == 0 and mask_of(m, 0) == {STOP, END}


@pytest.mark.parametrize("stops", [[ord("}")], [ord("}"), STOP], [token("}}"), ord('"')]])
def test_a_stop_token_that_the_grammar_needs_as_text(stops: list[int]) -> None:
    """It's no text any more: other tokens with its bytes inside still write it, or the matcher is stuck and says so."""
    m, rng, ended = Matcher(schema(NESTED), stops), random.Random(1), 0
    for _ in range(30):
        m.reset()
        try:
            for _ in range(60):
                choices = mask_of(m)
                if not m.is_accepting():
                    assert not choices & set(stops)
                assert m.accept_token(rng.choice(sorted(choices)))
                ended += m.is_terminated()
        except DeadEnd as stuck:
            assert not stuck.place.may_end and set(stuck.place.expected) <= set(b' \t\r\n"}')
    assert ended


@pytest.mark.parametrize("stops", [[ord("}"), STOP], [ord("z")], [ord("[")]])
def test_budgets_never_lead_where_only_a_stop_token_goes_on(stops: list[int]) -> None:
    m, rng = Matcher(lark('start: "x"* ("[" | "}" | "y" "z"? "[" "z" "w"? | "}" "[")'), stops), random.Random(2)
    for extra in (0, 1, 5) * 5:
        m.reset()
        remaining = m.min_tokens_to_finish() + extra
        while not m.is_terminated():
            assert m.accept_token(rng.choice(sorted(mask_of(m, int(remaining)))))
            remaining -= 1
        assert remaining >= 0


def test_budgets_without_the_text_of_a_stop_token() -> None:
    artifact = lark('start: "x"* ("}" | "yz")')
    free, bound = Matcher(artifact), Matcher(artifact, [ord("}")])
    assert (free.min_tokens_to_finish(), bound.min_tokens_to_finish()) == (2, 3)
    assert mask_of(bound, 3) == {ord("y")}
    assert bound.accept_token(ord("y")) and mask_of(bound, 2) == {ord("z")}
    assert bound.accept_token(ord("z")) and mask_of(bound, 1) == {ord("}")}
    assert bound.accept_token(ord("}")) and bound.is_terminated()


# -- vocabularies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("padding", [0, 1, 63, 400])
def test_padding_is_never_legal(padding: int) -> None:
    m = Matcher(schema(NESTED, padding))
    assert m.vocab_size == STOP + 2 + padding
    width = m.vocab_size + 77  # logits are often wider than the vocabulary
    rng, mask = np.random.default_rng(padding), allocate_token_bitmask(1, width)
    for _ in range(40):
        logits = rng.standard_normal((1, width)).astype(np.float32)
        logits[0, STOP + 1 :] = 100
        m.fill_next_token_bitmask(mask, 0, 60)
        apply_token_bitmask_inplace(logits, mask)
        chosen = int(logits.argmax())
        assert chosen <= STOP and m.accept_token(chosen)
        if m.is_terminated():
            break
    for beyond in (STOP + 2, m.vocab_size - 1, m.vocab_size, width):
        assert not m.accept_token(beyond) or beyond <= STOP


def test_tokens_that_span_many_syntactic_units() -> None:
    m = Matcher(schema(NESTED, whitespace="compact"))
    for piece in ('{"', "name", '":{"name":"', "na", '"},"kind":"ask"}'):
        assert token(piece) in mask_of(m)
        assert m.accept_token(token(piece))
    assert m.is_accepting() and mask_of(m) == {STOP}
    m.rollback()
    assert m.accept_token(token('"}')) and not m.accept_token(token("}}"))
    tree = Matcher(schema(TREE, whitespace="compact"))
    for piece in ("[[", "[[", "]]", ",", "[[", "]]", "]]"):
        assert not tree.is_accepting() and tree.accept_token(token(piece))
    assert tree.is_accepting()


def test_characters_written_byte_by_byte() -> None:
    m = Matcher(schema({"type": "string", "maxLength": 2}))
    assert m.accept_token(ord('"'))
    for part in "😀".encode():
        assert part in mask_of(m) and m.accept_token(part)
    assert not m.accept_token(0x80)  # a continuation that continues nothing
    assert m.accept_token(0xC3)
    legal = mask_of(m)
    assert ord('"') not in legal and STOP not in legal and token("é") not in legal
    assert legal == set(range(0x80, 0xC0))
    assert m.accept_token(0xA9)
    assert mask_of(m) & set(range(256)) == {ord('"')}


def test_a_draft_across_the_end_and_back() -> None:
    m = Matcher(schema({"enum": [[], [1]]}, whitespace="compact"), [STOP, END])
    draft = [ord("["), ord("]"), STOP, END, STOP]
    mask = allocate_token_bitmask(len(draft) + 1, m.vocab_size)
    assert m.validate_tokens(draft) == 5
    assert m.validate_tokens([*draft[:2], ord("]")]) == 2
    assert m.fill_draft_bitmask(mask, draft) == 5
    for taken in draft:
        assert m.accept_token(taken)
    m.rollback(4)
    assert mask_of(m) == {ord("]"), ord("1")}


# -- budgets against a hostile model -------------------------------------------------------------------------------


OPENING = frozenset(b"{[ \n\t,:")


def opening(data: bytes | None) -> float:
    """How a model would like a token that wants to open things and to write white space."""
    return sum((b in OPENING) - (b in b"}]\"") * 2 for b in data) if data else -9


SOURCES = {
    "any value": lambda: schema(True),
    "nested": lambda: schema(NESTED),
    "tree": lambda: schema(TREE),
    "any of": lambda: schema({"anyOf": [NESTED, TREE, {"type": "string", "minLength": 3}]}),
    "one of, recursive": lambda: schema(
        {"oneOf": [{"type": "array", "items": {"$ref": "#"}, "minItems": 1}, {"type": "integer", "minimum": 1000}]}
    ),
    "contains": lambda: schema({"type": "array", "contains": {"const": "ask"}, "minContains": 2}),
    "pattern": lambda: schema({"type": "string", "pattern": "^[a-z]{3,40}(-[0-9]{4})+$"}),
    "compact": lambda: schema(NESTED, whitespace="compact"),
    "sums": lambda: lark('start: sum\nsum: atom | sum "+" atom\natom: /[0-9]+/ | "(" sum ")"\n%ignore " "'),
    "statements": lambda: lark(
        'start: stmt+\nstmt: "{" stmt* "}" | NAME "=" value ";"\nvalue: NAME | "[" [value ("," value)*] "]"\n'
        "NAME: /[a-z]+/\n%ignore /[ \\n]+/"
    ),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("extra", [0, 2, 25])
def test_every_run_ends_in_time(name: str, extra: int) -> None:
    artifact = SOURCES[name]()
    tokens = vocabulary().tokens
    rng = np.random.default_rng(extra)
    taste = np.array([opening(t) for t in tokens], np.float32)
    for weight in (0.0, 0.3, 100.0):
        m, mask = Matcher(artifact), allocate_token_bitmask(1, len(tokens))
        remaining = m.min_tokens_to_finish() + extra
        while not m.is_terminated():
            assert remaining > 0
            m.fill_next_token_bitmask(mask, 0, remaining)
            logits = (weight * taste + rng.standard_normal(len(tokens))).astype(np.float32)[None]
            apply_token_bitmask_inplace(logits, mask, vocab_size=len(tokens))
            assert m.accept_token(int(logits.argmax()))
            remaining -= 1
        assert m.is_accepting()


def test_bounds_are_tight_where_tokens_are() -> None:
    m = Matcher(schema(NESTED, whitespace="compact"))
    # The best is five: {" name ":{"name":" "},"kind":"ask"} and the stop token. The bound ends a token with each
    # frame: {" name ":{"name":" | " | } | , " kind ":" | ask " | } and the stop token.
    assert m.min_tokens_to_finish() == 13
    assert m.validate_tokens([*map(token, ('{"', "name", '":{"name":"', '"},"kind":"ask"}')), STOP], 13) == 5
    assert Matcher(schema({"const": "refund name"})).min_tokens_to_finish() == 5  # " | refund | space | name" | stop
    assert Matcher(schema({"type": "string"})).min_tokens_to_finish() == 2  # "" | stop
    assert Matcher(regex("(refund){10}")).min_tokens_to_finish() == 11


def test_budgets_in_a_batch_end_together() -> None:
    names = list(SOURCES)
    batch = BatchMatcher([SOURCES[n]() for n in names])
    mask, rng = allocate_token_bitmask(len(names), vocabulary().size), np.random.default_rng(5)
    taste = np.array([opening(t) for t in vocabulary().tokens], np.float32)
    left = max(m.min_tokens_to_finish() for m in map(batch.__getitem__, range(len(names))) if m)
    while not all(batch.is_terminated()):
        assert left > 0
        assert batch.fill_next_token_bitmask(mask, remaining=int(left)) == {}
        logits = (taste + rng.standard_normal((len(names), len(taste)))).astype(np.float32)
        apply_token_bitmask_inplace(logits, mask, vocab_size=len(taste))
        assert all(batch.accept_tokens(logits.argmax(axis=1).tolist()))
        left -= 1


def test_pieces_are_distinct() -> None:
    assert len(set(PIECES)) == len(PIECES)


# -- special tokens as symbols, and memory -------------------------------------------------------------------------


def test_budgets_and_counts_with_special_tokens_as_symbols() -> None:
    """<|end|> must be written before the text may end; a symbol is one token, its spelling none at all."""
    m = Matcher(lark('start: word* <|end|> [word <|end|>]\nword: /[a-z]{2}/'))
    assert m.min_tokens_to_finish() == 2 and mask_of(m, 2) == {END}
    assert m.explain().alternatives == ()  # too many letters
    assert Matcher(lark('start: <|end|> "a" | <|stop|> "b"')).explain().alternatives == ("<|stop|>b", "<|end|>a")
    assert m.accept_token(ord("a"))
    assert m.min_tokens_to_finish() == 3
    assert not mask_of(m, 3) & {END, STOP} and ord("b") in mask_of(m, 3)
    assert m.accept_token(ord("b")) and m.accept_token(END)
    assert m.is_accepting() and m.min_tokens_to_finish() == 1
    assert mask_of(m, 1) == mask_of(m, 2) == {STOP}
    assert mask_of(m, 3) == {STOP, token("na"), token("me"), token("re")}
    assert ord("x") in mask_of(m, 4)
    assert m.completions_left() == 1 + 26 * 26
    rng = random.Random(3)
    for extra in (0, 1, 6):
        m.reset()
        remaining = int(m.min_tokens_to_finish()) + extra
        while not m.is_terminated():
            assert m.accept_token(rng.choice(sorted(mask_of(m, remaining))))
            remaining -= 1
        assert remaining >= 0


def test_budgets_where_contexts_are_made_as_they_are_met(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MANY_RESTS", 0), ("RESTS_A_RETURN", 0), ("COMPLETE_CONTEXTS", 1)):
        monkeypatch.setattr(build, name, value)
    grammar = 'start: sum\nsum: atom | sum "+" atom\natom: /[0-9]+/ | "(" sum ")"\n%ignore " "'
    lazy = Artifact.from_bytes(Compiler(vocabulary()).compile_lark(grammar).to_bytes(), pack())
    assert lazy.lazy is not None
    rng, whole = random.Random(6), Matcher(SOURCES["sums"]())
    for extra in (0, 4, 15):
        m = Matcher(lazy)
        whole.reset()
        remaining = int(m.min_tokens_to_finish()) + extra
        while not m.is_terminated():
            choices = mask_of(m, remaining)
            assert choices == mask_of(whole, remaining)
            chosen = rng.choice(sorted(choices))
            assert m.accept_token(chosen) and whole.accept_token(chosen)
            assert m.completions_left() == whole.completions_left()
            m = Matcher.restore(lazy, m.snapshot())
            remaining -= 1


def test_what_is_kept_for_an_artifact_goes_with_it() -> None:
    vocab = vocabulary(7)
    loaded = VocabularyPack.from_bytes(vocab.pack_bytes())
    artifact = Artifact.from_bytes(Compiler(vocab).compile_json_schema(NESTED).to_bytes(), loaded)
    m = Matcher(artifact)
    assert m.min_tokens_to_finish() and m.completions_left() and m.explain() and m.find_jump_forward_tokens() == []
    mask_of(m, 50)
    alive = weakref.ref(artifact), weakref.ref(loaded)
    del m, artifact, loaded
    gc.collect()
    assert [ref() for ref in alive] == [None, None]


# -- numbers that are too large ------------------------------------------------------------------------------------


def doubling(levels: int) -> dict[str, object]:
    """Each level is an object of two of the next: texts double in length, their number is squared."""
    both = {"type": "object", "required": ["a", "b"], "additionalProperties": False}
    definitions: dict[str, object] = {
        f"l{i}": {**both, "properties": {name: {"$ref": f"#/$defs/l{i + 1}"} for name in "ab"}} for i in range(levels)
    }
    return {"$ref": "#/$defs/l0", "$defs": {**definitions, f"l{levels}": {"type": "boolean"}}}


def test_texts_that_double_with_each_level() -> None:
    small = Matcher(schema(doubling(5), whitespace="compact"))
    assert small.completions_left() == 2**32
    assert mask_of(small, int(small.min_tokens_to_finish())) == {token(chr(123) + chr(34))}
    large = Matcher(schema(doubling(70), whitespace="compact"))
    with pytest.raises(OverflowError, match="more than 4194304 bits"):
        large.completions_left()
    assert large.min_tokens_to_finish() == math.inf
    with pytest.raises(ValueError, match="up to inf"):
        mask_of(large, 1 << 61)
    middle = Matcher(schema(doubling(40), whitespace="compact"))
    bound = middle.min_tokens_to_finish()
    assert 2**40 < bound < 2**50
    assert mask_of(middle, int(bound)) and mask_of(middle, 1 << 60) == mask_of(middle)
