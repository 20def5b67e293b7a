"""Hugging Face's `generate()` with a tiny model of random weights, on the CPU."""

from __future__ import annotations

import json

import pytest
from samples import FLAT, TREE, compiled, toy_artifact

torch = pytest.importorskip("torch", reason="torch isn't installed (make test-adapters)")
transformers = pytest.importorskip("transformers", reason="transformers isn't installed (make test-adapters)")
jsonschema_rs = pytest.importorskip("jsonschema_rs")

from maskwright.workers import Artifact, DeadEnd, DeadEndCause, Matcher, WrongVocabulary  # noqa: E402
from maskwright.workers.adapters.transformers import MaskwrightLogitsProcessor  # noqa: E402

PAD = 0


@pytest.fixture(scope="module")
def model():
    size = compiled()["flat"].vocab_size
    config = transformers.LlamaConfig(
        vocab_size=size + 40,  # wider than the vocabulary, as padded embeddings are
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=None,
        eos_token_id=stop(),
        pad_token_id=PAD,
    )
    torch.manual_seed(0)
    made = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        made.lm_head.weight *= 40  # so that greedy choices differ from row to row
    return made


def stop() -> int:
    return compiled()["flat"].pack.stop_token_ids[0]


def text(artifact: Artifact, tokens: list[int]) -> bytes:
    """What a row generated; it must have ended with a stop token, with nothing but padding behind."""
    assert stop() in tokens, "the row didn't end"
    end = tokens.index(stop())
    assert set(tokens[end + 1 :]) <= {PAD, stop()}
    matcher = Matcher(artifact)
    assert all(matcher.accept_token(t) for t in tokens[: end + 1])
    return b"".join(artifact.pack.token_bytes(t) or b"" for t in tokens[:end])


def prompts(*lengths: int):
    """Prompts of random tokens, padded on the left, and their attention mask."""
    generator = torch.Generator().manual_seed(len(lengths))
    width = max(lengths)
    ids, mask = torch.full((len(lengths), width), PAD), torch.zeros((len(lengths), width), dtype=torch.int64)
    for i, n in enumerate(lengths):
        ids[i, width - n :] = torch.randint(1, 4000, (n,), generator=generator)
        mask[i, width - n :] = 1
    return {"input_ids": ids, "attention_mask": mask}


def generate(model, processor, lengths, **options):
    given = prompts(*lengths)
    torch.manual_seed(7)
    out = model.generate(**given, logits_processor=[processor], max_new_tokens=60, **options)
    return out[:, given["input_ids"].shape[1] :].tolist()


@pytest.mark.parametrize("sample", [False, True])
def test_a_batch_with_left_padding(model, sample: bool) -> None:
    artifact = compiled()["flat"]
    processor = MaskwrightLogitsProcessor(artifact, max_new_tokens=60)
    rows = generate(model, processor, (3, 9, 1, 6), do_sample=sample, **({"top_p": 0.9, "top_k": 20} if sample else {}))
    check = jsonschema_rs.validator_for(FLAT)
    assert len(rows) == 4
    for row in rows:
        check.validate(json.loads(text(artifact, row)))


def test_every_prompt_has_its_own_artifact_or_none(model) -> None:
    names = ("flat", "digits", None, "tree")
    artifacts = [compiled()[n] if n else None for n in names]
    rows = generate(model, MaskwrightLogitsProcessor(artifacts, max_new_tokens=60), (2, 2, 5, 3), do_sample=True)
    for name, artifact, row in zip(names, artifacts, rows, strict=True):
        if artifact is None:
            continue
        written = text(artifact, row).decode()
        if name == "digits":
            assert set(written) <= set("0123456789-") and written
        else:
            jsonschema_rs.validator_for(FLAT if name == "flat" else TREE).validate(json.loads(written))


@pytest.mark.parametrize("sample", [False, True])
def test_beams(model, sample: bool) -> None:
    artifact = compiled()["digits"]
    processor = MaskwrightLogitsProcessor(artifact, max_new_tokens=12)
    rows = generate(model, processor, (4, 2, 7), num_beams=4, do_sample=sample)
    assert len(rows) == 3
    for row in rows:
        assert text(artifact, row)


