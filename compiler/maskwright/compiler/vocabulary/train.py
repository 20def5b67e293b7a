"""Trains the vocabulary that the package ships: byte-level BPE (Sennrich et al. 2016), 4,096 tokens.

    python -m maskwright.compiler.vocabulary.train [OUT]

The text is `corpus.documents`, so the file is a product of this project alone and the same on every run. All
256 bytes are tokens: the vocabulary can spell any text. Ids 0 to 2 are the special tokens, `<|end|>` is the
stop token.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from maskwright.compiler.vocabulary.corpus import documents
from maskwright.compiler.vocabulary.table import DEMO

SIZE = 4096
SPECIAL = ("<|begin|>", "<|end|>", "<|pad|>")


def train() -> str:
    """The trained tokenizer.json, one model entry a line. Takes about two seconds."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents(), trainer)
    return layout(json.loads(tokenizer.to_str()))


def layout(value: dict[str, Any]) -> str:
    """The parsed tokenizer.json as text that doesn't depend on the library's own printing."""
    model = value["model"]
    vocab = sorted(model.pop("vocab").items(), key=lambda item: item[1])
    merges = [m if isinstance(m, str) else " ".join(m) for m in model.pop("merges")]
    lines = [
        *(f'  "{key}": {_dump(part)},' for key, part in value.items() if key != "model"),
        '  "model": {',
        *(f'    "{key}": {_dump(part)},' for key, part in model.items()),
        '    "vocab": {',
        ",\n".join(f"{_dump(token)}: {i}" for token, i in vocab),
        '    },\n    "merges": [',
        ",\n".join(map(_dump, merges)),
        "    ]\n  }",
    ]
    return "{\n" + "\n".join(lines) + "\n}\n"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> int:
    """Write the file, by default into the package's data folder."""
    default = Path(__file__).parent.parent / "data" / DEMO
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    out.parent.mkdir(parents=True, exist_ok=True)
    text = train()
    out.write_text(text, encoding="utf-8", newline="\n")
    sys.stderr.write(f"{out}: {len(text.encode())} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
