"""The pipeline, source to artifact.

front end    schema or pattern -> frames, explored and specialised   (schema/, regex/)
spell        bytes that the vocabulary can't spell are cut            (automaton/spell.py)
minimise     equal controls and frames are merged                     (automaton/minimise.py)
tokens       masks, contexts, rows                                    (tokens/build.py)
write        the artifact's bytes                                     (artifact/writer.py)
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from maskwright.compiler.artifact.writer import ArtifactMeta, write_artifact
from maskwright.compiler.automaton.explore import explore
from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.automaton.rebase import rebase
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.automaton.spell import cut_unspellable
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded
from maskwright.compiler.grammar import GrammarOptions, GrammarResult, build_grammar
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.pack import prepare
from maskwright.compiler.regex import compile_pattern
from maskwright.compiler.regex_frames import DfaFrame
from maskwright.compiler.regular import Budget, to_bytes
from maskwright.compiler.report import Report
from maskwright.compiler.schema import compile_schema, json_follows
from maskwright.compiler.tokens.build import BuildStats, build_tokens
from maskwright.compiler.tokens.pack_tables import Progress
from maskwright.compiler.version import COMPILER_VERSION
from maskwright.compiler.vocabulary import Vocabulary


@dataclass(frozen=True)
class CompileResult:
    """A finished artifact: its bytes (without the pack) and its report."""

    data: bytes
    report: Report

    def to_bytes(self) -> bytes:
        return self.data


@dataclass(frozen=True)
class _Front:
    """What a front end hands on. `spelled`: unspellable bytes are cut already, in the front end's own way."""

    automaton: ByteAutomaton
    treatment: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    spelled: bool = False


class Compiler:
    """Compiles sources against one vocabulary. The pack is built (or read from the cache) at construction.

    Instances may be shared between threads; one compilation runs in the calling thread.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        options: CompileOptions | None = None,
        limits: Limits | None = None,
        progress: Progress | None = None,
    ) -> None:
        """`progress(done, all)` is called while the pack is being built. Raises CompileError for a vocabulary
        that can't be used."""
        self.vocabulary, self.options, self.limits = vocabulary, options or CompileOptions(), limits or Limits()
        self.prepared = prepare(vocabulary, progress)

    def compile_json_schema(self, source: str | bytes | dict[str, Any] | bool) -> CompileResult:
        """JSON text or its value. Raises CompileError with every independent fault, LimitExceeded."""

        def front(deadline: float) -> _Front:
            r = compile_schema(source, self.options, self.limits, self.prepared.library, deadline)
            return _Front(r.automaton, tuple(r.treatment), tuple(r.notes))

        return self._compile("json_schema", _schema_text(source), front)

    def compile_regex(self, pattern: str) -> CompileResult:
        """The whole text must match. The dialect is the options'. Raises CompileError with spans, LimitExceeded."""

        def front(deadline: float) -> _Front:
            dfa = compile_pattern(
                pattern, self.options.regex_dialect, mode="full", limits=self.limits, deadline=deadline
            )
            budget = Budget(self.limits.states, deadline, self.limits.compile_seconds)
            frame = DfaFrame(to_bytes(dfa, "utf8", budget))
            raw = explore(frame, self.prepared.library, limits=self.limits, deadline=deadline)
            return _Front(specialise(raw, self.limits))

        if not isinstance(pattern, str):
            raise CompileError(Diagnostic(Code.INVALID_SOURCE, "a pattern is a string"))
        return self._compile("regex", pattern.encode("utf-8", "surrogatepass"), front)

    def compile_lark(self, grammar: str, start: str = "start") -> CompileResult:
        """A grammar in Lark's notation: a text is accepted exactly when lark's LALR parser with its contextual lexer
        parses it from rule `start`. Raises CompileError with conflicts and terminals by name, LimitExceeded."""

        def front(deadline: float) -> _Front:
            def build(library: ByteAutomaton | None) -> GrammarResult:
                return build_grammar(
                    grammar,
                    GrammarOptions(start=start),
                    limits=self.limits,
                    deadline=deadline,
                    spellable=self.prepared.spellable,
                    library=library,
                    compile_options=self.options,
                )

            r = build(self.prepared.library)
            if json_follows(r.automaton):
                return _Front(r.automaton, (), r.notes, spelled=True)
            r = build(None)
            return _Front(rebase(r.automaton, self.prepared.library), (), r.notes, spelled=True)

        if not isinstance(grammar, str):
            raise CompileError(Diagnostic(Code.INVALID_SOURCE, "a grammar is a string"))
        named = grammar if start == "start" else f"{grammar}\0start={start}"
        return self._compile("lark", named.encode("utf-8", "surrogatepass"), front)

    def _compile(self, kind: str, source: bytes, front_end: Callable[[float], _Front]) -> CompileResult:
        if len(source) > self.limits.source_bytes:
            raise LimitExceeded("source_bytes", self.limits.source_bytes, len(source), "read")
        begin = time.perf_counter()
        deadline = time.monotonic() + self.limits.compile_seconds
        front: _Front = front_end(deadline)
        seconds = {"front end": time.perf_counter() - begin}
        begin = time.perf_counter()
        automaton, notes = front.automaton, front.notes
        if not front.spelled:
            automaton, more = cut_unspellable(automaton, self.prepared.spellable, self.limits)
            notes = (*notes, *more)
        automaton = minimise(automaton, self.limits, deadline)
        seconds["minimise"] = time.perf_counter() - begin
        tables, stats = build_tokens(automaton, self.prepared, self.limits, deadline)
        begin = time.perf_counter()
        data = write_artifact(tables, meta=self._meta(kind, source), pack_rows=len(self.prepared.tables.rows.row_base))
        seconds |= stats.seconds | {"write": time.perf_counter() - begin}
        if len(data) > self.limits.artifact_bytes:
            raise LimitExceeded("artifact_bytes", self.limits.artifact_bytes, len(data), "write")
        return CompileResult(data, _report(kind, source, automaton, stats, len(data), seconds, front.treatment, notes))

    def _meta(self, kind: str, source: bytes) -> ArtifactMeta:
        return ArtifactMeta(
            source_kind=kind,
            source_digest=hashlib.sha256(source).hexdigest(),
            options=self.options.canonical(),
            vocabulary_fingerprint=self.vocabulary.fingerprint,
            pack_digest=self.prepared.digest,
            compiler_version=COMPILER_VERSION,
        )


