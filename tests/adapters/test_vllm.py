"""vLLM's own structured-output manager and logits-processor classes, driving the adapter on the CPU. No model runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from engine_artifacts import (
    CHOICES,
    FLAT_TEXT,
    GBNF,
    LARK,
    PATTERN,
    GreedyTokenizer,
    encode,
    fields,
    stop,
    write_folder,
)
from samples import FLAT, compiled

torch = pytest.importorskip("torch", reason="torch isn't installed (make test-adapters)")
pytest.importorskip("vllm.v1.structured_output", reason="vLLM isn't installed (make test-adapters)")

from vllm.sampling_params import SamplingParams, StructuredOutputsParams  # noqa: E402
from vllm.v1.request import Request  # noqa: E402
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor, MoveDirectionality  # noqa: E402
from vllm.v1.structured_output import StructuredOutputManager  # noqa: E402
from vllm.v1.structured_output.backend_types import (  # noqa: E402
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from maskwright.workers import Matcher, WrongVocabulary, allocate_token_bitmask  # noqa: E402
from maskwright.workers.adapters import plugins, sources, vllm  # noqa: E402
from maskwright.workers.adapters.sources import ArtifactNotFound, FolderSource  # noqa: E402

WIDTH = 4096 + 64  # a padded model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("artifacts"))


@pytest.fixture(autouse=True)
def installed(folder: Path) -> None:
    vllm.install(FolderSource(folder))


def configuration(speculative: int = 0):
    """What the manager reads of vLLM's configuration."""
    return fields(
        parallel_config=fields(distributed_executor_backend="external_launcher"),  # compile in this thread
        scheduler_config=fields(max_num_seqs=8),
        model_config=fields(skip_tokenizer_init=True, is_diffusion=False, get_vocab_size=lambda self=None: WIDTH),
        structured_outputs_config=fields(enable_in_reasoning=False),
        num_speculative_tokens=speculative,
    )


def manager(speculative: int = 0, wrong: bool = False) -> StructuredOutputManager:
    made = StructuredOutputManager(configuration(speculative))
    made.tokenizer = GreedyTokenizer(wrong)
    return made


def request(name: str, **asked) -> Request:
    params = SamplingParams(structured_outputs=StructuredOutputsParams(**asked))
    checked = fields(is_diffusion=False)
    params._validate_structured_outputs(checked, fields(backend="guidance"), GreedyTokenizer())
    params._all_stop_token_ids.add(stop())
    return Request(name, [1, 2, 3], params, None)


def mask_of(matcher: Matcher) -> np.ndarray:
    mask = allocate_token_bitmask(1, WIDTH)
    matcher.fill_next_token_bitmask(mask)
    return mask[0]


def test_the_real_base_classes() -> None:
    assert issubclass(vllm.MaskwrightBackend, StructuredOutputBackend)
    assert issubclass(vllm.MaskwrightGrammar, StructuredOutputGrammar)
    assert issubclass(vllm.MaskwrightLogitsProcessor, LogitsProcessor)


