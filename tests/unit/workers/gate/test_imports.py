"""The gate and its metrics need numpy and the standard library, no more."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
absent = "jsonschema_rs prometheus_client grpc google.protobuf maskwright.compiler torch sqlite_utils"
for name in absent.split():
    sys.modules[name] = None
import maskwright.workers.gate, maskwright.workers.gate.__main__
import maskwright.workers.metrics, maskwright.workers.metrics.evaluate
from maskwright.workers.metrics.evaluate import evaluate
found = evaluate([b'{"log":"maskwright-generations","version":1}', b'{"text":"","ended":"stop"}'])
assert found.groups["all"].texts == 1
"""


def test_nothing_else_is_needed() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True)
