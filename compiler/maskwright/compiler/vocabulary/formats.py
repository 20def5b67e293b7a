"""Recognise a tokenizer file by its content and hand it to its reader.

Order of checks: size, gzip (RFC 1952, members one after another; the output is bounded while it is produced),
then the first character. `{` is JSON: an object with `model` is a Hugging Face tokenizer.json, one with
`config` and a list `vocab` is a tekken.json. A first line of base64, a space and a number is a tiktoken rank
file. What looks like another known file is refused by its name with what to do. Names of files never matter.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from maskwright.compiler.diagnostics import CompileError
from maskwright.compiler.vocabulary.faults import MAX_FILE_BYTES, escape, invalid, too_large
from maskwright.compiler.vocabulary.huggingface import read_tokenizer_json
from maskwright.compiler.vocabulary.table import TokenTable
from maskwright.compiler.vocabulary.tekken import read_tekken
from maskwright.compiler.vocabulary.tiktoken import read_ranks

GZIP_MAGIC = b"\x1f\x8b"
RANK_LINE = re.compile(rb"[A-Za-z0-9+/]*={0,2}[ \t]+[0-9]+[ \t]*\r?(\n|$)")
SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
CHUNK = 1 << 20


def load(path: Path) -> bytes:
    """The file's bytes, at most `MAX_FILE_BYTES`. Raises CompileError for what can't be read."""
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise too_large("vocabulary_bytes", MAX_FILE_BYTES, size)
        return path.read_bytes()
    except IsADirectoryError:
        raise invalid("a folder, not a file", hint="name the tokenizer.json in it") from None
    except (OSError, ValueError) as e:
        raise invalid(f"can't be read: {getattr(e, 'strerror', None) or e}") from None


def read_table(data: bytes) -> TokenTable:
    """The token table of a file's content. Raises CompileError; time is linear in the decompressed size."""
    if data[:2] == GZIP_MAGIC:
        data = gunzip(data)
    if len(data) > MAX_FILE_BYTES:
        raise too_large("vocabulary_bytes", MAX_FILE_BYTES, len(data))
    start = data[:64].lstrip()
    if start[:1] == b"{":
        return _read_json(data)
    if RANK_LINE.match(data):
        return read_ranks(data)
    raise invalid(
        _not_recognised(data, start), hint="give a tokenizer.json, a tekken.json or a tiktoken rank file"
    )


def parse_json(data: bytes) -> Any:
    """JSON with every way of failing as one error that names the place."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise invalid(f"not UTF-8 at byte {e.start}", offset=e.start) from None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as e:
        raise invalid(
            f"not JSON: {e.msg} at line {e.lineno} column {e.colno}", line=e.lineno, column=e.colno
        ) from None
    except RecursionError:
        raise invalid("not read: JSON nested too deeply") from None
    except ValueError as e:
        raise invalid(f"not JSON: {e}") from None
    if SURROGATE_ESCAPE.search(text):
        _check_unicode(value)
    return value


def _check_unicode(value: Any) -> None:
    """Refuse lone surrogates, which JSON can write but which are no Unicode text."""
    todo = [(value, "")]
    while todo:
        part, pointer = todo.pop()
        if isinstance(part, str):
            if LONE_SURROGATE.search(part):
                raise invalid("a string holds a lone surrogate", pointer=pointer)
        elif isinstance(part, list):
            todo.extend((v, f"{pointer}/{i}") for i, v in enumerate(part))
        elif isinstance(part, dict):
            for key, v in part.items():
                if LONE_SURROGATE.search(key):
                    raise invalid("a key holds a lone surrogate", pointer=pointer)
                todo.append((v, f"{pointer}/{escape(key)}"))


def gunzip(data: bytes) -> bytes:
    """The decompressed members, bounded by `MAX_FILE_BYTES`."""
    out: list[bytes] = []
    total = 0
    while data:
        if data[:2] != GZIP_MAGIC:
            raise invalid("damaged gzip data: a member doesn't begin like one")
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            try:
                chunk = member.decompress(data, CHUNK)
            except zlib.error as e:
                raise invalid(f"damaged gzip data: {e}") from None
            data = member.unconsumed_tail
            total += len(chunk)
            if total > MAX_FILE_BYTES:
                raise too_large("vocabulary_bytes", MAX_FILE_BYTES, total)
            if not chunk and not data and not member.eof:
                raise invalid("gzip data ends early")
            out.append(chunk)
        # zero padding may follow a member
        data = member.unused_data.lstrip(b"\0")
    return b"".join(out)


@contextmanager
def naming(source: str | None) -> Iterator[None]:
    """Diagnostics raised inside name `source` as the file they speak of."""
    try:
        yield
    except CompileError as e:
        e.diagnostics[:] = [replace(d, source=d.source or source) for d in e.diagnostics]
        raise


def _read_json(data: bytes) -> TokenTable:
    value = parse_json(data)
    if not isinstance(value, dict):
        raise invalid("not a JSON object")
    if "model" in value:
        return read_tokenizer_json(value)
    if isinstance(value.get("vocab"), list) and "config" in value:
        return read_tekken(value)
    if value and all(type(i) is int for i in value.values()):
        raise invalid(
            "a bare vocabulary (vocab.json) doesn't tell how its tokens are decoded",
            hint="give the tokenizer.json",
        )
    raise invalid(
        "JSON, but neither a tokenizer.json (no 'model') nor a tekken.json (no 'config' with 'vocab')"
    )


def _not_recognised(data: bytes, start: bytes) -> str:
    if not data:
        return "the file is empty"
    if data[:1] == b"\n" and b"<unk>" in data[:64]:
        return "a SentencePiece model, which isn't read"
    if start[:1] == b"[":
        return "not a JSON object"
    if data[:4] == b"PK\x03\x04":
        return "a zip archive"
    return "the file's format isn't known"
