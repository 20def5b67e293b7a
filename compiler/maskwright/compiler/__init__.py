"""Maskwright's compiler: JSON Schemas, regular expressions and grammars into token-level automata, ahead of time.

    from maskwright.compiler import Compiler, Vocabulary

    vocabulary = Vocabulary.from_file("tokenizer.json")
    result = Compiler(vocabulary).compile_json_schema('{"type": "integer"}')
    result.to_bytes(), result.report

Names are imported on first use, because the compiler itself loads numba and the rest doesn't need it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskwright.compiler.compile import Compiler, CompileResult, source_digest
    from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded
    from maskwright.compiler.options import CompileOptions, Limits
    from maskwright.compiler.report import Report
    from maskwright.compiler.version import COMPILER_VERSION
    from maskwright.compiler.vocabulary import Vocabulary

_HOME = {
    "COMPILER_VERSION": "version",
    "Code": "diagnostics",
    "CompileError": "diagnostics",
    "CompileOptions": "options",
    "CompileResult": "compile",
    "Compiler": "compile",
    "Diagnostic": "diagnostics",
    "LimitExceeded": "diagnostics",
    "Limits": "options",
    "Report": "report",
    "Vocabulary": "vocabulary",
    "source_digest": "compile",
}

__all__ = [
    "COMPILER_VERSION",
    "Code",
    "CompileError",
    "CompileOptions",
    "CompileResult",
    "Compiler",
    "Diagnostic",
    "LimitExceeded",
    "Limits",
    "Report",
    "Vocabulary",
    "source_digest",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value
