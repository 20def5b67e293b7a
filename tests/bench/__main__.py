"""`make bench`: runs every `bench_*.py` beside this file, or those named.

Each has a `main()` that prints lines of figures. Figures are of this machine at this moment: compare ratios.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main(names: list[str]) -> None:
    found = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    for name in names or found:
        importlib.import_module(f"{__package__}.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
