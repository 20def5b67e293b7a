"""What is particular to S3: conditions that aren't honoured, answers that get lost, large blobs, faults."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest
from s3_faults import FaultyProxy, faulty_proxy
from s3_stores import BOTH, BUCKET, s3_store

from maskwright.registry.content import ContentStore, blob_key
from maskwright.registry.store import (
    BlobNotFound,
    CorruptBlob,
    PreconditionFailed,
    StoreCapabilities,
    StoreUnavailable,
    SwapUnsupported,
)
from maskwright.registry.store.s3 import MIN_PART, S3Settings, S3Store

Make = Callable[..., S3Store]
LARGE = bytes(range(256)) * (MIN_PART // 128)


@pytest.fixture
def proxy(endpoint: str) -> Iterator[FaultyProxy]:
    with faulty_proxy(endpoint) as made:
        yield made


@pytest.fixture
def make(proxy: FaultyProxy) -> Make:
    """Stores behind the proxy, all over one prefix."""
    prefix = f"{secrets.token_hex(6)}/"

    def open_(**changes: Any) -> S3Store:
        return s3_store(proxy.endpoint, **{"prefix": prefix, "read_seconds": 20.0, "attempts": 3, **changes})

    return open_


# -- capabilities -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "absent", "swap"),
    [
        ("", True, True),
        ("ignore", False, False),
        ("unknown", False, False),
        ("no_swap", True, False),
        ("late", False, False),
    ],
)
def test_what_is_honoured_is_found_out(
    proxy: FaultyProxy, make: Make, mode: str, absent: bool, swap: bool
) -> None:
    proxy.mode = mode
    store = make(capabilities=None)
    assert store.capabilities() == StoreCapabilities(put_if_absent=absent, compare_and_swap=swap)
    assert list(store.list("")) == []


def test_names_are_refused_without_swap(proxy: FaultyProxy, make: Make) -> None:
    store = make(capabilities=StoreCapabilities(put_if_absent=True, compare_and_swap=False))
    with pytest.raises(SwapUnsupported, match="doesn't compare and swap"):
        store.compare_and_swap("names/a", None, b"1")
    assert not proxy.requests


def test_blobs_are_safe_under_lost_races(proxy: FaultyProxy, make: Make) -> None:
    proxy.mode = "late"
    content = ContentStore(make(capabilities=None))
    data = [b"%d" % (n % 4) * 5000 for n in range(16)]
    with ThreadPoolExecutor(16) as pool:
        digests = list(pool.map(content.put, data))
    assert [content.get(d) for d in digests] == data
    assert content.put_record("requests", "r", {"a": 1}) == {"a": 1}
    assert content.put_record("requests", "r", {"a": 2}) == {"a": 1}


def test_a_store_that_cant_be_used_says_so(endpoint: str, proxy: FaultyProxy, make: Make) -> None:
    with pytest.raises(StoreUnavailable, match="NoSuchBucket"):
        S3Store(S3Settings("missing-bucket", endpoint=endpoint, addressing="path"))
    with pytest.raises(StoreUnavailable, match="EndpointConnectionError"):
        S3Store(S3Settings(BUCKET, endpoint="http://127.0.0.1:9", addressing="path", attempts=1))
    # An error in passing isn't a missing capability.
    proxy.faults = ["pass"] * 3 + ["503"] * 400
    with pytest.raises(StoreUnavailable):
        make(capabilities=None)


def test_credentials_come_by_the_usual_chain(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    with pytest.raises(StoreUnavailable, match="NoCredentialsError"):
        s3_store(endpoint).size("k")
    (tmp_path / "credentials").write_text("[blue]\naws_access_key_id=k\naws_secret_access_key=s\n")
    monkeypatch.setenv("AWS_PROFILE", "blue")
    with pytest.raises(BlobNotFound):
        s3_store(endpoint).size("no")


@pytest.mark.parametrize(
    "wrong",
    [
        {"bucket": ""},
        {"prefix": "a"},
        {"multipart_bytes": 1},
        {"kms_key": "k"},
        {"attempts": 0},
        {"read_seconds": 0},
    ],
)
def test_settings_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|missing|needs"):
        S3Settings(**{"bucket": "b", **wrong})


# -- faults -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["500", "503", "refuse", "hang", "truncate", "corrupt"])
def test_reads_survive_a_fault(proxy: FaultyProxy, make: Make, fault: str) -> None:
    store = make(**({"read_seconds": 2.0, "attempts": 6} if fault == "hang" else {}))
    store.put_if_absent("k", b"0123456789" * 50)
    proxy.faults = [fault]
    assert store.get("k") == b"0123456789" * 50
    assert not proxy.faults


@pytest.mark.parametrize("fault", ["500", "503", "refuse", "hang"])
def test_lasting_faults_are_told_as_unavailable(proxy: FaultyProxy, make: Make, fault: str) -> None:
    store = make(attempts=2, read_seconds=0.3)
    proxy.faults = [fault] * 50
    for call in (
        lambda: store.get("k"),
        lambda: store.put_if_absent("k", b"1"),
        lambda: store.compare_and_swap("n", None, b"1"),
        lambda: list(store.list("")),
        lambda: store.delete("k"),
    ):
        with pytest.raises(StoreUnavailable) as caught:
            call()
        assert "test-secret" not in str(caught.value)


def test_lasting_damage_is_told(proxy: FaultyProxy, make: Make) -> None:
    store = make(attempts=2)
    store.put_if_absent("k", b"0123456789")
    proxy.faults = ["truncate"] * 2
    with pytest.raises(StoreUnavailable):
        store.get("k")
    proxy.faults = ["corrupt"] * 2
    with pytest.raises(CorruptBlob):
        store.get("k")
    assert store.get("k") == b"0123456789"


def test_digests_find_damage_where_the_service_checks_nothing(proxy: FaultyProxy, make: Make) -> None:
    content = ContentStore(make(checksums="md5"))
    digest = content.put(b"0123456789")
    proxy.faults = ["corrupt"]
    with pytest.raises(CorruptBlob):
        content.get(digest)
    assert content.get(digest) == b"0123456789"


@pytest.mark.parametrize("checksums", ["sha256", "md5"])
@pytest.mark.parametrize("data", [b"0123456789", LARGE], ids=["small", "large"])
def test_damaged_uploads_dont_land(proxy: FaultyProxy, make: Make, checksums: str, data: bytes) -> None:
    store = make(checksums=checksums, multipart_bytes=MIN_PART)
    proxy.faults = ["pass" if data is LARGE else "corrupt_upload", "corrupt_upload"]
    assert store.put_if_absent("k", data)
    assert store.get("k") == data


@pytest.mark.parametrize("swap", [True, False])
def test_uploads_that_land_damaged_are_written_over(proxy: FaultyProxy, make: Make, swap: bool) -> None:
    proxy.mode = "careless"
    store = make(capabilities=StoreCapabilities(put_if_absent=True, compare_and_swap=swap))
    proxy.faults = ["corrupt_upload"]
    assert store.put_if_absent("k", b"0123456789")
    assert store.get("k") == b"0123456789"
    proxy.faults = ["corrupt_upload", "pass"] * 10
    with pytest.raises(CorruptBlob):
        store.put_if_absent("other", b"0123456789")


@pytest.mark.parametrize("data", [b"1", LARGE], ids=["small", "large"])
def test_a_put_whose_answer_was_lost_still_counts(proxy: FaultyProxy, make: Make, data: bytes) -> None:
    store = make(multipart_bytes=MIN_PART)
    proxy.faults = ["pass"] * (3 if data is LARGE else 0) + ["lost"]
    assert store.put_if_absent("k", data)
    assert store.get("k") == data
    assert not store.put_if_absent("k", data)


def test_a_swap_whose_answer_was_lost_still_counts(proxy: FaultyProxy, make: Make) -> None:
    store = make()
    first = store.compare_and_swap("n", None, b"1")
    proxy.faults = ["lost"]
    second = store.compare_and_swap("n", first, b"2")
    assert store.get_tagged("n") == (b"2", second)
    with pytest.raises(PreconditionFailed):
        store.compare_and_swap("n", first, b"3")


def test_a_swap_that_another_overtook_is_refused(proxy: FaultyProxy, make: Make) -> None:
    """The first try is lost on the way there; another swaps; the second try must not undo that."""
    store, other = make(), make()
    first = store.compare_and_swap("n", None, b"1")
    proxy.faults = ["503"]
    swapped = threading.Thread(target=lambda: (_until(proxy, "PUT 503"), other.compare_and_swap("n", first, b"2")))
    swapped.start()
    try:
        store.compare_and_swap("n", first, b"3")
    except PreconditionFailed:
        swapped.join()
        assert store.get("n") == b"2"
    else:
        swapped.join()
        assert store.get("n") == b"3"


def _until(proxy: FaultyProxy, request: str) -> None:
    while request not in proxy.requests:
        time.sleep(0.001)


# -- large blobs --------------------------------------------------------------------------------


def test_large_blobs_go_up_in_parts(endpoint: str, proxy: FaultyProxy, make: Make) -> None:
    store = make(multipart_bytes=MIN_PART)
    assert store.put_if_absent("k", LARGE)
    assert not store.put_if_absent("k", LARGE[1:])
    assert store.get("k") == LARGE
    assert store.head("k").etag.strip('"').endswith("-2")
    assert [r for r in proxy.requests if r.startswith("POST")]


def test_a_failed_upload_leaves_nothing(endpoint: str, proxy: FaultyProxy, make: Make) -> None:
    store = make(multipart_bytes=MIN_PART, attempts=2)
    proxy.faults = ["pass", "pass", "503", "503"]
    with pytest.raises(StoreUnavailable):
        store.put_if_absent("k", LARGE)
    with pytest.raises(BlobNotFound):
        store.size("k")
    client = boto3.client("s3", endpoint_url=endpoint)
    left = client.list_multipart_uploads(Bucket=BUCKET, Prefix=store.settings.prefix)
    assert "Uploads" not in left


def test_racing_large_puts_have_one_winner(proxy: FaultyProxy, make: Make) -> None:
    store = make(multipart_bytes=MIN_PART)
    data = [bytes([n]) * (MIN_PART + 1) for n in range(3)]
    with ThreadPoolExecutor(3) as pool:
        won = list(pool.map(lambda d: store.put_if_absent("k", d), data))
    assert won.count(True) == 1
    assert store.get("k") == data[won.index(True)]


# -- encryption ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("encryption", "key"), [("AES256", ""), ("aws:kms", "alias/blobs")])
def test_server_side_encryption_is_asked_for(endpoint: str, make: Make, encryption: str, key: str) -> None:
    store = make(encryption=encryption, kms_key=key, multipart_bytes=MIN_PART, capabilities=BOTH)
    client = boto3.client("s3", endpoint_url=endpoint)
    for name, data in (("small", b"1"), ("large", LARGE)):
        store.put_if_absent(name, data)
        found = client.head_object(Bucket=BUCKET, Key=store.settings.prefix + name)
        assert found["ServerSideEncryption"] == encryption
        assert key in found.get("SSEKMSKeyId", "")
    assert store.compare_and_swap("n", store.compare_and_swap("n", None, b"1"), b"2")


def test_probe_is_among_the_hidden_places(make: Make) -> None:
    assert not any(k.startswith("probe/") for k in make(capabilities=None).list(""))
    assert blob_key("0" * 64).startswith("blobs/")
