"""Tasks for the compiling children that fail on demand, by the source's first word. No compiler is involved.

hang            never ends                       crash     the process ends
memory          asks for too much                refuse N  N diagnostics
overrun         ran out of time inside           slow S    S seconds, then an artifact
wait FILE       an artifact once there's such a file
newpack         an artifact for a pack that the registry doesn't have yet
anything else   an artifact at once
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from maskwright.registry.compiling import Compiled, CompileJob, Overrun, ReadTokenizer, Refused

PACK = b"\x89MWA\r\n\x1a\n" + b"pack" * 1000


def compile_source(job: CompileJob) -> Compiled | Refused | Overrun:
    command, _, argument = job.source.partition(" ")
    # The only trace that's left when a child is killed: what the tests count.
    with suppress(OSError), (Path(job.tokenizer_path).parent / "compiled.log").open("a") as log:
        log.write(f"{os.getpid()} {job.source[:40]}\n")
    if command == "hang":
        time.sleep(600)
    elif command == "crash":
        os._exit(9)
    elif command == "memory":
        bytearray(1 << 40)
    elif command == "overrun":
        return Overrun([_diagnostic(0)])
    elif command == "refuse":
        return Refused([_diagnostic(n) for n in range(int(argument or 1))])
    elif command == "newpack":
        pack = PACK + b"of a later compiler"
        return Compiled(artifact_of(job), {}, hashlib.sha256(pack).hexdigest(), pack)
    elif command == "wait":
        while not Path(argument).exists():
            time.sleep(0.02)
    elif command == "slow":
        time.sleep(float(argument))
    return Compiled(artifact_of(job), {"states": len(job.source)}, job.known_pack, None)


def artifact_of(job: CompileJob) -> bytes:
    """Ten bytes of preamble, then something that depends on source and options."""
    body = hashlib.sha256((job.source + job.options.canonical()).encode()).digest()
    return b"\x89MWA\r\n\x1a\n\x01\x00" + body * 100


def read_tokenizer(path: str) -> ReadTokenizer | Refused:
    data = Path(path).read_bytes()
    if data.startswith(b"bad"):
        return Refused([_diagnostic(0)])
    beside = sorted(p.name for p in Path(path).parent.glob("*.json") if p.name != Path(path).name)
    stops = (1, 2) if beside else (1,)
    return ReadTokenizer(hashlib.sha256(data).hexdigest(), 100, stops, 128, PACK + data[:10])


def _diagnostic(number: int) -> dict[str, object]:
    return {
        "code": "UNSUPPORTED_KEYWORD",
        "severity": "note" if number % 2 else "error",
        "message": f"keyword 'k{number}' isn't enforced",
        "pointer": f"/properties/p{number}/k",
        "detail": {"keyword": f"k{number}"},
        "hint": "remove it or validate it after decoding",
    }
