"""What the page may ask for, read from JSON. A field that's missing, unknown or out of range is an INVALID_REQUEST that
names it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maskwright.compiler.options import CompileOptions
from maskwright.workers.sampler import SamplingOptions

from ..faults import check_digest, invalid_request
from .examples import BY_NAME
from .runs import MAX_STEPS
from .sampling import Settings
from .workbench import CompileRequest

KINDS = ("json_schema", "regex", "lark", "gbnf")
SPEAKERS = ("table", "noise", "model")
MAX_SOURCE, MAX_TOKENS, MAX_TEXT, MAX_SEARCH, MAX_PROMPT = 256_000, 4096, 200_000, 64, 4000
MAX_SEED = (1 << 32) - 1


@dataclass(frozen=True)
class Speaker:
    """Whose distribution: of the example's table, noise, or the real model after a prompt."""

    name: str
    example: str
    prompt: str


@dataclass(frozen=True)
class StateRequest:
    """A view, or a run from there. budget: tokens of the whole text at most, with the one that ends it; 0: none."""

    artifact: str
    tokens: tuple[int, ...]
    speaker: Speaker
    settings: Settings
    budget: int
    search: str
    steps: int
    masked: bool


class Fields:
    """A JSON object whose fields are taken one by one; `done` refuses what's left."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, dict):
            raise invalid_request(place, "must be an object")
        self._left, self._place = dict(value), place

    def take(self, name: str, kind: type, default: Any = None) -> Any:
        """A field of a kind; without a default it must be there."""
        value = self._left.pop(name, default)
        if kind is float and type(value) is int:
            try:
                value = float(value)
            except OverflowError as error:
                raise invalid_request(self._at(name), "is too large") from error
        if type(value) is not kind:
            raise invalid_request(self._at(name), f"must be {_NAMES[kind]}")
        return value

    def number(self, name: str, low: float, high: float, default: Any) -> Any:
        value = self.take(name, type(default), default)
        if not low <= value <= high:
            raise invalid_request(self._at(name), f"must be from {low:g} to {high:g}")
        return value

    def text(self, name: str, most: int, default: str | None = None) -> str:
        value: str = self.take(name, str, default)
        if len(value) > most:
            raise invalid_request(self._at(name), f"at most {most} characters")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise invalid_request(self._at(name), "isn't Unicode text") from error
        return value

    def choice(self, name: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        value: str = self.take(name, str, default)
        if value not in allowed:
            raise invalid_request(self._at(name), f"must be one of {', '.join(allowed)}")
        return value

    def rest(self) -> Mapping[str, Any]:
        """What's left, which is then done with."""
        rest, self._left = self._left, {}
        return rest

    def done(self) -> None:
        for name in self._left:
            raise invalid_request(self._at(name), "isn't known")

    def _at(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name


_NAMES: dict[type, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


def parse_body(body: bytes) -> Fields:
    try:
        return Fields(json.loads(body), "")
    except (ValueError, RecursionError) as error:
        raise invalid_request("body", "isn't JSON") from error


def compile_request(fields: Fields) -> CompileRequest:
    kind = fields.choice("kind", KINDS)
    source = fields.text("source", MAX_SOURCE)
    options = _options(fields.take("options", dict, {}))
    fingerprint = fields.text("tokenizer", 64, "")
    fields.done()
    if fingerprint:
        check_digest(fingerprint, "tokenizer")
    return CompileRequest(kind, source, options, fingerprint or None)


def state_request(fields: Fields) -> StateRequest:
    request = StateRequest(
        artifact=_digest(fields),
        tokens=_tokens(fields.take("tokens", list, [])),
        speaker=_speaker(Fields(fields.take("speaker", dict, {"name": "noise"}), "speaker")),
        settings=_settings(Fields(fields.take("settings", dict, {}), "settings")),
        budget=fields.number("budget", 0, MAX_TOKENS, 0),
        search=fields.text("search", MAX_SEARCH, ""),
        steps=fields.number("steps", 1, MAX_STEPS, 1),
        masked=fields.take("masked", bool, True),
    )
    fields.done()
    return request


def judge_request(fields: Fields) -> tuple[str, str]:
    """(artifact, text)."""
    digest, text = _digest(fields), fields.text("text", MAX_TEXT)
    fields.done()
    return digest, text


def _digest(fields: Fields) -> str:
    return check_digest(fields.text("artifact", 64), "artifact")


def _options(values: dict[str, Any]) -> CompileOptions:
    try:
        return CompileOptions(**values)
    except (TypeError, ValueError) as error:
        raise invalid_request("options", str(error).replace("CompileOptions.__init__() ", "")) from error


def _tokens(values: list[Any]) -> tuple[int, ...]:
    if len(values) > MAX_TOKENS:
        raise invalid_request("tokens", f"at most {MAX_TOKENS}")
    if any(type(t) is not int or not 0 <= t < 1 << 31 for t in values):
        raise invalid_request("tokens", "must be token ids")
    return tuple(values)


def _speaker(fields: Fields) -> Speaker:
    speaker = Speaker(
        fields.choice("name", SPEAKERS), fields.text("example", 64, ""), fields.text("prompt", MAX_PROMPT, "")
    )
    fields.done()
    if speaker.name == "table" and speaker.example not in BY_NAME:
        raise invalid_request("speaker.example", f"must be one of {', '.join(BY_NAME)}")
    return speaker


def _settings(fields: Fields) -> Settings:
    options = SamplingOptions(
        temperature=fields.number("temperature", 0.0, 10.0, 1.0),
        top_k=fields.number("top_k", 0, 1_000_000, 0),
        top_p=fields.number("top_p", 0.001, 1.0, 1.0),
    )
    settings = Settings(options, fields.number("seed", 0, MAX_SEED, 1))
    fields.done()
    return settings
