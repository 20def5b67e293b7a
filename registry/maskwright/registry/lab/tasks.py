"""What a child process does for the lab beside compiling: judging a text by programs that know nothing of masks.

A schema here is anybody's, and validators have been known to take long over patterns, so they run where they can be
killed. References to other documents lead nowhere: nothing is fetched.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn

MAX_ERRORS = 8
MAX_MESSAGE = 300


@dataclass(frozen=True)
class Layer:
    """One judgement. `verdict`: "yes", "no", or "unknown", where this judge can't tell; `notes` say why."""

    judge: str
    question: str
    verdict: str
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"judge": self.judge, "question": self.question, "verdict": self.verdict, "notes": list(self.notes)}


def judge_text(kind: str, source: str, text: str) -> list[Layer]:
    """The layers that can be judged here, outermost first."""
    if kind == "json_schema":
        return _judge_json(source, text)
    if kind == "lark":
        return [_judge_lark(source, text)]
    return []


def _judge_json(source: str, text: str) -> list[Layer]:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return [Layer("json", "Is it JSON?", "no", (_short(error),))]
    return [Layer("json", "Is it JSON?", "yes"), _judge_schema(source, value)]


def _judge_schema(source: str, value: object) -> Layer:
    import jsonschema_rs

    question = "Does it satisfy the schema?"
    try:
        validator = jsonschema_rs.validator_for(
            json.loads(source), validate_formats=True, retriever=_fetch_nothing
        )
        errors = [e for e, _ in zip(validator.iter_errors(value), range(MAX_ERRORS), strict=False)]
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError) as error:
        return Layer("jsonschema-rs", question, "unknown", (_short(error),))
    notes = tuple(_short(f"{_pointer(e.instance_path)}: {e.message}") for e in errors)
    return Layer("jsonschema-rs", question, "no" if errors else "yes", notes)


def _judge_lark(source: str, text: str) -> Layer:
    import lark

    question = "Does lark parse it?"
    try:
        lark.Lark(source, parser="lalr").parse(text)
    except lark.exceptions.UnexpectedInput as error:
        return Layer("lark", question, "no", (_short(error),))
    except (lark.exceptions.LarkError, RecursionError) as error:
        return Layer("lark", question, "unknown", (_short(error),))
    return Layer("lark", question, "yes")


def _refuse(name: str) -> object:
    raise ValueError(f"{name} isn't JSON")


def _fetch_nothing(uri: str) -> NoReturn:
    raise ValueError(f"{uri} isn't fetched")


def _pointer(path: Any) -> str:
    return "".join(f"/{part}" for part in path) or "the value"


def _short(message: object) -> str:
    text = str(message).partition("\n")[0]
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
