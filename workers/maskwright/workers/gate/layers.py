"""The layers that need no store: does the text run to an accepting state, does it parse, does it validate.

accepting   the text's bytes run through the artifact's automaton to a state where it may end; or its tokens do, which
            an artifact with special tokens in its language needs: no text tells them from their spelling
parse       JSON (RFC 8259) in UTF-8, with two of its "should"s made "must": no name twice in an object, since
            whoever reads the text elsewhere may take the other one; no number beyond a float's range
schema      the whole schema, by jsonschema-rs, loaded on first use; that judges the keywords which the artifact left
            out (`residual="allow"`), and everything else a second time, by code that shares nothing with the compiler

Each returns reasons, none meaning yes. Nothing is repaired, stripped or completed: a text with a space too many is
rejected by the first layer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from maskwright.workers.artifact import Artifact
from maskwright.workers.gate.errors import MissingDependency, SchemaNeeded, WrongSchema
from maskwright.workers.gate.outcomes import Reason
from maskwright.workers.matcher import Matcher
from maskwright.workers.source_digest import source_digest

MAX_REASONS = 20
"""Of the schema layer, in one rejection."""
_LONGEST_STEP = 16
"""Bytes after which a token's end is due: a matcher rests only where one may be."""

Schema = dict[str, Any] | bool
_VALIDATORS = {
    "2020-12": "Draft202012Validator",
    "2019-09": "Draft201909Validator",
    "7": "Draft7Validator",
    "6": "Draft6Validator",
    "4": "Draft4Validator",
}


def judge_accepting(artifact: Artifact, data: bytes, tokens: Sequence[int] | None = None) -> list[Reason]:
    """Whether the artifact accepts the text, or the tokens, which must spell it. Cost: linear in them."""
    if tokens is not None:
        return _judge_tokens(artifact, data, tokens)
    matcher = Matcher(artifact)
    if matcher.accept_string(data):
        return _judge_end(matcher, len(data))
    stop, pending = 0, b""
    for position, byte in enumerate(data):
        pending += bytes((byte,))
        if matcher.accept_string(pending):
            stop, pending = position + 1, b""
        elif len(pending) == _LONGEST_STEP:
            break
    what = data[stop : stop + 8].decode("utf-8", "backslashreplace")
    return [Reason(f"{what!r} isn't accepted here", offset=stop)]


def _judge_end(matcher: Matcher, length: int) -> list[Reason]:
    return [] if matcher.is_accepting() else [Reason("the text ends too early", offset=length)]


def _judge_tokens(artifact: Artifact, data: bytes, tokens: Sequence[int]) -> list[Reason]:
    """Special tokens may be left out of the text, or be in it by name."""
    matcher, pack = Matcher(artifact, ()), artifact.pack
    plain, named = bytearray(), bytearray()
    for place, token in enumerate(tokens):
        if not matcher.accept_token(token):
            return [Reason(f"token {token}, number {place + 1}, isn't accepted here", offset=len(plain))]
        text = pack.token_bytes(token)
        plain += text or b""
        named += (pack.special_text(token) or "").encode() if text is None else text
    if data not in (plain, named):
        return [Reason("the text isn't what the tokens spell")]
    return _judge_end(matcher, len(data))


class ParseError(ValueError):
    """A text that isn't JSON, or ambiguous JSON. `reason` tells where."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason
        super().__init__(str(reason))


def parse_json(data: bytes) -> Any:
    """The value of a JSON text. Raises ParseError."""
    try:
        text = data.decode()
        return json.loads(text, object_pairs_hook=_object, parse_float=parse_float, parse_constant=_constant)
    except ParseError:
        raise
    except UnicodeDecodeError as error:
        raise ParseError(Reason("not UTF-8", offset=error.start)) from error
    except json.JSONDecodeError as error:
        offset = len(error.doc[: error.pos].encode())
        raise ParseError(Reason(error.msg, offset=offset)) from error
    except RecursionError as error:
        raise ParseError(Reason("nested too deeply to be read")) from error
    except ValueError as error:  # an integer of more digits than Python converts
        raise ParseError(Reason(str(error))) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ParseError(Reason(f"the name {twice[:80]!r} appears twice in an object"))
    return value


def parse_float(text: str) -> float:
    """A JSON number with a fraction or an exponent. Raises ParseError beyond a float's range."""
    value = float(text)
    if math.isinf(value):
        raise ParseError(Reason(f"the number {text[:40]} is beyond a float's range"))
    return value


def _constant(text: str) -> float:
    raise ParseError(Reason(f"{text} isn't JSON"))


class SchemaLayer:
    """Judges values against one schema. Raises MissingDependency, ValueError for what is no schema."""

    def __init__(
        self,
        schema: Schema,
        *,
        formats: bool = True,
        draft: str = "2020-12",
        resources: Mapping[str, Schema] | None = None,
    ) -> None:
        """formats: whether `format` is an assertion. draft: of a schema without `$schema`. resources: schemas by URI
        that references may lead to; nothing is fetched.
        """
        self._validator = _validator(schema, formats, draft, resources or {})

    def judge(self, value: Any) -> list[Reason]:
        """The reasons why the value doesn't validate, at most MAX_REASONS, by pointer."""
        reasons: list[Reason] = []
        try:
            for error in self._validator.iter_errors(value):
                reasons.append(Reason(error.message, pointer=_pointer(error.instance_path)))
                if len(reasons) == MAX_REASONS:
                    break
        except (ValueError, RecursionError) as error:  # nested deeper than it judges
            reasons.append(Reason(f"can't be judged: {error}"))
        return reasons


def schema_layer(
    artifact: Artifact,
    schema: Schema | str | bytes | None,
    resources: Mapping[str, Schema] | None,
    check_source: bool,
) -> SchemaLayer | None:
    """The schema layer of an artifact; `schema` as a value or JSON text. None without a schema.

    Raises WrongSchema where it isn't the artifact's source (not with `check_source=False`), SchemaNeeded,
    MissingDependency, ValueError.
    """
    options = artifact.header["options"]
    if schema is None:
        if options.get("residual") == "allow":
            raise SchemaNeeded(artifact.digest)
        return None
    value: Schema = json.loads(schema) if isinstance(schema, str | bytes) else schema
    source = artifact.header["source"]
    if check_source and source["kind"] == "json_schema":
        found = source_digest("json_schema", schema, resources)
        if found != source["digest"]:
            raise WrongSchema(source["digest"], found)
    formats, draft = options.get("formats") != "annotate", options.get("draft", "2020-12")
    return SchemaLayer(value, formats=formats, draft=draft, resources=resources)


def _validator(schema: Schema, formats: bool, draft: str, resources: Mapping[str, Schema]) -> Any:
    try:
        package = import_module("jsonschema_rs")
    except ModuleNotFoundError as error:
        raise MissingDependency("jsonschema-rs", "gate") from error
    make = package.validator_for
    if draft in _VALIDATORS and not (isinstance(schema, dict) and "$schema" in schema):
        make = getattr(package, _VALIDATORS[draft])
    registry = package.Registry(list(resources.items())) if resources else None
    return make(schema, validate_formats=formats, registry=registry, offline=True)


def _pointer(path: Iterable[str | int]) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


Parse = Callable[[bytes], Any]


def parse_text(data: bytes) -> str:
    """The value of a text that isn't JSON: itself. Raises ParseError where it isn't UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ParseError(Reason("not UTF-8", offset=error.start)) from error
