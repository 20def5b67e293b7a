"""`DeviceMatcher` on CPU tensors against `Matcher`: torch operations, loops of fixed length, a Triton kernel."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from samples import compiled, next_token, random_artifact, real_artifacts, symbols_artifact, toy_artifact

torch = pytest.importorskip("torch", reason="torch isn't installed (make test-adapters)")

from maskwright.workers import Artifact, Matcher, allocate_token_bitmask  # noqa: E402
from maskwright.workers.errors import TablesRefused  # noqa: E402
from maskwright.workers.tensors import DeviceMatcher, DeviceTables  # noqa: E402

os.environ["TRITON_INTERPRET"] = "1"  # read where kernels are defined: before their module is imported
FORMS = ["operations", "fixed", "kernel"]


def device_matcher(tables: DeviceTables, batch: int, form: str, **options) -> DeviceMatcher:
    if form == "kernel":
        pytest.importorskip("triton", reason="Triton isn't installed")
        return DeviceMatcher(tables, batch, kernels="triton", **options)
    return DeviceMatcher(tables, batch, kernels="torch", fixed=form == "fixed", **options)


def compare(artifacts: list[Artifact], form: str, *, batch: int, steps: int, seed: int = 0) -> DeviceMatcher:
    """Random tokens for sequences that follow the artifacts in turn. Everything that can be asked is compared."""
    rng = random.Random(seed)
    device = device_matcher(DeviceTables(artifacts, "cpu"), batch, form)
    hosts = [Matcher(artifacts[i % len(artifacts)]) for i in range(batch)]
    for i in range(batch):
        device.reset([i], i % len(artifacts))
    mask, ours = allocate_token_bitmask(batch, artifacts[0].vocab_size), None
    for _ in range(steps):
        for i, host in enumerate(hosts):
            host.fill_next_token_bitmask(mask, i)
        ours = torch.full(mask.shape, 7, dtype=torch.int32)
        device.fill_next_token_bitmask(ours)
        np.testing.assert_array_equal(ours.numpy(), mask)
        tokens = [next_token(rng, host, mask[i : i + 1]) for i, host in enumerate(hosts)]
        legal = device.accept(torch.tensor(tokens))
        assert legal.tolist() == [host.accept_token(t) for host, t in zip(hosts, tokens, strict=True)]
        assert device.is_accepting().tolist() == [host.is_accepting() for host in hosts]
        assert device.is_terminated().tolist() == [host.is_terminated() for host in hosts]
        for i, host in enumerate(hosts):
            if host.is_terminated() and rng.random() < 0.6:
                host.reset()
                device.reset(torch.tensor([i]), i % len(artifacts))
    assert device.failures() == {} and not device.has_failed().any()
    return device


@pytest.mark.parametrize("form", FORMS)
def test_the_toy_language(form: str) -> None:
    compare([toy_artifact()], form, batch=8, steps={"operations": 150, "fixed": 60, "kernel": 40}[form])


@pytest.mark.parametrize("seed", range(0, 60, 3))
@pytest.mark.parametrize("hot", [0, 1])
def test_random_automata(seed: int, hot: int) -> None:
    compare([random_artifact(seed, hot)], "operations", batch=6, steps=25, seed=seed)


@pytest.mark.parametrize("seed", [0, 9, 21])
def test_random_automata_in_the_kernel(seed: int) -> None:
    compare([random_artifact(seed, 0)], "kernel", batch=4, steps=15, seed=seed)


def test_compiled_sources_in_one_batch() -> None:
    device = compare(list(compiled().values()), "operations", batch=18, steps=80)
    assert len(device.tables.artifacts) == 6


def test_real_schemas(shared: Path) -> None:
    artifacts = real_artifacts(shared, 40)
    device = compare(artifacts, "operations", batch=3 * len(artifacts), steps=60)
    assert len(device.tables.artifacts) == len(artifacts) > 0


def test_compiled_sources_with_loops_of_fixed_length() -> None:
    bounded = [a for name, a in compiled().items() if name in ("flat", "tree", "digits")]
    compare(bounded, "fixed", batch=6, steps=25)


def test_compiled_sources_in_the_kernel() -> None:
    compare(list(compiled().values()), "kernel", batch=6, steps=20)


@pytest.mark.parametrize("form", ["operations", "kernel"])
def test_special_tokens_as_symbols(form: str) -> None:
    compare([symbols_artifact()], form, batch=4, steps=40 if form != "kernel" else 15)


@pytest.mark.parametrize("form", FORMS)
def test_a_step_masks_the_next_logits(form: str) -> None:
    flat = compiled()["flat"]
    device, host = device_matcher(DeviceTables(flat, "cpu"), 2, form), Matcher(flat)
    token = next(t for t in range(flat.vocab_size) if flat.pack.token_bytes(t) == b"{")
    mask = allocate_token_bitmask(1, flat.vocab_size)
    for width in (flat.vocab_size + 70, flat.vocab_size - 100):
        for dtype in (torch.float32, torch.bfloat16):
            device.reset()
            host.reset()
            logits = torch.randn((2, width), dtype=dtype)
            before = logits.clone()
            assert device.step(torch.tensor([token, -1], dtype=torch.int32), logits).tolist() == [True, False]
            for row, matcher in ((1, host), (0, host)):
                matcher.fill_next_token_bitmask(mask)
                legal = np.unpackbits(mask[0].view(np.uint8), bitorder="little").astype(bool)[:width]
                legal = torch.from_numpy(np.pad(legal, (0, max(0, width - len(legal)))))
                assert torch.equal(logits[row], torch.where(legal, before[row], -torch.inf))
                matcher.accept_token(token)


def test_a_sequence_without_an_artifact_is_free() -> None:
    artifact = compiled()["flat"]
    device = DeviceMatcher(DeviceTables(artifact, "cpu"), 2)
    device.reset([1], None)
    size = artifact.vocab_size
    logits = torch.zeros((2, size + 5))
    for token in (0, size - 1, artifact.pack.stop_token_ids[0]):
        assert device.accept(torch.tensor([-1, token])).tolist() == [False, True]
    assert device.accept(torch.tensor([-1, size])).tolist() == [False, False]
    device.apply(logits)
    assert (logits[1, :size] == 0).all() and torch.isneginf(logits[1, size:]).all()
    assert not device.is_terminated().any() and device.failures() == {}
    device.reset([1])
    other = torch.zeros((2, size))
    device.apply(other)
    assert torch.equal(other[0], other[1])


@pytest.mark.parametrize("form", FORMS)
def test_a_stack_that_is_full_fails_its_sequence_alone(form: str) -> None:
    artifact = toy_artifact()
    device = device_matcher(DeviceTables(artifact, "cpu"), 2, form, capacity=4)
    opens = next(t for t in range(artifact.vocab_size) if artifact.pack.token_bytes(t) == b"[")
    for _ in range(4):
        device.accept(torch.tensor([opens, -1]))
    assert device.failures() == {}
    device.accept(torch.tensor([opens, opens]))
    assert device.failures() == {0: "overflow"} and device.has_failed().tolist() == [True, False]
    stop = artifact.pack.stop_token_ids[0]
    logits = torch.zeros((2, artifact.vocab_size))
    device.step(torch.tensor([opens, opens]), logits)
    assert device.accepted.tolist() == [False, True]
    assert torch.isfinite(logits[0]).nonzero().tolist() == [[stop]]
    assert device.accept(torch.tensor([stop, -1])).tolist() == [False, False]
    device.reset([0])
    assert device.failures() == {} and device.accept(torch.tensor([opens, opens])).tolist() == [True, True]


@pytest.mark.parametrize("form", ["operations", "kernel"])
def test_returns_that_chain_without_bound(form: str) -> None:
    """start: "a" start | "b" returns once for each a when b is read."""
    artifact = compiled()["chained"]
    tables = DeviceTables(artifact, "cpu")
    assert tables.chain is None
    with pytest.raises(TablesRefused) as refused:
        DeviceMatcher(tables, 1, kernels="torch", fixed=True)
    assert refused.value.reason == "returns" and "Matcher" in str(refused.value)
    device, host = device_matcher(tables, 1, form, capacity=400), Matcher(artifact)
    a, b = (next(t for t in range(artifact.vocab_size) if artifact.pack.token_bytes(t) == c) for c in (b"a", b"b"))
    for token in [*[a] * 80, b, b]:
        assert device.accept(torch.tensor([token])).item() == host.accept_token(token)
    assert device.is_accepting().item() and host.is_accepting()


def test_states_are_saved_restored_and_moved() -> None:
    artifact = compiled()["tree"]
    device = compare([artifact], "operations", batch=4, steps=20)
    saved, row = device.state.clone(), torch.zeros((4, artifact.vocab_size))
    device.apply(row)
    device.reset()
    device.state.copy_(saved)
    again = torch.zeros_like(row)
    device.apply(again)
    assert torch.equal(row, again)
    device.state.select_(torch.tensor([2, 2, 0, 1]))
    moved = torch.zeros_like(row)
    device.apply(moved)
    assert torch.equal(moved, row[[2, 2, 0, 1]])


def test_what_does_not_fit_is_refused() -> None:
    tables = DeviceTables(toy_artifact(), "cpu")
    device = DeviceMatcher(tables, 2)
    for tokens, error in (
        (torch.zeros(2), TypeError),
        (torch.zeros(3, dtype=torch.int64), ValueError),
        (torch.zeros((2, 1), dtype=torch.int64), ValueError),
        (torch.zeros(2, dtype=torch.int64, device="meta"), ValueError),
    ):
        with pytest.raises(error):
            device.accept(tokens)
    for logits, error in ((torch.zeros((2, 9), dtype=torch.int32), TypeError), (torch.zeros(9), ValueError)):
        with pytest.raises(error):
            device.apply(logits)
    for bitmask in (torch.zeros((2, 3), dtype=torch.int32), torch.zeros((2, 10)), torch.zeros((1, 10))):
        with pytest.raises(ValueError):
            device.fill_next_token_bitmask(bitmask)
    for rows, artifact in (([2], 0), ([-1], 0), ([0], 1), (None, -1)):
        with pytest.raises(IndexError):
            device.reset(rows, artifact)
    for rows in ([0.5], [True], ["0"]):
        with pytest.raises(TypeError):
            device.reset(rows)
    with pytest.raises(TypeError, match="tensor"):
        device.accept([1, 1])
    with pytest.raises(TypeError, match="tensor"):
        device.apply(np.zeros((2, 301), np.float32))
    for batch, options in ((0, {}), (1, {"capacity": -1}), (1, {"kernels": "cuda"})):
        with pytest.raises(ValueError):
            DeviceMatcher(tables, batch, **options)
    with pytest.raises(TablesRefused):
        DeviceTables(toy_artifact(), "cpu", max_bytes=100)
    assert "1 artifacts" in repr(tables)


def test_a_step_of_fixed_length_never_looks_at_data() -> None:
    """Under fake tensors every read of a value, and every shape that depends on one, raises."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    artifact = compiled()["digits"]
    device = DeviceMatcher(DeviceTables(artifact, "cpu"), 3, kernels="torch", fixed=True)
    looking = DeviceMatcher(device.tables, 3, kernels="torch", fixed=False)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        for matcher in (device, looking):
            for part in (matcher.state, matcher.tables):
                for name, value in list(vars(part).items()):
                    if type(value) is torch.Tensor:
                        setattr(part, name, mode.from_tensor(value))
            matcher.accepted = mode.from_tensor(matcher.accepted)
        tokens = torch.zeros(3, dtype=torch.int64)
        device.step(tokens, torch.zeros((3, 5000)))
        with pytest.raises(Exception, match=r"data-dependent|_local_scalar_dense"):
            looking.step(tokens, torch.zeros((3, 5000)))


