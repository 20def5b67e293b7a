"""SGLang's own base classes and registry, driving the adapter on the CPU. No model runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine_artifacts import FLAT_TEXT, GBNF, LARK, PATTERN, GreedyTokenizer, encode, stop, write_folder
from samples import compiled

torch = pytest.importorskip("torch", reason="torch isn't installed (make test-adapters)")
base = pytest.importorskip(
    "sglang.srt.constrained.base_grammar_backend", reason="SGLang isn't installed (make test-adapters)"
)

from maskwright.workers import Matcher, allocate_token_bitmask  # noqa: E402
from maskwright.workers.adapters import plugins, sglang  # noqa: E402
from maskwright.workers.adapters.sources import FolderSource  # noqa: E402

WIDTH = 4096 + 50


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("artifacts"))


@pytest.fixture
def backend(folder: Path):
    sglang.install(FolderSource(folder))
    return base.GRAMMAR_BACKEND_REGISTRY["maskwright"](None, GreedyTokenizer(), WIDTH, {stop()})


def compile_(backend, kind: str, text: str):
    """As SGLang's grammar manager does: in the pool, then from the cache."""
    found, cached = backend.get_cached_or_future_value((kind, text), False)
    assert not cached
    grammar = found.result()
    backend.set_cache((kind, text), grammar.copy())
    return grammar


def mask_of(matcher: Matcher) -> np.ndarray:
    mask = allocate_token_bitmask(1, WIDTH)
    matcher.fill_next_token_bitmask(mask)
    return mask[0]


def test_masks_along_a_text(backend) -> None:
    assert isinstance(backend, base.BaseGrammarBackend)
    grammar, host = compile_(backend, "json", FLAT_TEXT), Matcher(compiled()["flat"])
    assert isinstance(grammar, base.BaseGrammarObject)
    mask = grammar.allocate_vocab_mask(WIDTH, 3, "cpu")
    assert (mask == -1).all()
    for token in [*encode('{"a":"x","b":1}'), stop()]:
        grammar.fill_vocab_mask_batched([base.GrammarRow(1, grammar)], mask)
        np.testing.assert_array_equal(mask[1].numpy(), mask_of(host))
        assert (mask[0] == -1).all() and (mask[2] == -1).all()
        moved, logits = grammar.move_vocab_mask(mask, "cpu"), torch.zeros((3, WIDTH))
        base.GrammarMask(grammar, moved).apply(logits)
        legal = np.unpackbits(mask_of(host).view(np.uint8), bitorder="little").astype(bool)[:WIDTH]
        assert torch.equal(torch.isfinite(logits[1]), torch.from_numpy(legal)) and torch.isfinite(logits[0]).all()
        grammar.accept_token(token)
        assert host.accept_token(token)
    assert grammar.is_terminated()
    grammar.accept_token(5)
    grammar.rollback(1)
    assert not grammar.is_terminated() and grammar.matcher.accepted() == tuple(encode('{"a":"x","b":1}'))
    grammar.reset_vocab_mask(mask)
    assert (mask == -1).all()


def test_a_copy_starts_anew(backend) -> None:
    grammar = compile_(backend, "regex", PATTERN)
    grammar.accept_token(encode("1")[0])
    copy, cached = backend.get_cached_or_future_value(("regex", PATTERN), False)
    assert cached and copy is not grammar and copy.matcher.accepted() == ()
    assert copy.matcher.artifact is grammar.matcher.artifact
    assert copy.grammar_stats.is_cache_hit and copy.grammar_stats.dispatch_type == "regex"
    with pytest.raises(ValueError, match="isn't legal"):
        copy.accept_token(encode("x")[0])
    with pytest.raises(ValueError):
        copy.rollback(1)


@pytest.mark.parametrize(
    ("kind", "source", "text"),
    [
        ("json", FLAT_TEXT, '{"a":"x"}'),
        ("json", "$$ANY$$", "[1]"),
        ("regex", PATTERN, "123-45"),
        ("ebnf", LARK, "(x)"),
        ("ebnf", GBNF, "ba"),
    ],
)
def test_kinds_of_requests(backend, kind: str, source: str, text: str) -> None:
    grammar = compile_(backend, kind, source)
    for token in [*encode(text), stop()]:
        grammar.accept_token(token)
    assert grammar.is_terminated()


@pytest.mark.parametrize(
    ("kind", "source"), [("json", "{}"), ("regex", "x"), ("ebnf", "start: x"), ("structural_tag", "{}")]
)
def test_what_is_not_there_is_an_invalid_grammar(backend, kind: str, source: str) -> None:
    found = backend.get_cached_or_future_value((kind, source), False)[0].result()
    assert isinstance(found, base.InvalidGrammarObject) and found.error_message


def test_another_tokenizer_is_refused(folder: Path) -> None:
    made = sglang.MaskwrightGrammarBackend(FolderSource(folder), GreedyTokenizer(wrong=True))
    found = made.dispatch_json(FLAT_TEXT)
    assert isinstance(found, base.InvalidGrammarObject) and "probe" in found.error_message


def test_jump_forward_and_retokenisation(backend) -> None:
    grammar = compile_(backend, "json", FLAT_TEXT)
    old = [t for piece in ("{", '"') for t in encode(piece)]
    for token in old:
        grammar.accept_token(token)
    helper = grammar.try_jump_forward(None)
    assert helper is not None
    text, state = grammar.jump_forward_str_state(helper)
    assert text.startswith("a") and state == -1
    new = encode('{"' + text)
    grammar.jump_and_retokenize(old, new, state)
    assert grammar.matcher.accepted() == tuple(new)
    with pytest.raises(ValueError, match="isn't legal"):
        grammar.jump_and_retokenize(new, [*new, *encode("]")], state)
    assert compile_(backend, "regex", PATTERN).try_jump_forward(None) is None


def test_the_plugin_enters_the_backend_from_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base.GRAMMAR_BACKEND_REGISTRY.pop("maskwright", None)
    monkeypatch.setattr(plugins, "environment_source", lambda: FolderSource(folder))
    plugins.sglang()
    assert "maskwright" in base.GRAMMAR_BACKEND_REGISTRY and "maskwright" in sglang.GRAMMAR_BACKEND_CHOICES
