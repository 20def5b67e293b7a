"""What was loaded from files, and loads again when they change: certificates, keys, tokens that are rotated.

Nothing runs in the background: whoever needs it asks, and the files' times are looked at (some microseconds each). New
content counts only when it loads and the files didn't change meanwhile, so that a rotation caught halfway keeps the old
content; a fault is logged once for each change.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

_Loaded = TypeVar("_Loaded")
_Version = tuple[int, int, int] | None
_log = logging.getLogger(__name__)


class RotatedFiles(Generic[_Loaded]):
    """What `load` made of the files `paths` last. May be shared between threads.

    What `load` raises is that the files can't be used; making this raises it, too.
    """

    def __init__(self, what: str, paths: Iterable[str | Path], load: Callable[[], _Loaded]) -> None:
        self._what, self._paths, self._load = what, tuple(map(Path, paths)), load
        self._lock = threading.Lock()
        self._seen = self._versions()
        self._loaded = load()

    def newest(self) -> _Loaded:
        """What the files are now or, where that can't be used, were before."""
        self.renewed()
        return self._loaded

    def renewed(self) -> _Loaded | None:
        """What the files are now, where that's new and can be used."""
        with self._lock:
            versions = self._versions()
            if versions == self._seen:
                return None
            try:
                loaded = self._load()
            except Exception as error:  # whatever it is, what was loaded is still good
                self._seen = versions
                _log.warning("new %s can't be used, the old stay: %s", self._what, error)
                return None
            if self._versions() != versions:
                return None  # the next to ask looks again
            self._seen, self._loaded = versions, loaded
            _log.info("%s were read again", self._what)
            return loaded

    def _versions(self) -> tuple[_Version, ...]:
        return tuple(map(_version, self._paths))


def _version(path: Path) -> _Version:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
