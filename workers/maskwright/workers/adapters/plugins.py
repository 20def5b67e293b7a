"""What engines call when they start, as entry points of this distribution.

Both engines run in several processes and load their plugins in each. An adapter is installed where the environment
names a source of artifacts (`sources.environment_source`); elsewhere nothing is imported, and the engine is as it was.
"""

from __future__ import annotations

from maskwright.workers.adapters.sources import environment_source


def vllm() -> None:
    """`vllm.general_plugins`: `vllm.install`."""
    source = environment_source()
    if source is not None:
        from maskwright.workers.adapters.vllm import install

        install(source)


def sglang() -> None:
    """`sglang.srt.plugins`: `sglang.install`."""
    source = environment_source()
    if source is not None:
        from maskwright.workers.adapters.sglang import install

        install(source)
