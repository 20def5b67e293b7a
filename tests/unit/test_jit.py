"""Kernels work where nothing can be kept on disk, and are seen to be kept where it can."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.errors import NumbaError

RUN = """
import sys
sys.path.insert(0, sys.argv[1])
import shop
from maskwright.compiler import jit
print(jit.kept_kernels(), shop.double(21), jit.kernels_are_kept(), jit.compiling_seconds() > 0)
"""
SHOP = "from maskwright.compiler.jit import kernel\n\n\n@kernel\ndef double(x):\n    return 2 * x\n"


def run(folder: Path, cache: Path) -> str:
    (folder / "shop.py").write_text(SHOP)
    env = os.environ | {"NUMBA_CACHE_DIR": str(cache), "HOME": str(cache), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run([sys.executable, "-c", RUN, str(folder)], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_compiled_code_is_kept(tmp_path: Path) -> None:
    assert run(tmp_path, tmp_path / "cache") == "0 42 True True"
    assert run(tmp_path, tmp_path / "cache") == "1 42 True False"
    assert list((tmp_path / "cache").rglob("shop.double-*.nbi"))


def test_without_any_folder_kernels_are_compiled_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.compiler import jit

    def refuse(*_: object, **options: object) -> object:
        if options.pop("cache", False):
            raise RuntimeError("no locator available")
        return real(**options)

    real = jit.njit
    monkeypatch.setattr(jit, "njit", refuse)
    monkeypatch.setattr(jit, "_kernels", [])

    @jit.kernel
    def triple(x: int) -> int:
        return 3 * x

    assert triple(14) == 42
    assert not jit.kernels_are_kept()


def test_a_borrowing_kernel_fills_what_it_is_given_and_makes_no_array(monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.compiler import jit

    monkeypatch.setattr(jit, "_kernels", [])

    def fill(out: np.ndarray[Any, Any], value: int) -> int:
        for i in range(len(out)):
            out[i] = value
        return len(out)

    def make(n: int) -> np.ndarray[Any, Any]:
        return np.zeros(n)

    out = np.zeros(5, dtype=np.int64)
    assert jit.borrowing(fill)(out, 7) == 5
    assert out.tolist() == [7] * 5
    with pytest.raises(NumbaError):
        jit.borrowing(make)(3)
