"""The lab's calls: JSON in, JSON out, no state between them.

    setup      what there is to choose: tokenizers, examples, kinds, the model
    model      loads the real model, and reads its tokenizer
    compile    a source -> an artifact's digest and report, or diagnostics
    state      artifact, tokens, settings -> everything that the page shows for them
    run        the same -> tokens drawn from there, with or without the mask
    judge      artifact, text -> what validators that know no masks say
    split      artifact, text -> the tokens that a text begins with, as far as they're legal

Compiling and judging happen in children, numeric work in threads: nothing here holds the event loop up. A failure is
`{"error": {"reason", "message", "diagnostics"?}}` with the HTTP status that belongs to its reason; this is the one
place where that's decided.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from importlib.metadata import version
from typing import Any, TypeVar, TypeVarTuple

import grpc

from ..faults import invalid_request
from ..service.status import CODES, as_registry_error
from .distributions import Distribution, Noise, TextTable
from .examples import BY_NAME, EXAMPLES
from .following import follow_text, replay
from .guard import Guard
from .http import Request, Response
from .model import NAME, ModelSpeaks, RealModel, missing_packages
from .orders import KINDS, Fields, StateRequest, compile_request, judge_request, parse_body, state_request
from .runs import Order, run_free, run_json, run_masked
from .site import HEADERS, PREFIX
from .tokenizers import Tokenizer, Tokenizers
from .views import figures_of, pieces_of, place_of, rows_of, step_of
from .workbench import Bench, Refusal, Workbench

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")
THREADS = 4
HTTP_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.FAILED_PRECONDITION: 409,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.UNAVAILABLE: 503,
}
UNCHECKED = (
    ("facts", "Whether what the text says is true: that there is such an order, that it's about this city."),
    ("permission", "Whether whoever asked may have this done."),
    ("effect", "Whether doing it succeeds. Nothing has been done: the lab runs no tools."),
)
"""What no mask and no validator looks at."""


class Api:
    """Belongs to one event loop."""

    def __init__(self, guard: Guard, tokenizers: Tokenizers, workbench: Workbench, real_model: bool) -> None:
        """`real_model`: whether the model may be loaded into this process."""
        self._guard, self._tokenizers, self._workbench = guard, tokenizers, workbench
        self._may_load = real_model
        self._model: tuple[RealModel, Tokenizer] | None = None
        self._loading = asyncio.Lock()
        self._threads = asyncio.Semaphore(THREADS)
        self._calls: dict[str, tuple[str, bool, Callable[[Fields], Awaitable[dict[str, Any]]]]] = {
            "setup": ("read", False, self._setup),
            "model": ("compile", True, self._load_model),
            "compile": ("compile", True, self._compile),
            "state": ("read", False, self._state),
            "run": ("read", False, self._run),
            "judge": ("compile", True, self._judge),
            "split": ("read", False, self._split),
        }

    async def answer(self, request: Request) -> Response:
        """Raises nothing: every failure is an answer."""
        try:
            call = self._calls.get(request.path.removeprefix(f"{PREFIX}/api/"))
            if call is None:
                return _json({"error": {"reason": "UNKNOWN_CALL", "message": "there is no such call"}}, 404)
            if request.method != "POST":
                return _json({"error": {"reason": "INVALID_REQUEST", "message": "calls are POST"}}, 405)
            scope, compiling, function = call
            with self._guard.call(request, scope, compiling=compiling):
                return _json(await function(parse_body(request.body)))
        except Exception as error:
            return failure(error)

    async def _setup(self, fields: Fields) -> dict[str, Any]:
        fields.done()
        return {
            "version": version("maskwright"),
            "kinds": KINDS,
            "tokenizers": await self._tokenizers.listed(),
            "examples": [{**asdict(e), "table": [list(row) for row in e.table]} for e in EXAMPLES],
            "model": {"name": NAME, "offered": self._may_load, "missing": missing_packages()},
            "unchecked": [{"name": name, "what": what} for name, what in UNCHECKED],
        }

    async def _load_model(self, fields: Fields) -> dict[str, Any]:
        fields.done()
        if not self._may_load:
            raise invalid_request("speaker", "the real model speaks in `maskwright lab` alone, not beside a service")
        async with self._loading:
            if self._model is None:
                model = await asyncio.to_thread(RealModel)
                self._model = (model, await self._tokenizers.add(NAME, model.tokenizer_path))
        return {"tokenizer": self._model[1].fingerprint, "tokenizers": await self._tokenizers.listed()}

    def close(self) -> None:
        """Lets the model go."""
        if self._model is not None:
            self._model[0].close()
            self._model = None

    async def _compile(self, fields: Fields) -> dict[str, Any]:
        result = await self._workbench.compile(compile_request(fields))
        if isinstance(result, Refusal):
            return {"refused": True, "diagnostics": result.diagnostics, "seconds": result.seconds}
        return {
            "refused": False,
            "artifact": result.artifact.digest,
            "tokenizer": result.tokenizer.fingerprint,
            "report": result.report,
            "seconds": result.seconds,
            "stop_tokens": list(result.artifact.pack.stop_token_ids),
        }

    async def _state(self, fields: Fields) -> dict[str, Any]:
        request = state_request(fields)
        bench = self._workbench.get(request.artifact)
        return await self._in_thread(_view, bench, request, self._speakers(bench, request))

    async def _run(self, fields: Fields) -> dict[str, Any]:
        request = state_request(fields)
        bench = self._workbench.get(request.artifact)
        return await self._in_thread(_draw, bench, request, self._speakers(bench, request))

    async def _judge(self, fields: Fields) -> dict[str, Any]:
        digest, text = judge_request(fields)
        bench = self._workbench.get(digest)
        layers = [await self._in_thread(follow_text, bench.artifact, text), *await self._workbench.judge(bench, text)]
        return {"layers": [layer.to_json() for layer in layers]}

    async def _split(self, fields: Fields) -> dict[str, Any]:
        digest, text = judge_request(fields)
        bench = self._workbench.get(digest)
        tokens = await self._in_thread(bench.tokenizer.spellings.split, text.encode())
        return {"tokens": tokens[: replay(bench.artifact, tokens).taken]}

    def _speakers(self, bench: Bench, request: StateRequest) -> tuple[Distribution, Noise]:
        """Who speaks, and the noise that does where that one can't. Raises RegistryError INVALID_REQUEST."""
        noise = Noise(bench.artifact.vocab_size, request.settings.seed)
        if request.speaker.name == "table":
            table = BY_NAME[request.speaker.example].table
            return TextTable(table, bench.artifact.pack, bench.tokenizer.spellings, noise), noise
        if request.speaker.name == "noise":
            return noise, noise
        if self._model is None or self._model[1].fingerprint != bench.tokenizer.fingerprint:
            raise invalid_request("speaker", "the model isn't loaded, or the source is compiled for other tokens")
        return ModelSpeaks(self._model[0], request.speaker.prompt, bench.artifact.vocab_size), noise

    async def _in_thread(
        self, function: Callable[[*_Arguments], _Result], *arguments: *_Arguments
    ) -> _Result:
        async with self._threads:
            return await asyncio.to_thread(function, *arguments)


