"""Running the compiler for callers: in child processes, once per identical request, with bounded waiting."""

from .children import Call, ChildPool, PoolLimits
from .flow import CompileFlow, CompileOrder, CompileOutcome
from .single_flight import SingleFlight
from .tasks import (
    KEPT_VOCABULARIES,
    Compiled,
    CompileJob,
    Overrun,
    ReadTokenizer,
    Refused,
    compile_source,
    read_tokenizer,
    warm_compiler,
)

__all__ = [
    "KEPT_VOCABULARIES",
    "Call",
    "ChildPool",
    "CompileFlow",
    "CompileJob",
    "CompileOrder",
    "CompileOutcome",
    "Compiled",
    "Overrun",
    "PoolLimits",
    "ReadTokenizer",
    "Refused",
    "SingleFlight",
    "compile_source",
    "read_tokenizer",
    "warm_compiler",
]
