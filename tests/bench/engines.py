"""Maskwright and its peers behind one interface, for side-by-side measurement.

An engine prepares a vocabulary once, compiles a JSON Schema's text, starts sequences, fills a mask and accepts a token.
Peers are imported when they're used; `available` names those that are installed. Every engine is used through its
public Python interface with its own defaults, in one thread, with any white space allowed where that's an option.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import importlib.util
import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np


def read_text(path: Path) -> str:
    """A file's text, gzipped or not."""
    raw = path.read_bytes()
    return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()


class Engine:
    """`mask` [1, words] int32 is written by `fill`. `size`: bytes of the compiled form where it can be stored, else
    None. Errors of the engine pass through.
    """

    package: ClassVar[str]
    size: int | None = None

    def __init__(self, tokenizer: Path, stop: int, vocab_size: int) -> None:
        self.tokenizer, self.stop, self.vocab_size = tokenizer, stop, vocab_size
        self.mask = np.zeros((1, (vocab_size + 31) // 32), dtype=np.int32)
        self.prepare()

    def prepare(self) -> None:
        """Whatever is done once per vocabulary."""
        raise NotImplementedError

    def compile(self, schema: str) -> None:
        """Schema text to compiled form."""
        raise NotImplementedError

    def load(self) -> None:
        """Compiled form to a sequence at its start."""
        raise NotImplementedError

    def restart(self) -> None:
        """A new sequence of the loaded form."""
        self.load()

    def fill(self) -> None:
        raise NotImplementedError

    def accept(self, token: int) -> bool:
        raise NotImplementedError

    def legal(self, token: int) -> bool:
        """Whether the mask filled last has the token."""
        return bool(int(self.mask[0, token >> 5]) >> (token & 31) & 1)

    def hugging_face(self) -> Any:
        from tokenizers import Tokenizer
        from transformers import PreTrainedTokenizerFast

        t = Tokenizer.from_str(read_text(self.tokenizer))
        return PreTrainedTokenizerFast(
            tokenizer_object=t, eos_token=t.id_to_token(self.stop), clean_up_tokenization_spaces=False
        )

    def token_bytes(self) -> list[bytes | None]:
        from maskwright.compiler import Vocabulary

        return list(Vocabulary.from_file(self.tokenizer).tokens)


class Maskwright(Engine):
    package = "maskwright"

    def prepare(self) -> None:
        from maskwright import workers
        from maskwright.compiler import Compiler, Vocabulary

        vocabulary = Vocabulary.from_file(self.tokenizer)
        self.workers, self.compiler = workers, Compiler(vocabulary)
        self.pack = workers.VocabularyPack.from_bytes(vocabulary.pack_bytes())

    def compile(self, schema: str) -> None:
        self.data = self.compiler.compile_json_schema(schema).to_bytes()
        self.size = len(self.data)

    def load(self) -> None:
        artifact = self.workers.Artifact.from_bytes(self.data, self.pack)
        self.matcher = self.workers.Matcher(artifact, stop_token_ids=[self.stop])

    def restart(self) -> None:
        self.matcher.reset()

    def fill(self) -> None:
        self.matcher.fill_next_token_bitmask(self.mask, 0)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.accept_token(token))


class Xgrammar(Engine):
    package = "xgrammar"
    options: ClassVar[dict[str, Any]] = {}

    def prepare(self) -> None:
        import xgrammar

        self.api = xgrammar
        info = xgrammar.TokenizerInfo.from_huggingface(
            self.hugging_face(), vocab_size=self.vocab_size, stop_token_ids=[self.stop]
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, **self.options)

    def compile(self, schema: str) -> None:
        self.grammar = self.compiler.compile_json_schema(schema, any_whitespace=True, strict_mode=False)

    def load(self) -> None:
        self.matcher = self.api.GrammarMatcher(self.grammar)

    def fill(self) -> None:
        self.matcher.fill_next_token_bitmask(self.mask)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.accept_token(token))


class XgrammarDynamic(Xgrammar):
    options: ClassVar[dict[str, Any]] = {"enable_dynamic_compilation": True}


class Llguidance(Engine):
    package = "llguidance"

    def prepare(self) -> None:
        import llguidance.hf
        import llguidance.numpy

        self.api, self.fill_mask = llguidance, llguidance.numpy.fill_next_token_bitmask
        self.llm = llguidance.hf.from_tokenizer(self.hugging_face())
        self.mask = llguidance.numpy.allocate_token_bitmask(1, self.llm.vocab_size)

    def compile(self, schema: str) -> None:
        grammar = json.dumps({"grammars": [{"json_schema": json.loads(schema)}]})
        self.compiled = self.api.LLMatcher(self.llm, grammar, log_level=0)
        if self.compiled.is_error():
            raise ValueError(self.compiled.get_error())

    def load(self) -> None:
        self.matcher = self.compiled.deep_copy()

    def fill(self) -> None:
        self.fill_mask(self.matcher, self.mask, 0)

    def accept(self, token: int) -> bool:
        return self.legal(token) and bool(self.matcher.consume_token(token))


class Maskforge(Engine):
    package = "maskforge"

    def prepare(self) -> None:
        import maskforge

        self.vocabulary = maskforge.Vocabulary.from_id_ordered_tokens(self.token_bytes(), self.stop)
        self.compiler = maskforge.Compiler()

    def compile(self, schema: str) -> None:
        self.bound = self.compiler.compile(schema).bind(self.vocabulary)

    def load(self) -> None:
        self.buffer = bytearray(4 * self.bound.mask_word_count)
        self.mask = np.frombuffer(self.buffer, dtype=np.int32)[None, :]
        self.session = self.bound.start_session()

    def restart(self) -> None:
        self.session = self.bound.start_session()

    def fill(self) -> None:
        self.session.write_mask(self.buffer)

    def accept(self, token: int) -> bool:
        if not self.legal(token):
            return False
        self.session.advance(token)
        return True


class OutlinesCore(Engine):
    package = "outlines_core"

    def prepare(self) -> None:
        import outlines_core
        import outlines_core.json_schema

        self.api = outlines_core
        ids: dict[bytes, list[int]] = {}
        for i, data in enumerate(self.token_bytes()):
            if data and i != self.stop:
                ids.setdefault(data, []).append(i)
        self.vocabulary = outlines_core.Vocabulary(self.stop, ids)

    def compile(self, schema: str) -> None:
        regex = self.api.json_schema.build_regex_from_schema(schema, r"[ \n\t\r]*")
        self.index = self.api.Index(regex, self.vocabulary)

    def load(self) -> None:
        self.guide = self.api.Guide(self.index)

    def fill(self) -> None:
        self.guide.write_mask_into(self.mask.ctypes.data, self.mask.size, 4)

    def accept(self, token: int) -> bool:
        if not self.legal(token):
            return False
        self.guide.advance(token, False)
        return True


ENGINES: dict[str, type[Engine]] = {
    "maskwright": Maskwright,
    "xgrammar": Xgrammar,
    "xgrammar_dynamic": XgrammarDynamic,
    "llguidance": Llguidance,
    "maskforge": Maskforge,
    "outlines_core": OutlinesCore,
}


def available() -> list[str]:
    """Engines whose package is installed."""
    return [name for name, engine in ENGINES.items() if importlib.util.find_spec(engine.package)]


def version(name: str) -> str:
    """The installed version of an engine's package."""
    return importlib.metadata.version(ENGINES[name].package.replace("_", "-"))
