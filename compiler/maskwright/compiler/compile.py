"""The pipeline, source to artifact.

front end    schema, pattern, grammar or tools -> frames, specialised   (schema/, regex/, grammar/)
spell        bytes that the vocabulary can't spell are cut            (automaton/spell.py)
minimise     equal controls and frames are merged                     (automaton/minimise.py)
tokens       masks, contexts, rows                                    (tokens/build.py)
write        the artifact's bytes                                     (artifact/writer.py)
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from maskwright.compiler.artifact.writer import ArtifactMeta, write_artifact
from maskwright.compiler.automaton.explore import explore
from maskwright.compiler.automaton.ir import ByteAutomaton
from maskwright.compiler.automaton.minimise import minimise
from maskwright.compiler.automaton.rebase import rebase
from maskwright.compiler.automaton.specialise import specialise
from maskwright.compiler.automaton.spell import cut_unspellable
from maskwright.compiler.collection import rare_collection
from maskwright.compiler.costs import costliest_place
from maskwright.compiler.deadline import now
from maskwright.compiler.diagnostics import Code, CompileError, Diagnostic, LimitExceeded
from maskwright.compiler.grammar import GrammarOptions, ToolFormat, build_gbnf, build_grammar, build_tools
from maskwright.compiler.grammar.token_symbols import MARKERS, TokenSymbols
from maskwright.compiler.grammar.tool_document import read_tool_document, tool_document
from maskwright.compiler.memory import MemoryUse
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.pack import prepare
from maskwright.compiler.regex import compile_pattern
from maskwright.compiler.regex_frames import DfaFrame
from maskwright.compiler.regular import Budget, to_bytes
from maskwright.compiler.report import Made, Report, report_on
from maskwright.compiler.schema import compile_schema, json_follows
from maskwright.compiler.tokens.build import build_tokens
from maskwright.compiler.tokens.pack_tables import Progress
from maskwright.compiler.tokens.specials import with_specials
from maskwright.compiler.version import COMPILER_VERSION
from maskwright.compiler.vocabulary import Vocabulary
from maskwright.workers.source_digest import SchemaSource, schema_text, source_digest, with_resources

__all__ = ["CompileResult", "Compiler", "SchemaSource", "source_digest"]


@dataclass(frozen=True)
class CompileResult:
    """A finished artifact: its bytes (without the pack). `tell` makes its report, and holds what that's made from."""

    data: bytes
    tell: Callable[[], Report]

    def to_bytes(self) -> bytes:
        return self.data

    @cached_property
    def report(self) -> Report:
        """Made on first use: telling where the length is unbounded and what each place costs takes a while."""
        with rare_collection():
            return self.tell()


