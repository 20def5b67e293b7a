"""What is particular to the local folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from maskwright.registry.store import BlobNotFound, LocalStore, StoreUnavailable
from maskwright.registry.store.local import STALE_STAGING_SECONDS

WRITER = """
import sys
from pathlib import Path
from maskwright.registry.store import LocalStore
store = LocalStore(Path(sys.argv[1]))
print("ready", flush=True)
for number in range(100000):
    store.put_if_absent(f"k/{number}", bytes([number % 256]) * 50000)
"""


def test_old_staging_files_are_swept(tmp_path: Path) -> None:
    LocalStore(tmp_path)
    old, new = tmp_path / "staging" / "old", tmp_path / "staging" / "new"
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    past = time.time() - STALE_STAGING_SECONDS - 10
    os.utime(old, (past, past))
    LocalStore(tmp_path)
    assert not old.exists()
    assert new.exists()


def test_killed_writer_leaves_only_whole_blobs(tmp_path: Path) -> None:
    for delay in (0.01, 0.05, 0.1):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
    store = LocalStore(tmp_path)
    keys = list(store.list("k/"))
    assert keys
    for key in keys:
        assert store.get(key) == bytes([int(key[2:]) % 256]) * 50000


def test_no_space_is_unavailable_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreUnavailable):
        store.put_if_absent("k", b"1")
    monkeypatch.undo()
    with pytest.raises(BlobNotFound):
        store.get("k")
    assert list((tmp_path / "staging").iterdir()) == []
    assert store.put_if_absent("k", b"1")