def test_the_kernels_compile_for_gpus() -> None:
    """To machine code, which needs no GPU. Never launched there by this test."""
    pytest.importorskip("triton", reason="Triton isn't installed")
    code = """
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource, compile
        from maskwright.workers.tensors import kernels

        def check(fn, types, constants, warps):
            for capability in (80, 90):
                source = ASTSource(fn=fn, signature=types, constexprs=constants)
                made = compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps})
                assert len(made.asm["cubin"]) > 1000

        for dtype in ("fp32", "fp16", "bf16"):
            types = dict.fromkeys(kernels._mask_logits.arg_names, "i32")
            types |= {"logits": "*" + dtype, "bits": "*i32", "logit_rows": "*i64", "bit_rows": "*i32"}
            constants = {"CHOOSE_LOGITS": True, "CHOOSE_BITS": True, "SHIFT": 1, "SIZE": kernels.BLOCK}
            check(kernels._mask_logits, types | dict.fromkeys(constants, "constexpr"), constants, 4)
        types = dict.fromkeys(kernels._accept_tokens.arg_names, "*i32")
        types |= {"tokens": "*i64", "accepted": "*i8", "is_stop": "*u8", "token_bytes": "*u8"}
        types |= dict.fromkeys(("vocab_size", "words", "capacity", "n_classes", "max_pushes"), "i32")
        check(kernels._accept_tokens, types, {}, 1)
        print("compiled")
    """
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    made = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=environment
    )
    assert made.stdout.strip() == "compiled", made.stderr
