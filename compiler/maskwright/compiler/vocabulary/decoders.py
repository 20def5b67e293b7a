"""A tokenizer.json's decoder: token string -> bytes, or a refusal by name.

A decoder is a list of steps on a list of token strings. It's usable when the text of any token sequence is
the concatenation of bytes that each token has on its own. So each step is applied to every token alone, and
refused where its result could depend on neighbours. What that is depends on the steps before (`Stage`):

    SEPARATE  every token is still its own string: steps that map strings one by one are exact
    RUNS      after ByteFallback: neighbouring byte tokens (`<0x0A>`) form one string, others are separate
    FUSED     after Fuse or ByteLevel: the whole text is one string

In RUNS and FUSED, text can be put together from pieces: `loose` holds the bytes that can come from a piece
shorter than a character. A replacement is exact when no match can span pieces: its pattern is one ASCII
character, or one character that loose bytes can't spell. One exception is let through with a warning: where
SentencePiece's mark for a space is replaced after ByteFallback, a U+2581 that byte tokens spell is printed as
a space too, so that character can't be printed at all.

"Concatenation" leaves two things aside. The first token of a text may be spelled differently (Metaspace,
WordPiece and a Strip at the start drop a leading space): `dummy_prefix` says so. And where the bytes aren't
UTF-8, decoders put replacement characters; the bytes here are those before that.

The steps' rules are those of the `tokenizers` library; the tests compare with it, step by step and in
sequences.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic
from maskwright.compiler.vocabulary.faults import (
    MAX_TABLE_BYTES,
    MAX_TOKEN_BYTES,
    invalid,
    too_large,
)

SPACE_MARK = "▁"
"""U+2581, which SentencePiece writes for a space. Its encoders can't tell the two apart."""
MAX_STEPS = 64
MAX_NESTING = 8


class Stage(Enum):
    """How far tokens have grown together."""

    SEPARATE = 0
    RUNS = 1
    FUSED = 2


@dataclass(slots=True)
class Spelling:
    """The tokens between two steps: str, or bytes for what may be less than a character; None: no text."""

    tokens: list[str | bytes | None]
    stage: Stage = Stage.SEPARATE
    loose: frozenset[int] = frozenset()
    dummy_prefix: bool = False
    byte_level: bool = False
    warnings: list[Diagnostic] = field(default_factory=list)


@dataclass(slots=True)
class Spelled:
    """The result: each token's bytes, None for tokens without any."""

    tokens: list[bytes | None]
    dummy_prefix: bool
    byte_level: bool
    fallback_bytes: frozenset[int]
    warnings: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One decoder of the file, with its place."""

    kind: str
    value: dict[str, Any]
    pointer: str

    def refuse(self, reason: str) -> CompileError:
        """The error that names this decoder: its output isn't a concatenation of token bytes."""
        return invalid(
            f"decoder {self.kind} isn't a concatenation of token bytes: {reason}",
            pointer=self.pointer,
            decoder=self.kind,
            reason=reason,
        )

    def warn_of_space_mark(self) -> Diagnostic:
        """The note that U+2581 can't be printed."""
        return Diagnostic(
            Code.INVALID_VOCABULARY,
            f"decoder {self.kind} prints U+2581 spelled by single-byte tokens as a space",
            severity="warning",
            pointer=self.pointer,
            detail={"decoder": self.kind, "character": SPACE_MARK},
        )

    def parameter(self, key: str, kind: type, default: Any = None) -> Any:
        """The step's parameter `key`, checked to be of type `kind`."""
        value = self.value.get(key, default)
        if type(value) is not kind:
            raise invalid(
                f"{key} of decoder {self.kind} isn't a {kind.__name__}", pointer=f"{self.pointer}/{key}"
            )
        return value


def spell(texts: list[str | None], decoder: Any) -> Spelled:
    """Each token's bytes by `decoder`, a tokenizer.json's parsed `decoder`. Linear in steps times tokens.

    Raises CompileError, naming decoder and reason, for decoders that aren't a concatenation.
    """
    if decoder is None:
        raise invalid(
            "no decoder: tokens would be joined with spaces",
            pointer="/decoder",
            hint="set the tokenizer's decoder, for example ByteLevel",
        )
    s = Spelling(list(texts))
    _check_sizes(s)
    fallback: frozenset[int] = frozenset()
    for step in _steps(decoder):
        STEPS[step.kind](step, s)
        _check_sizes(s)
        if step.kind == "ByteFallback":
            fallback = s.loose
    tokens = [t.encode("utf-8") if isinstance(t, str) else t for t in s.tokens]
    return Spelled([t or None for t in tokens], s.dummy_prefix, s.byte_level, fallback, tuple(s.warnings))