def test_several_sequences_of_a_prompt(model) -> None:
    artifacts = [compiled()["digits"], compiled()["flat"]]
    processor = MaskwrightLogitsProcessor(artifacts, max_new_tokens=60)
    rows = generate(model, processor, (4, 2), do_sample=True, num_return_sequences=3)
    assert len(rows) == 6
    for i, row in enumerate(rows):
        text(artifacts[i // 3], row)


def test_assisted_generation(model) -> None:
    artifact = compiled()["flat"]
    processor = MaskwrightLogitsProcessor(artifact, max_new_tokens=60)
    given = prompts(5)
    out = model.generate(
        **given, logits_processor=[processor], max_new_tokens=60, assistant_model=model, do_sample=False
    )
    assisted = out[0, 5:].tolist()
    processor.reset()
    alone = model.generate(**given, logits_processor=[processor], max_new_tokens=60, do_sample=False)[0, 5:].tolist()
    assert text(artifact, assisted) == text(artifact, alone)


def test_a_budget_ends_every_text_and_without_it_this_one_is_cut(model) -> None:
    artifact = compiled()["tree"]
    least = int(Matcher(artifact).min_tokens_to_finish())
    given = prompts(3)
    for seed in range(4):
        torch.manual_seed(seed)
        processor = MaskwrightLogitsProcessor(artifact, max_new_tokens=least + seed)
        out = model.generate(
            **given, logits_processor=[processor], max_new_tokens=least + seed, do_sample=True, temperature=2.0
        )
        json.loads(text(artifact, out[0, 3:].tolist()))
    with pytest.raises(ValueError, match="remain"):
        model.generate(
            **given, logits_processor=[MaskwrightLogitsProcessor(artifact, max_new_tokens=least - 1)], max_new_tokens=9
        )


def test_a_processor_is_reset_between_two_generations(model) -> None:
    artifact = compiled()["digits"]
    processor = MaskwrightLogitsProcessor(artifact)
    first = generate(model, processor, (8, 3))
    with pytest.raises(ValueError, match="reset"):
        generate(model, processor, (2, 2))
    with pytest.raises(ValueError, match="reset"):
        generate(model, processor, (8, 2, 3))
    processor.reset()
    assert generate(model, processor, (8, 3)) == first


def test_scores_are_not_changed_in_place_and_wide_ones_are_masked() -> None:
    artifact = compiled()["digits"]
    scores = torch.zeros((2, artifact.vocab_size + 9), dtype=torch.bfloat16)
    out = MaskwrightLogitsProcessor([artifact, None])(torch.ones((2, 3), dtype=torch.int64), scores)
    assert (scores == 0).all() and (out[1] == 0).all()
    assert torch.isneginf(out[0, artifact.vocab_size :]).all() and (out[0] == 0).any() and out.dtype == scores.dtype


def test_an_impossible_row_is_masked_and_only_such_rows_are_a_dead_end() -> None:
    artifact = compiled()["digits"]
    digit, other = (next(t for t in range(4000) if artifact.pack.token_bytes(t) == c) for c in (b"7", b"x"))
    processor = MaskwrightLogitsProcessor(artifact)
    scores = torch.zeros((2, artifact.vocab_size))
    processor(torch.tensor([[1], [1]]), scores)
    out = processor(torch.tensor([[1, digit], [1, other]]), scores)
    assert torch.isneginf(out[1]).all() and (out[0] == 0).any()
    with pytest.raises(DeadEnd) as ended:
        processor(torch.tensor([[1, digit, other], [1, other, other]]), scores)
    assert ended.value.cause == DeadEndCause.OUTSIDE_TRUNCATION and ended.value.prefix == (digit,)


def test_logits_of_a_smaller_vocabulary_are_a_dead_end() -> None:
    with pytest.raises(DeadEnd) as ended:
        MaskwrightLogitsProcessor(compiled()["flat"])(torch.ones((1, 1), dtype=torch.int64), torch.zeros((1, 3)))
    assert ended.value.cause == DeadEndCause.VOCABULARY_MISMATCH


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="no artifact"):
        MaskwrightLogitsProcessor([])
    for stops, error in (([1 << 20], ValueError), ([-1], ValueError), ([1.5], TypeError)):
        with pytest.raises(error):
            MaskwrightLogitsProcessor(compiled()["flat"], stop_token_ids=stops)
    with pytest.raises(WrongVocabulary):
        MaskwrightLogitsProcessor([compiled()["flat"], toy_artifact()])
    with pytest.raises(ValueError, match="divide"):
        MaskwrightLogitsProcessor([compiled()["flat"]] * 2)(torch.ones((3, 1), dtype=torch.int64), torch.zeros((3, 9)))
    ids = torch.ones((2, 4), dtype=torch.int64)
    assert (MaskwrightLogitsProcessor([None, None])(ids, torch.zeros((2, 9))) == 0).all()
