"""The client's disk cache."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import fields
from pathlib import Path

import pytest

from maskwright.compiler.options import CompileOptions
from maskwright.registry.service.messages import options_of
from maskwright.workers.client import DiskCache
from maskwright.workers.client.messages import options_message


def _put(cache: DiskCache, data: bytes, kind: str = "blob") -> str:
    hash_ = hashlib.sha256(data).hexdigest()
    cache.put(kind, hash_, data)
    return hash_


def test_put_then_find(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "new" / "folder")
    for kind in ("pack", "artifact", "blob"):
        hash_ = _put(cache, kind.encode(), kind)
        found = cache.find(kind, hash_)
        assert found is not None
        assert found.read_bytes() == kind.encode()
    assert cache.path("pack", "0" * 64) == tmp_path / "new/folder/packs" / f"{'0' * 64}.mwpack"


def test_damaged_file_counts_as_missing_and_goes(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    hash_ = _put(cache, b"data")
    cache.path("blob", hash_).write_bytes(b"dat")
    assert cache.find("blob", hash_) is None
    assert not cache.path("blob", hash_).exists()


def test_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, max_bytes=350)
    hashes = [_put(cache, bytes([n]) * 100) for n in range(3)]
    for age, hash_ in zip((30, 20, 10), hashes, strict=True):
        past = time.time() - age
        os.utime(cache.path("blob", hash_), (past, past))
    assert cache.find("blob", hashes[0]) is not None
    newest = _put(cache, b"x" * 100)
    assert cache.find("blob", hashes[1]) is None
    assert all(cache.find("blob", h) for h in (hashes[0], hashes[2], newest))


def test_file_larger_than_the_cache_is_kept_alone(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, max_bytes=10)
    small = _put(cache, b"small")
    large = _put(cache, b"l" * 100)
    assert cache.find("blob", small) is None
    assert cache.find("blob", large) is not None


@pytest.mark.parametrize("hash_", ["", "../../etc", "Z" * 64])
def test_names_cant_leave_the_folder(tmp_path: Path, hash_: str) -> None:
    with pytest.raises(ValueError, match="not a SHA-256"):
        DiskCache(tmp_path).path("blob", hash_)


def test_every_option_reaches_the_compiler() -> None:
    chosen: dict[str, list[object]] = {
        "whitespace": ["flexible", "compact", 3],
        "property_order": ["declared", "any"],
        "residual": ["refuse", "allow"],
        "regex_dialect": ["ecma262", "python"],
        "formats": ["enforce", "annotate"],
        "draft": ["2020-12", "2019-09", "7", "6", "4"],
        "grammar_fallback": ["refuse", "commit"],
        "grammar_start": ["rule"],
        "grammar_strict": [True, False],
        **{f.name: [1, 5] for f in fields(CompileOptions) if f.name.startswith(("max_", "default_max_"))},
    }
    assert chosen.keys() == {f.name for f in fields(CompileOptions)}
    for name, values in chosen.items():
        for value in values:
            assert options_of(options_message({name: value})) == CompileOptions(**{name: value})  # type: ignore[arg-type]
    assert options_of(options_message({})) == CompileOptions()


def test_options_by_name() -> None:
    message = options_message({"whitespace": "compact", "property_order": "any", "max_nesting": 3})
    assert (message.whitespace, message.property_order, message.max_nesting) == (2, 2, 3)
    assert options_message({"whitespace": 4}).indent == 4
    assert not options_message({"max_nesting": None}).HasField("max_nesting")
    for wrong in ({"nope": 1}, {"whitespace": "wide"}, {"residual": "maybe"}, {"indent": 2}, {"max_nesting": "x"}):
        with pytest.raises(ValueError, match=r"no such option|can't be"):
            options_message(wrong)