def source_digest(kind: str, source: str | bytes | dict[str, Any] | bool) -> str:
    """SHA-256 in hex of what identifies a source: a schema's compact JSON with key order kept, else its text."""
    if kind == "json_schema":
        return hashlib.sha256(_schema_text(source)).hexdigest()
    text = source if isinstance(source, str | bytes) else json.dumps(source)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text).hexdigest()


def _schema_text(source: str | bytes | dict[str, Any] | bool) -> bytes:
    """Compact JSON where the source is JSON; the source itself where it isn't (it will be refused by place)."""
    try:
        value = json.loads(source) if isinstance(source, str | bytes) else source
        return json.dumps(value, separators=(",", ":")).encode()
    except (ValueError, RecursionError, TypeError):
        if isinstance(source, bytes):
            return source
        return (source if isinstance(source, str) else repr(source)).encode("utf-8", "surrogatepass")


def _report(
    kind: str,
    source: bytes,
    a: ByteAutomaton,
    stats: BuildStats,
    size: int,
    seconds: dict[str, float],
    treatment: tuple[tuple[str, str, str], ...],
    notes: tuple[Diagnostic, ...],
) -> Report:
    sizes = stats.mask_sizes
    return Report(
        kind=kind,
        states=len(a.edges),
        frames=len(a.frames),
        symbols=len(a.symbols),
        contexts=stats.contexts,
        pairs=stats.pairs,
        masks=len(sizes),
        largest_mask=max(sizes, default=0),
        mean_mask=sum(sizes) / len(sizes) if sizes else 0.0,
        artifact_bytes=size,
        source_bytes=len(source),
        seconds={name: round(value, 6) for name, value in seconds.items()},
        treatment=treatment,
        notes=notes,
    )
