"""The client's disk cache."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import grpc
import pytest

from maskwright.compiler.options import CompileOptions
from maskwright.registry.service.messages import options_of
from maskwright.v1 import registry_pb2, status_pb2
from maskwright.workers.client import ArtifactRevoked, BlobDigest, CorruptDownload, DiskCache, RegistryClient
from maskwright.workers.client.calls import LONGEST_PAUSE, pause_before, remember_revoked
from maskwright.workers.client.download import Download
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


# -- servers that lie -----------------------------------------------------------------------------


def _pieces(*pieces: tuple[int, bytes]) -> list[registry_pb2.FetchResponse]:
    return [registry_pb2.FetchResponse(offset=offset, data=data) for offset, data in pieces]


def test_a_download_goes_on_and_is_checked() -> None:
    data = b"0123456789"
    wanted = BlobDigest(hashlib.sha256(data).hexdigest(), len(data))
    download = Download(wanted)
    for piece in _pieces((0, data[:4]), (4, data[4:7])):
        download.take(piece)
    assert download.request().offset == 7
    download.take(*_pieces((7, data[7:])))
    assert download.finish() == data


@pytest.mark.parametrize("pieces", [[(1, b"x")], [(0, b"01"), (0, b"01")], [(0, b"0123456789ab")], [(0, b"01234")], []])
def test_a_download_that_isnt_what_was_asked_for(pieces: list[tuple[int, bytes]]) -> None:
    download = Download(BlobDigest(hashlib.sha256(b"0123456789").hexdigest(), 10))
    with pytest.raises(CorruptDownload):
        for piece in _pieces(*pieces):
            download.take(piece)
        download.finish()


def test_a_download_of_unknown_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwright.workers.client.download.MAX_BLOB", 100)
    download = Download(BlobDigest("0" * 64, 0))
    download.take(*_pieces((0, b"x" * 100)))
    with pytest.raises(CorruptDownload):
        download.take(*_pieces((100, b"x")))


class _Lies(grpc.RpcError):
    """A failure whose status says what it likes."""

    def __init__(self, code: grpc.StatusCode, reason: str, retry: float | None, **metadata: str) -> None:
        status = status_pb2.RpcStatus()
        info = status_pb2.RpcErrorInfo(reason=reason, metadata=metadata)
        status.details.add(type_url="x/google.rpc.ErrorInfo", value=info.SerializeToString())
        if retry is not None:
            delay = status_pb2.RpcRetryInfo()
            delay.retry_delay.FromMilliseconds(int(retry * 1000))
            status.details.add(type_url="x/google.rpc.RetryInfo", value=delay.SerializeToString())
        self._code, self._status = code, status

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return ""

    def trailing_metadata(self) -> tuple[tuple[str, bytes], ...]:
        return (("grpc-status-details-bin", self._status.SerializeToString()),)


def test_pauses_are_bounded(tmp_path: Path) -> None:
    cache, unavailable = DiskCache(tmp_path), grpc.StatusCode.UNAVAILABLE
    assert pause_before(_Lies(unavailable, "", 86400.0), 1, 4, cache) <= 1.3 * LONGEST_PAUSE
    assert pause_before(_Lies(unavailable, "", None), 30, 40, cache) <= 1.3 * LONGEST_PAUSE
    assert 0.2 <= pause_before(_Lies(unavailable, "", None), 1, 4, cache) <= 0.3


@pytest.mark.parametrize("hash_", ["", "../../x", "a" * 64])
def test_revoked_whatever_it_names(tmp_path: Path, hash_: str) -> None:
    error = _Lies(grpc.StatusCode.FAILED_PRECONDITION, "REVOKED", None, artifact_hash=hash_, why="why")
    with pytest.raises(ArtifactRevoked, match="why"):
        pause_before(error, 1, 4, DiskCache(tmp_path))
    assert {p.name for p in tmp_path.rglob("*") if p.is_file()} == ({hash_} if len(hash_) == 64 else set())


def test_a_cache_that_cant_be_written_still_forbids(tmp_path: Path) -> None:
    hash_ = _put(DiskCache(tmp_path), b"bad")
    (tmp_path / "revoked").write_text("a file where the folder should be")
    cache = DiskCache(tmp_path)
    remember_revoked(cache, hash_)
    assert cache.is_revoked(hash_)
    assert cache.find("blob", hash_) is None


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"name": "tool@x"}, "tool@x: the version isn't a number"),
        ({"name": "tool@"}, "tool@: the version isn't a number"),
        ({"name": "tool@٣"}, "isn't a number"),
        ({"name": "tool@99999999999"}, "version can't be 99999999999"),
        ({"name": "tool", "version": 1 << 40}, "version can't be 1099511627776"),
        ({"name": "tool@1", "channel": "prod"}, "not both"),
        ({"name": "tool\ud800"}, "name can't be"),
    ],
)
def test_what_names_nothing_is_told_before_the_call(tmp_path: Path, asked: dict[str, Any], told: str) -> None:
    with (
        RegistryClient("127.0.0.1:9", cache=DiskCache(tmp_path), attempts=1, timeout=0.1) as client,
        pytest.raises(ValueError, match=told),
    ):
        client.resolve(**asked)


def test_numbers_out_of_range_are_told_by_name(tmp_path: Path) -> None:
    with RegistryClient("127.0.0.1:9", cache=DiskCache(tmp_path), attempts=1, timeout=0.1) as client:
        for name, call in (
            ("version", lambda: client.promote("n", "c", 1 << 40)),
            ("expected_version", lambda: client.promote("n", "c", 1, expected=1 << 40)),
            ("to_version", lambda: client.rollback("n", "c", to=1 << 40)),
            ("versions", lambda: client.retire("n", [1, 1 << 40])),
            ("seconds", lambda: client.lease([], 1 << 70)),
            ("after_revision", lambda: list(client.watch(1 << 70))),
        ):
            with pytest.raises(ValueError, match=f"{name} can't be"):
                call()