def test_the_manager_masks_accepts_and_ends() -> None:
    made, text = manager(), encode('{"a":"yy","b":12}')
    asked = {"r1": request("r1", json=FLAT), "r2": request("r2", regex=PATTERN)}
    for r in asked.values():
        made.grammar_init(r)
        assert isinstance(r.structured_output_request.grammar, vllm.MaskwrightGrammar)
    assert made.backend_name == "guidance" and isinstance(made.backend, vllm.MaskwrightBackend)
    hosts = {"r1": Matcher(compiled()["flat"]), "r2": Matcher(compiled()["digits"])}
    for token in [*text, stop()]:
        rows = made.grammar_bitmask(asked, ["r2", "r1"], {})
        assert rows.shape == (2, WIDTH // 32)
        np.testing.assert_array_equal(rows[0], mask_of(hosts["r2"]))
        np.testing.assert_array_equal(rows[1], mask_of(hosts["r1"]))
        assert made.accept_tokens(asked["r1"], [token]) and hosts["r1"].accept_token(token)
    assert asked["r1"].structured_output_request.grammar.is_terminated()
    assert (made.grammar_bitmask(asked, ["r1"], {})[0] == -1).all(), "vLLM unmasks ended requests"
    assert not made.accept_tokens(asked["r2"], encode("x"))
    made.clear_backend()
    assert made.backend is None


def test_draft_windows_across_the_end() -> None:
    made, draft = manager(speculative=4), [*encode("12"), stop()]
    asked = {"r": request("r", regex=PATTERN)}
    made.grammar_init(asked["r"])
    grammar = asked["r"].structured_output_request.grammar
    assert made.validate_tokens(asked["r"], [*draft, 5]) == draft
    assert made.validate_tokens(asked["r"], [*draft[:1], -1, -1]) == draft[:1]
    rows = made.grammar_bitmask(asked, ["r"], {"r": draft})
    host = Matcher(compiled()["digits"])
    for i, token in enumerate(draft):
        np.testing.assert_array_equal(rows[i], mask_of(host))
        host.accept_token(token)
    assert (rows[len(draft)] == -1).all()
    assert grammar.matcher.accepted() == () and not grammar.is_terminated(), "filling rolls back"
    assert grammar.accept_tokens("r", [*draft, 7]) and grammar.is_terminated()
    assert grammar.validate_tokens([5]) == []
    grammar.rollback(1)
    assert not grammar.is_terminated()
    grammar.reset()
    assert grammar.matcher.accepted() == ()
    with pytest.raises(ValueError):
        grammar.rollback(1)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"json": FLAT_TEXT}, '{"a":"x"}'),
        ({"json_object": True}, '{"k":[1]}'),
        ({"regex": PATTERN}, "12-34"),
        ({"choice": CHOICES}, CHOICES[2]),
        ({"grammar": LARK}, "(x)"),
        ({"grammar": GBNF}, "bba"),
    ],
)
def test_kinds_of_requests(asked: dict[str, object], text: str) -> None:
    made, r = manager(), request("r", **asked)
    made.grammar_init(r)
    grammar = r.structured_output_request.grammar
    assert made.accept_tokens(r, encode(text)) and not grammar.is_terminated()
    assert made.accept_tokens(r, [stop()]) and grammar.is_terminated()


def test_what_is_not_there_fails_its_request_alone() -> None:
    made = manager()
    for asked, kind in (
        ({"json": "{}"}, ArtifactNotFound),
        ({"json": FLAT}, vllm.MaskwrightGrammar),
        ({"regex": "x"}, ArtifactNotFound),
    ):
        r = request("r", **asked)
        made.grammar_init(r)
        assert isinstance(r.structured_output_request.grammar, kind)
    with pytest.raises(ValueError, match="structural_tag"):
        request("r", structural_tag='{"structures": []}')
    with pytest.raises(ValueError):
        request("r", json="{nonsense")
    with pytest.raises(ValueError, match="STRUCTURAL_TAG"):
        vllm.structured_source(StructuredOutputOptions.STRUCTURAL_TAG, "{}")


def test_another_tokenizer_is_refused() -> None:
    made, r = manager(wrong=True), request("r", json=FLAT)
    made.grammar_init(r)
    assert isinstance(r.structured_output_request.grammar, WrongVocabulary)


def test_stop_tokens_are_the_requests() -> None:
    made, r = manager(), request("r", regex=PATTERN)
    other = next(t for t in range(4096) if compiled()["any"].pack.token_bytes(t) == b"!")
    r.sampling_params._all_stop_token_ids.add(other)
    made.grammar_init(r)
    assert made.accept_tokens(r, [*encode("1"), other])
    assert r.structured_output_request.grammar.is_terminated()


def test_the_plugin_installs_from_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "_source", None)
    with pytest.raises(ValueError, match="MASKWRIGHT_ARTIFACTS"):
        vllm.MaskwrightBackend(None, None, 10)
    monkeypatch.setattr(sources, "environment_source", lambda: FolderSource(folder))
    monkeypatch.setattr(plugins, "environment_source", lambda: FolderSource(folder))
    plugins.vllm()
    assert vllm.MaskwrightBackend(None, None, 10).source is vllm._source