def failure(error: Exception) -> Response:
    """Any failure as an answer; what isn't known is only logged, with a reference."""
    known = as_registry_error(error)
    body: dict[str, Any] = {"reason": known.reason, "message": known.message}
    if known.diagnostics:
        body["diagnostics"] = list(known.diagnostics)
    return _json({"error": body}, HTTP_STATUS.get(CODES[known.reason], 500))


def _json(value: dict[str, Any], status: int = 200) -> Response:
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace")
    return Response(data, status, "application/json", {**HEADERS, "Cache-Control": "no-store"})


def _view(bench: Bench, request: StateRequest, speakers: tuple[Distribution, Noise]) -> dict[str, Any]:
    artifact, (distribution, noise) = bench.artifact, speakers
    reached = replay(artifact, request.tokens)
    tokens, matcher = request.tokens[: reached.taken], reached.matcher
    step = step_of(matcher, tokens, distribution, noise, request.settings, request.budget)
    return {
        "taken": reached.taken,
        "pieces": pieces_of(artifact, tokens),
        "figures": figures_of(matcher, step, request.budget, len(tokens)),
        "place": place_of(matcher),
        "rows": [row.to_json() for row in rows_of(matcher, step, request.search)],
        "source": step.spoken.source,
        "neutral": request.settings.neutral,
    }


def _draw(bench: Bench, request: StateRequest, speakers: tuple[Distribution, Noise]) -> dict[str, Any]:
    artifact, (distribution, noise) = bench.artifact, speakers
    tokens = request.tokens[: replay(artifact, request.tokens).taken]
    order = Order(tokens, distribution, noise, request.settings, request.steps, request.budget)
    return run_json(artifact, run_masked(artifact, order) if request.masked else run_free(artifact, order))
