"""The memory that one compilation takes: the highest resident size of the process meanwhile, less what it had before.

Linux keeps a process's peak in /proc and lets it start anew (proc(5), clear_refs). Where that can't be done the
process's peak since it began is all there is, so the figure is a lower bound: 0 where an earlier peak was higher. Other
threads of the process count too; in a child process there are none that matter.
"""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

_STATUS, _STATM, _CLEAR = (Path("/proc/self") / name for name in ("status", "statm", "clear_refs"))


class MemoryUse:
    """Measures from its making on."""

    def __init__(self) -> None:
        self._cleared = _clear_peak()
        self._before = _resident() if self._cleared else _process_peak()

    def now(self) -> int:
        """Bytes held more than at the beginning; 0 where that isn't known."""
        return max(0, _resident() - self._before) if self._cleared else 0

    def peak(self) -> int:
        """The most bytes held more than at the beginning."""
        return max(0, (_status("VmHWM") if self._cleared else _process_peak()) - self._before)


def address_space() -> int:
    """Bytes of this process's address space; 0 where it isn't known."""
    return _status("VmSize")


def _clear_peak() -> bool:
    try:
        _CLEAR.write_text("5")
    except OSError:
        return False
    return True


def _resident() -> int:
    """VmRSS, from where it costs a tenth of what the whole status does."""
    try:
        with _STATM.open("rb", buffering=0) as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError):
        return 0


def _status(name: str) -> int:
    """A size from /proc/self/status in bytes, 0 where there's none."""
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError):
        pass
    return 0


def _process_peak() -> int:
    """macOS counts in bytes, others in KiB; Windows doesn't tell."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin" else 10)