# -- logits processor ----------------------------------------------------------------------------------------------


def processor() -> vllm.MaskwrightLogitsProcessor:
    return vllm.MaskwrightLogitsProcessor(None, torch.device("cpu"), False)


def params(asked: object) -> SamplingParams:
    made = SamplingParams(extra_args=None if asked is None else {"maskwright": asked})
    made._all_stop_token_ids.add(stop())
    return made


def masked(p: vllm.MaskwrightLogitsProcessor, rows: int) -> torch.Tensor:
    out = p.apply(torch.zeros((rows, WIDTH)))
    return torch.isfinite(out)


def expected(matcher: Matcher) -> torch.Tensor:
    bits = np.unpackbits(mask_of(matcher).view(np.uint8), bitorder="little")
    return torch.from_numpy(bits.astype(bool))


def test_requests_come_move_and_go() -> None:
    p, flat, digits = processor(), Matcher(compiled()["flat"]), Matcher(compiled()["digits"])
    outputs: list[list[int]] = [[], [], []]
    asked = ["flat", None, {"regex": PATTERN}]
    p.update_state(BatchUpdate(3, [], [(i, params(a), [1], outputs[i]) for i, a in enumerate(asked)], []))
    got = masked(p, 3)
    assert torch.equal(got[0], expected(flat)) and got[1].all() and torch.equal(got[2], expected(digits))
    for token, number in zip(encode('{"a":'), encode("123"), strict=False):
        outputs[0].append(token)
        outputs[2].append(number)
        flat.accept_token(token)
        digits.accept_token(number)
        p.update_state(None)
        got = masked(p, 3)
        assert torch.equal(got[0], expected(flat)) and torch.equal(got[2], expected(digits))
    p.update_state(BatchUpdate(3, [], [], [(0, 2, MoveDirectionality.SWAP)]))
    got = masked(p, 3)
    assert torch.equal(got[2], expected(flat)) and torch.equal(got[0], expected(digits))
    p.update_state(BatchUpdate(2, [0], [], [(2, 0, MoveDirectionality.UNIDIRECTIONAL)]))
    got = masked(p, 2)
    assert torch.equal(got[0], expected(flat)) and got[1].all()
    p.update_state(BatchUpdate(1, [0], [], []))
    assert masked(p, 1).all() and not p.is_argmax_invariant()


def test_after_the_stop_token_only_stop_tokens_are_left() -> None:
    p, output = processor(), [*encode("7"), stop()]
    p.update_state(BatchUpdate(1, [], [(0, params("digits"), [1], output)], []))
    assert masked(p, 1)[0].nonzero().tolist() == [[stop()]]
    output.append(3)
    p.update_state(None)
    assert masked(p, 1)[0].nonzero().tolist() == [[stop()]]


def test_a_request_that_cannot_go_on_is_ended(caplog: pytest.LogCaptureFixture) -> None:
    p, output = processor(), encode("x")
    added = [(0, params("digits"), [1], output), (1, params("unheard-of"), [1], []), (2, params("flat"), [1], [])]
    p.update_state(BatchUpdate(3, [], added, []))
    got = masked(p, 3)
    assert got[0].nonzero().tolist() == got[1].nonzero().tolist() == [[stop()]]
    assert torch.equal(got[2], expected(Matcher(compiled()["flat"])))
    assert caplog.text.count("request ended") == 2


def test_requests_are_checked_before_they_are_queued() -> None:
    check = vllm.MaskwrightLogitsProcessor.validate_params
    for asked in (None, "flat", {"json_schema": FLAT}, {"json_schema": json.dumps(FLAT)}, {"regex": PATTERN}):
        check(params(asked))
    for asked in ("unheard-of", {"json_schema": {}}, 3, {}, {"a": "b"}, {"regex": "1", "lark": "2"}):
        with pytest.raises(ValueError):
            check(params(asked))
