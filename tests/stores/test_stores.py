"""What every blob store must do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from maskwright.registry.store import (
    BlobNotFound,
    BlobStore,
    BlobTooLarge,
    PreconditionFailed,
    check_key,
)

WRITERS = 16


def test_put_then_get(store: BlobStore) -> None:
    assert store.put_if_absent("a/b", b"bytes\x00\xff")
    assert store.get("a/b") == b"bytes\x00\xff"
    assert store.size("a/b") == 7
    assert store.head("a/b").size == 7


def test_first_writer_wins(store: BlobStore) -> None:
    assert store.put_if_absent("k", b"first")
    assert not store.put_if_absent("k", b"second")
    assert store.get("k") == b"first"


def test_empty_blob(store: BlobStore) -> None:
    assert store.put_if_absent("empty", b"")
    assert store.get("empty") == b""
    assert store.get_range("empty", 0, 10) == b""


def test_large_blob_and_ranges(store: BlobStore) -> None:
    data = bytes(range(256)) * 40_000
    store.put_if_absent("large", data)
    assert store.get("large") == data
    assert store.get_range("large", 1_000_003, 77) == data[1_000_003 : 1_000_003 + 77]
    assert store.get_range("large", len(data) - 3, 100) == data[-3:]


@pytest.mark.parametrize("call", ["get", "head", "size"])
def test_missing(store: BlobStore, call: str) -> None:
    with pytest.raises(BlobNotFound) as caught:
        getattr(store, call)("no/such")
    assert caught.value.key == "no/such"


def test_missing_range(store: BlobStore) -> None:
    with pytest.raises(BlobNotFound):
        store.get_range("no", 0, 1)


def test_get_refuses_more_than_asked(store: BlobStore) -> None:
    store.put_if_absent("k", b"12345")
    assert store.get("k", 5) == b"12345"
    with pytest.raises(BlobTooLarge) as caught:
        store.get("k", 4)
    assert (caught.value.size, caught.value.limit) == (5, 4)


def test_list_is_ordered_and_by_prefix(store: BlobStore) -> None:
    for key in ("n/b", "n/a", "n/a@2", "n/sub/x", "m/a", "na"):
        store.put_if_absent(key, b"")
    assert list(store.list("n/")) == sorted(["n/a", "n/a@2", "n/b", "n/sub/x"])
    assert list(store.list("n/a")) == ["n/a", "n/a@2"]
    assert list(store.list("zz/")) == []
    assert "na" in list(store.list(""))


def test_swap_creates_and_replaces(store: BlobStore) -> None:
    first = store.compare_and_swap("name", None, b"1")
    assert store.head("name").etag == first
    second = store.compare_and_swap("name", first, b"2")
    assert store.get("name") == b"2"
    with pytest.raises(PreconditionFailed) as caught:
        store.compare_and_swap("name", first, b"3")
    assert caught.value.found == second
    assert store.get("name") == b"2"


def test_swap_from_nothing_needs_nothing(store: BlobStore) -> None:
    store.put_if_absent("name", b"there")
    with pytest.raises(PreconditionFailed):
        store.compare_and_swap("name", None, b"new")
    with pytest.raises(PreconditionFailed):
        store.compare_and_swap("other", "etag", b"new")


def test_delete(store: BlobStore) -> None:
    store.put_if_absent("k", b"1")
    assert store.delete("k")
    assert not store.delete("k")
    assert store.put_if_absent("k", b"2")
    assert store.get("k") == b"2"


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "../a", "a/../b", ".hidden", "a b", "a\x00", "ä", "x" * 600]
)
def test_malformed_keys(store: BlobStore, key: str) -> None:
    with pytest.raises(ValueError, match="malformed key"):
        store.put_if_absent(key, b"")
    with pytest.raises(ValueError, match="malformed key"):
        store.get(key)


def test_key_that_is_a_folder(store: BlobStore) -> None:
    store.put_if_absent("a/b", b"1")
    with pytest.raises(BlobNotFound):
        store.get("a")
    assert check_key("a/b") == "a/b"


def test_blobs_outlive_the_store_object(store: BlobStore, reopen: Callable[[], BlobStore]) -> None:
    store.put_if_absent("k", b"kept")
    etag = store.compare_and_swap("n", None, b"v")
    again = reopen()
    assert again.get("k") == b"kept"
    assert again.compare_and_swap("n", etag, b"w")


def test_racing_puts_have_one_winner(store: BlobStore) -> None:
    for round_ in range(10):
        barrier = threading.Barrier(WRITERS)

        def put(number: int, key: str = f"race/{round_}", barrier: threading.Barrier = barrier) -> bool:
            barrier.wait()
            return store.put_if_absent(key, b"%d" % number * 1000)

        with ThreadPoolExecutor(WRITERS) as pool:
            won = list(pool.map(put, range(WRITERS)))
        assert won.count(True) == 1
        assert store.get(f"race/{round_}") == b"%d" % won.index(True) * 1000


def test_racing_swaps_lose_no_update(store: BlobStore) -> None:
    store.put_if_absent("counter", b"0")

    def add_one(_: int) -> None:
        while True:
            etag = store.head("counter").etag
            value = int(store.get("counter"))
            try:
                store.compare_and_swap("counter", etag, b"%d" % (value + 1))
            except PreconditionFailed:
                continue
            return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add_one, range(40)))
    assert store.get("counter") == b"40"


def test_a_reader_never_sees_half_a_blob(store: BlobStore) -> None:
    contents = {b"a" * 300_000, b"b" * 300_000}
    store.compare_and_swap("k", None, b"a" * 300_000)
    done = threading.Event()

    def swap() -> None:
        for number in range(30):
            store.compare_and_swap("k", store.head("k").etag, (b"b", b"a")[number % 2] * 300_000)
        done.set()

    writer = threading.Thread(target=swap)
    writer.start()
    seen = set()
    while not done.is_set():
        seen.add(store.get("k"))
    writer.join()
    assert seen <= contents


def test_capabilities_are_those_tested(store: BlobStore) -> None:
    assert store.capabilities().put_if_absent
    assert store.capabilities().compare_and_swap