@dataclass(frozen=True)
class _Front:
    """What a front end hands on. `spelled`: unspellable bytes are cut already, in the front end's own way. `specials`:
    special tokens that are symbols."""

    automaton: ByteAutomaton
    treatment: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    spelled: bool = False
    specials: frozenset[int] = frozenset()


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

    def compile_json_schema(
        self, source: SchemaSource, resources: Mapping[str, SchemaSource] | None = None
    ) -> CompileResult:
        """JSON text or its value. `resources` are the schemas, by absolute URI without a fragment, that references
        may lead to besides those in the source and the drafts' meta-schemas: nothing is ever fetched.

        Raises CompileError with every independent fault, LimitExceeded.
        """

        def front(deadline: float) -> _Front:
            r = compile_schema(source, self.options, self.limits, self.prepared.library, deadline, resources)
            return _Front(r.automaton, tuple(r.treatment), tuple(r.notes))

        if isinstance(source, str | bytes):
            self._check_source(source)
        return self._compile("json_schema", with_resources(schema_text(source), resources), front)

    def compile_regex(self, pattern: str) -> CompileResult:
        """The whole text must match. The dialect is the options'. Raises CompileError with spans, LimitExceeded."""

        def front(deadline: float) -> _Front:
            dfa = compile_pattern(
                pattern, self.options.regex_dialect, mode="full", limits=self.limits, deadline=deadline
            )
            seconds = self.limits.compile_seconds
            budget = Budget(self.limits.states, deadline, seconds, "bytes", span=(0, len(pattern)))
            frame = DfaFrame(to_bytes(dfa, "utf8", budget))
            raw = explore(frame, self.prepared.library, limits=self.limits, deadline=deadline)
            return _Front(specialise(raw, self.limits))

        if not isinstance(pattern, str):
            raise CompileError(Diagnostic(Code.INVALID_SOURCE, "a pattern is a string"))
        self._check_source(pattern)
        return self._compile("regex", pattern.encode("utf-8", "surrogatepass"), front)

    def compile_lark(self, grammar: str, start: str | None = None) -> CompileResult:
        """A grammar in Lark's notation: a text is accepted exactly when lark's LALR parser with its contextual lexer
        parses it from rule `start` (default: the options' grammar_start, then "start"). Raises CompileError with
        conflicts and terminals by name, LimitExceeded."""
        options = self.options if start is None else replace(self.options, grammar_start=start)

        def front(deadline: float) -> _Front:
            symbols = TokenSymbols.of(self.vocabulary)

            def build(library: ByteAutomaton | None) -> tuple[ByteAutomaton, _Front]:
                r = build_grammar(
                    grammar,
                    GrammarOptions(options.grammar_start or "start", options.grammar_fallback, options.grammar_strict),
                    limits=self.limits,
                    deadline=deadline,
                    spellable=self.prepared.spellable,
                    library=library,
                    compile_options=options,
                    specials=symbols,
                )
                return r.automaton, _Front(r.automaton, (), r.notes, True, frozenset(symbols.used))

            return self._on_library(build)

        if not isinstance(grammar, str):
            raise CompileError(Diagnostic(Code.INVALID_SOURCE, "a grammar is a string"))
        self._check_source(grammar)
        return self._compile("lark", grammar.encode("utf-8", "surrogatepass"), front, options)

    def compile_gbnf(self, grammar: str, root: str | None = None) -> CompileResult:
        """A grammar in GBNF, llama.cpp's notation, or what XGrammar's EBNF shares with it; texts match rule `root`
        (default: the options' grammar_start, then "root"). Raises CompileError with places, rules and bytes,
        LimitExceeded."""
        options = self.options if root is None else replace(self.options, grammar_start=root)

        def front(deadline: float) -> _Front:
            name = options.grammar_start or "root"
            library = self.prepared.library
            return _Front(build_gbnf(grammar, name, limits=self.limits, deadline=deadline, library=library))

        if not isinstance(grammar, str):
            raise CompileError(Diagnostic(Code.INVALID_SOURCE, "a grammar is a string"))
        self._check_source(grammar)
        return self._compile("gbnf", grammar.encode("utf-8", "surrogatepass"), front, options)

    def compile_tools(
        self,
        tools: str | bytes | Sequence[dict[str, Any]] | dict[str, Any],
        *,
        format: str | ToolFormat = "hermes",
        tool_choice: str = "auto",
        parallel: bool = True,
        reasoning: tuple[str, str] | None = None,
    ) -> CompileResult:
        """Free text and calls of tools, as `grammar/tools.py` tells. `tools`: a list as OpenAI writes it; or a whole
        document, as text or value, which has the other arguments in itself (`grammar/tool_document.py`).

        Raises CompileError with every independent fault by pointer, LimitExceeded.
        """
        if isinstance(tools, str | bytes):
            text = tools if isinstance(tools, str) else tools.decode("utf-8", "replace")
        elif isinstance(tools, dict):
            text = json.dumps(tools, separators=(",", ":"))
        else:
            text = tool_document(list(tools), format, tool_choice, parallel, reasoning)

        def front(deadline: float) -> _Front:
            found, chosen = read_tool_document(text)
            symbols = TokenSymbols.of(self.vocabulary)

            def build(library: ByteAutomaton | None) -> tuple[ByteAutomaton, _Front]:
                r = build_tools(
                    found,
                    chosen,
                    options=self.options,
                    limits=self.limits,
                    library=library,
                    deadline=deadline,
                    specials=symbols,
                )
                front = _Front(r.automaton, tuple(r.treatment), tuple(r.notes), specials=frozenset(symbols.used))
                return r.automaton, front

            return self._on_library(build)

        self._check_source(text)
        return self._compile("tools", schema_text(text), front)

    def _on_library(self, build: Callable[[ByteAutomaton | None], tuple[ByteAutomaton, _Front]]) -> _Front:
        """A front end's result with the pack's frames, or without them where what follows a value isn't JSON."""
        automaton, front = build(self.prepared.library)
        if json_follows(automaton):
            return front
        automaton, front = build(None)
        return replace(front, automaton=rebase(automaton, self.prepared.library))

    def _compile(
        self, kind: str, source: bytes, front_end: Callable[[float], _Front], options: CompileOptions | None = None
    ) -> CompileResult:
        with rare_collection():
            return self._run(kind, source, front_end, options or self.options)

    def _run(
        self, kind: str, source: bytes, front_end: Callable[[float], _Front], options: CompileOptions
    ) -> CompileResult:
        begin, memory = time.perf_counter(), MemoryUse()
        deadline = now() + self.limits.compile_seconds
        front: _Front = front_end(deadline)
        seconds = {"front end": time.perf_counter() - begin}
        try:
            self._check_memory(memory, "front end")
            return self._finish(kind, source, front, options, deadline, seconds, memory)
        except LimitExceeded as error:
            raise error.near(costliest_place(front.automaton)) from None

    def _finish(
        self,
        kind: str,
        source: bytes,
        front: _Front,
        options: CompileOptions,
        deadline: float,
        seconds: dict[str, float],
        memory: MemoryUse,
    ) -> CompileResult:
        """Everything behind the front end."""
        begin = time.perf_counter()
        automaton, notes = front.automaton, front.notes
        if not front.spelled:
            automaton, more = cut_unspellable(automaton, self.prepared.spellable | MARKERS, self.limits)
            notes = (*notes, *more)
        automaton = minimise(automaton, self.limits, deadline)
        seconds["minimise"] = time.perf_counter() - begin
        self._check_memory(memory, "minimise")
        prepared = with_specials(self.prepared, sorted(front.specials))
        tables, stats = build_tokens(automaton, prepared, self.limits, deadline)
        self._check_memory(memory, "tokens")
        begin = time.perf_counter()
        meta = self._meta(kind, source, options)
        data = write_artifact(tables, meta=meta, specials=bool(front.specials))
        seconds |= stats.seconds | {"write": time.perf_counter() - begin}
        if len(data) > self.limits.artifact_bytes:
            raise LimitExceeded("artifact_bytes", self.limits.artifact_bytes, len(data), "write")
        accepting = automaton.accepting_verdicts
        made = Made(kind, len(source), accepting, tables, stats, self.prepared, len(data), memory.peak(), seconds)
        treatment = front.treatment
        return CompileResult(data, lambda: report_on(made, options, treatment, notes))

    def _check_source(self, source: str | bytes) -> None:
        """Before anything is done with a text. Raises LimitExceeded."""
        limit, size = self.limits.source_bytes, len(source)
        if isinstance(source, str) and size <= limit:
            size = len(source.encode("utf-8", "surrogatepass"))
        if size > limit:
            raise LimitExceeded("source_bytes", limit, size, "read")

    def _check_memory(self, memory: MemoryUse, stage: str) -> None:
        if memory.now() > self.limits.compile_memory:
            raise LimitExceeded("compile_memory", self.limits.compile_memory, memory.now(), stage)

    def _meta(self, kind: str, source: bytes, options: CompileOptions) -> ArtifactMeta:
        return ArtifactMeta(
            source_kind=kind,
            source_digest=hashlib.sha256(source).hexdigest(),
            options=options.canonical(),
            vocabulary_fingerprint=self.vocabulary.fingerprint,
            pack_digest=self.prepared.digest,
            compiler_version=COMPILER_VERSION,
        )
