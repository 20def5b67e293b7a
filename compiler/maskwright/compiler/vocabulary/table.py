"""`TokenTable`, what a reader returns, and `Vocabulary`, the immutable table that the compiler works with.

Invariants of both: `tokens[i]` is None exactly when id i is special, unused or stands for no bytes; a special
id is never text; every stop token lies in the table. `size` is the highest token id + 1; ids in between may
be unused. The model's logits can be wider (`logits_width`, where the files say so): what's beyond `size` is
no token.

Not handled: normalisers and pre-tokenisers (how text is split into tokens is the encoder's business; a mask
judges tokens as they come), and the first token of a text where the decoder treats it differently
(`dummy_prefix`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from pathlib import Path

from maskwright.compiler.diagnostics import Diagnostic
from maskwright.compiler.vocabulary.faults import MAX_TOKENS, invalid, too_large
from maskwright.workers.fingerprint import vocabulary_fingerprint

DEMO = "demo.tokenizer.json"


@dataclass(slots=True)
class TokenTable:
    """What a reader makes of a file; `stop_token_ids` are those that the file itself tells."""

    kind: str
    tokens: list[bytes | None]
    special: dict[int, str] = field(default_factory=dict)
    stop_token_ids: tuple[int, ...] = ()
    logits_width: int | None = None
    dummy_prefix: bool = False
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """A token table. Make one with `from_file`, `from_bytes`, `from_tokens` or `demo`; equal by fingerprint.

    kind: where it comes from: `byte_level_bpe`, `byte_fallback_bpe`, `bpe`, `unigram`, `wordpiece`,
        `wordlevel`, `tekken`, `tiktoken` or `tokens`.
    tokens: the bytes of each id; None for ids that are special or unused.
    stop_token_ids: ascending; the default for a matcher, which may be given others.
    logits_width: how many logits the model gives, where that's known, else `size`.
    dummy_prefix: the decoder spells the first token of a text differently (it drops a leading space).
    name: the file's name, for messages.
    warnings: what a user should know of the decoder.
    """

    kind: str
    tokens: tuple[bytes | None, ...]
    stop_token_ids: tuple[int, ...]
    logits_width: int
    dummy_prefix: bool
    name: str
    warnings: tuple[Diagnostic, ...]
    _special: Mapping[int, str]

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        stop_token_ids: Iterable[int] | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Vocabulary:
        """Read a tokenizer.json, a tekken.json or a tiktoken rank file, gzipped or not.

        For a file named tokenizer.json, `generation_config.json`, `tokenizer_config.json` and `config.json`
        beside it are asked for stop tokens and the logits width. `stop_token_ids` replaces what the files
        tell; `special_tokens` adds special tokens by name, which a rank file can't hold. Raises CompileError,
        naming the place, for a file that can't be read and for a decoder that isn't a concatenation of token
        bytes. About a second for 128,000 tokens, nearly all of it parsing JSON.
        """
        from maskwright.compiler.vocabulary.configs import read_beside
        from maskwright.compiler.vocabulary.formats import load, naming, read_table

        with naming(os.fspath(path)):
            table = read_table(load(Path(path)))
        read_beside(Path(path), table)
        with naming(os.fspath(path)):
            return cls._of(table, Path(path).name, stop_token_ids, special_tokens)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        *,
        name: str = "",
        stop_token_ids: Iterable[int] | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Vocabulary:
        """As `from_file`, from the file's content alone; `name` is for messages."""
        from maskwright.compiler.vocabulary.formats import naming, read_table

        with naming(name or None):
            return cls._of(read_table(data), name, stop_token_ids, special_tokens)

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[bytes | None],
        special: Iterable[int] | Mapping[int, str] = (),
        stop_token_ids: Iterable[int] = (),
    ) -> Vocabulary:
        """A table given directly. `special`: ids, or a map from ids to texts; they may lie beyond."""
        names = dict(special) if isinstance(special, Mapping) else dict.fromkeys(special, "")
        return cls._of(TokenTable("tokens", list(tokens), names), "", stop_token_ids, None)

    @classmethod
    def demo(cls) -> Vocabulary:
        """The small vocabulary that the package ships, trained by the project (see `train`)."""
        data = (resources.files("maskwright.compiler") / "data" / DEMO).read_bytes()
        return cls.from_bytes(data, name=DEMO)

    @classmethod
    def _of(
        cls,
        table: TokenTable,
        name: str,
        stop_token_ids: Iterable[int] | None,
        special_tokens: Mapping[str, int] | None,
    ) -> Vocabulary:
        special = dict(table.special)
        for text, i in (special_tokens or {}).items():
            special[i] = text
        tokens = _with_special(table.tokens, special)
        stops = table.stop_token_ids if stop_token_ids is None else tuple(stop_token_ids)
        if stop_token_ids is None and special_tokens:
            from maskwright.compiler.vocabulary.stop_tokens import stop_tokens_by_name

            stops += stop_tokens_by_name(special)
        for i in stops:
            _check_id(i, "stop token")
            if i >= len(tokens):
                raise invalid(
                    f"stop token {i} isn't in the vocabulary, whose highest id is {len(tokens) - 1}",
                    hint="name it as a special token",
                    id=i,
                    size=len(tokens),
                )
        return cls(
            kind=table.kind,
            tokens=tokens,
            stop_token_ids=tuple(sorted(set(stops))),
            logits_width=max(table.logits_width or 0, len(tokens)),
            dummy_prefix=table.dummy_prefix,
            name=name,
            warnings=tuple(replace(w, source=w.source or name or None) for w in table.warnings),
            _special=special,
        )

    @property
    def size(self) -> int:
        """The highest token id + 1."""
        return len(self.tokens)

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The ids of special tokens: symbols of their own, never text."""
        return frozenset(self._special)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the whole table, hexadecimal (`maskwright.workers.fingerprint`)."""
        return vocabulary_fingerprint(self.tokens, self._special)

    def token_bytes(self, i: int) -> bytes | None:
        """The bytes of token i; None when it is special or unused, also for ids outside the table."""
        return self.tokens[i] if 0 <= i < len(self.tokens) else None

    def special_text(self, i: int) -> str | None:
        """The name of special token i (empty where it has none), None for other ids."""
        return self._special.get(i)

    def pack_bytes(self) -> bytes:
        """The vocabulary pack: all that doesn't depend on a source. Takes seconds for 128,000 tokens."""
        from maskwright.compiler.pack import build_pack

        return build_pack(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"<Vocabulary {self.name or self.kind} {self.size} {self.fingerprint[:12]}>"


def _with_special(tokens: Sequence[bytes | None], special: Mapping[int, str]) -> tuple[bytes | None, ...]:
    """The tokens with special ids and empty tokens as None, long enough for every special id."""
    for i, text in special.items():
        _check_id(i, "special token")
        if not isinstance(text, str) or not _is_unicode(text):
            raise invalid(f"special token {i} has a name that isn't Unicode text", id=i)
    size = max(len(tokens), max(special, default=-1) + 1)
    if size > MAX_TOKENS:
        raise too_large("vocabulary_tokens", MAX_TOKENS, size)
    out: list[bytes | None] = [t or None for t in tokens]
    out.extend(None for _ in range(size - len(out)))
    for i in special:
        out[i] = None
    for i, t in enumerate(out):
        if t is not None and type(t) is not bytes:
            raise invalid(f"token {i} is {type(t).__name__}, not bytes", id=i)
    if size == 0:
        raise invalid("the vocabulary holds no token")
    return tuple(out)


def _check_id(i: object, what: str) -> None:
    if isinstance(i, bool) or not isinstance(i, int) or not 0 <= i < MAX_TOKENS:
        raise invalid(f"{what} id {i!r} isn't an integer from 0 to {MAX_TOKENS - 1}", id=repr(i))


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
