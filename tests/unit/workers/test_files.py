"""Files that appear whole, and names that are digests."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from maskwright.workers.digests import is_digest
from maskwright.workers.whole_files import write_whole


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    for data in (b"first", b"", b"second" * 1000):
        write_whole(tmp_path / "a", data)
        assert (tmp_path / "a").read_bytes() == data
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    write_whole(tmp_path / ("x" * 255), b"a long name")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"a long name"


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_whole(tmp_path / "a", b"before")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("maskwright.workers.whole_files.os.fsync", full)
    with pytest.raises(OSError) as caught:
        write_whole(tmp_path / "a", b"after")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "a"))
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a", b"before")]
    with pytest.raises(FileNotFoundError) as missing:
        write_whole(tmp_path / "none" / "a", b"")
    assert missing.value.filename == str(tmp_path / "none" / "a")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0123456789abcdef" * 4, True),
        ("0123456789abcdef" * 4 + "\n", False),
        ("0123456789ABCDEF" * 4, False),
        ("0" * 63, False),
        ("0" * 65, False),
        ("٠" * 64, False),
        ("../" + "0" * 61, False),
        ("", False),
        (b"0" * 64, False),
        (None, False),
    ],
)
def test_digests(text: Any, expected: bool) -> None:
    assert is_digest(text) is expected
