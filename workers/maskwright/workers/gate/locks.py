"""Who is still at work: a file for each running action, locked by the process that runs it.

`flock` locks belong to an open file, so the kernel drops them when the process ends, however it ends, and two
threads of one process exclude each other like two processes. That tells a running action from a crashed one
without clocks, process numbers or a heartbeat. It works where SQLite works: on one host, on a local file system.

A file's name is the claim's own random name, so nobody ever waits for one. A file that nobody holds is litter; a
maker therefore checks, once it has the lock, that its file is still the one in the folder. A child that an action
forks without exec shares the lock: as long as it lives the action counts as running.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from contextlib import suppress
from pathlib import Path


class ClaimLock:
    """A held lock. `name` identifies it."""

    def __init__(self, folder: Path) -> None:
        """Makes and takes a lock. Raises OSError."""
        self.name = uuid.uuid4().hex
        self._path = folder / f"{self.name}.lock"
        while True:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            if _is_in_place(self._file, self._path):
                return
            os.close(self._file)  # swept between making and locking

    def release(self) -> None:
        """Gives it up, once, whatever happens; the file goes first, so that none is left behind. One that can't be
        removed is litter.
        """
        if self._file >= 0:
            file, self._file = self._file, -1
            try:
                with suppress(OSError):
                    self._path.unlink(missing_ok=True)
            finally:
                os.close(file)


def is_held(folder: Path, name: str) -> bool:
    """Whether a process holds this lock now."""
    try:
        file = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def sweep(folder: Path) -> None:
    """Removes the files that nobody holds."""
    for path in folder.glob("*.lock"):
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
        except BlockingIOError:
            pass
        finally:
            os.close(file)


def _is_in_place(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