def _steps(decoder: Any) -> list[Step]:
    """The decoder as a flat list, nested sequences opened."""
    out: list[Step] = []
    todo = [(decoder, "/decoder", 0)]
    while todo:
        value, pointer, depth = todo.pop()
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            raise invalid("not an object with a type", pointer=pointer)
        if kind == "Sequence":
            parts = value.get("decoders")
            if not isinstance(parts, list):
                raise invalid("not an array of decoders", pointer=f"{pointer}/decoders")
            if depth == MAX_NESTING:
                raise too_large("decoder_nesting", MAX_NESTING, depth + 1, pointer=pointer)
            todo.extend(
                (p, f"{pointer}/decoders/{i}", depth + 1) for i, p in reversed(list(enumerate(parts)))
            )
        elif kind in STEPS:
            out.append(Step(kind, value, pointer))
        else:
            raise invalid(f"decoder {kind!r:.80} isn't known", pointer=pointer, decoder=kind[:80])
        if len(out) + len(todo) > MAX_STEPS:
            raise too_large("decoder_steps", MAX_STEPS, len(out) + len(todo), pointer=pointer)
    return out


def _check_sizes(s: Spelling) -> None:
    total = 0
    for i, t in enumerate(s.tokens):
        if t is not None:
            total += len(t)
            if len(t) > MAX_TOKEN_BYTES:
                raise too_large("token_bytes", MAX_TOKEN_BYTES, len(t), pointer=f"/token/{i}")
    if total > MAX_TABLE_BYTES:
        raise too_large("vocabulary_table_bytes", MAX_TABLE_BYTES, total)


def _map_texts(s: Spelling, f: Callable[[str], str | bytes]) -> None:
    s.tokens = [f(t) if isinstance(t, str) else t for t in s.tokens]


# -- ByteLevel -----------------------------------------------------------------------------------------------


def byte_level_alphabet() -> dict[str, int]:
    """Character -> byte: printable Latin-1 stands for itself, U+0100 and up for the other bytes in order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in set(printable)]
    return {chr(b): b for b in printable} | {chr(0x100 + n): b for n, b in enumerate(others)}


_ALPHABET = byte_level_alphabet()


def _byte_level_token(text: str) -> bytes:
    """Bytes by the alphabet; a token (an added one) with any character outside it is taken as it stands."""
    try:
        return bytes([_ALPHABET[c] for c in text])
    except KeyError:
        return text.encode("utf-8")


def _byte_level(step: Step, s: Spelling) -> None:
    if s.stage is not Stage.SEPARATE:
        raise step.refuse("after tokens were joined, whether the alphabet applies depends on all of them")
    _map_texts(s, _byte_level_token)
    s.stage, s.loose, s.byte_level = Stage.FUSED, frozenset(range(256)), True


# -- ByteFallback, Fuse --------------------------------------------------------------------------------------

# the library parses two characters as hexadecimal and lets a plus sign pass
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>")


def _byte_fallback(step: Step, s: Spelling) -> None:
    if s.stage is not Stage.SEPARATE:
        raise step.refuse("after tokens were joined, what looks like a byte token depends on neighbours")

    def one(text: str) -> str | bytes:
        m = _BYTE_TOKEN.fullmatch(text)
        return bytes([int(m[1], 16)]) if m else text

    _map_texts(s, one)
    s.stage, s.loose = Stage.RUNS, frozenset(t[0] for t in s.tokens if isinstance(t, bytes))


def _fuse(step: Step, s: Spelling) -> None:
    s.stage = Stage.FUSED


# -- Replace, Metaspace, Strip -------------------------------------------------------------------------------


def _replace_all(step: Step, s: Spelling, pattern: str, content: str) -> None:
    """Replace `pattern` by `content` in every token, where no match can span tokens."""
    old, new = pattern.encode("utf-8"), content.encode("utf-8")
    if not old:
        raise step.refuse("an empty pattern matches between tokens")
    if s.stage is Stage.FUSED and len(pattern) > 1:
        raise step.refuse(f"a match of {pattern!r:.40} can span tokens")
    if len(old) > 1 and s.loose and set(old) <= s.loose:
        if pattern != SPACE_MARK or s.byte_level:
            raise step.refuse(f"{pattern!r:.40} can be put together from tokens of single bytes")
        s.warnings.append(step.warn_of_space_mark())
    total = 0
    for i, t in enumerate(s.tokens):
        if t is None:
            continue
        n = t.count(pattern) if isinstance(t, str) else t.count(old)
        if n:
            total += len(t) + n * len(new)
            if total > MAX_TABLE_BYTES:
                raise too_large("vocabulary_table_bytes", MAX_TABLE_BYTES, total, pointer=step.pointer)
            s.tokens[i] = t.replace(pattern, content) if isinstance(t, str) else t.replace(old, new)
    if s.loose and set(old) & s.loose:
        s.loose |= frozenset(new)


_REGEX_SPECIAL = set("\\^$.|?*+()[]{}")


def _replace(step: Step, s: Spelling) -> None:
    pattern = step.parameter("pattern", dict)
    text = pattern.get("String", pattern.get("Regex"))
    if not isinstance(text, str) or len(pattern) != 1:
        raise invalid("not a String or a Regex", pointer=f"{step.pointer}/pattern")
    if "Regex" in pattern and _REGEX_SPECIAL & set(text):
        raise step.refuse(f"the regular expression {text!r:.40} isn't interpreted")
    _replace_all(step, s, text, step.parameter("content", str))


def _metaspace(step: Step, s: Spelling) -> None:
    replacement = step.parameter("replacement", str)
    if len(replacement) != 1:
        raise invalid("replacement isn't one character", pointer=f"{step.pointer}/replacement")
    scheme = step.value.get("prepend_scheme")
    if scheme is None:  # files of early versions
        scheme = "always" if step.parameter("add_prefix_space", bool, True) else "never"
    if scheme not in ("always", "first", "never"):
        raise invalid("prepend_scheme isn't always, first or never", pointer=f"{step.pointer}/prepend_scheme")
    # the first string of a text loses its replacement characters; fused, the whole text is that first string
    drops = scheme != "never"
    _replace_all(step, s, replacement, "" if drops and s.stage is Stage.FUSED else " ")
    s.dummy_prefix |= drops and s.stage is not Stage.FUSED


def _strip(step: Step, s: Spelling) -> None:
    content, start, stop = (
        step.parameter("content", str),
        step.parameter("start", int),
        step.parameter("stop", int),
    )
    if len(content) != 1 or start < 0 or stop < 0:
        raise invalid("content isn't one character, or a count is negative", pointer=step.pointer)
    if s.stage is Stage.FUSED:
        if stop:
            raise step.refuse("it strips the end of the whole text")
        s.dummy_prefix |= start > 0
        return
    if s.stage is Stage.RUNS and (start or stop) and set(content.encode("utf-8")) <= s.loose:
        raise step.refuse("what it strips can come from a byte token and then depends on neighbours")
    _map_texts(s, lambda t: _strip_token(t, content, start, stop))


def _strip_token(text: str, content: str, start: int, stop: int) -> str:
    low, high = 0, len(text)
    while low < min(start, len(text)) and text[low] == content:
        low += 1
    while high > max(low, len(text) - stop) and text[high - 1] == content:
        high -= 1
    return text[low:high]


# -- WordPiece -----------------------------------------------------------------------------------------------

# applied by the library to each token by itself, in this order
_CLEANUP = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"),
    (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip


def _word_piece(step: Step, s: Spelling) -> None:
    prefix, cleanup = step.parameter("prefix", str), step.parameter("cleanup", bool)
    if s.stage is Stage.FUSED:
        if cleanup:
            raise step.refuse("cleanup of the whole text spans tokens")
        return
    if s.loose:
        raise step.refuse("the space before a byte token depends on neighbours")

    def one(text: str) -> str:
        text = text[len(prefix) :] if text.startswith(prefix) else f" {text}"
        for old, new in _CLEANUP if cleanup else ():
            text = text.replace(old, new)
        return text

    _map_texts(s, one)
    s.dummy_prefix = True


# -- refused -------------------------------------------------------------------------------------------------


def _ctc(step: Step, s: Spelling) -> None:
    raise step.refuse("it merges repeated tokens")


def _bpe_decoder(step: Step, s: Spelling) -> None:
    raise step.refuse("the suffix becomes a space except at the last token")


STEPS: dict[str, Callable[[Step, Spelling], None]] = {
    "BPEDecoder": _bpe_decoder,
    "ByteFallback": _byte_fallback,
    "ByteLevel": _byte_level,
    "CTC": _ctc,
    "Fuse": _fuse,
    "Metaspace": _metaspace,
    "Replace": _replace,
    "Strip": _strip,
    "WordPiece": _word_piece,
}
