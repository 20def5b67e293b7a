"""The layers in their order, up to permission: the first that has reasons against a text ends it.

accepting, parse and schema are in `layers`; business and permission are the caller's own functions, asked by an
operation each. A layer that isn't there (no schema, no validators, no authorisation) is passed over.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from maskwright.workers.artifact import Artifact
from maskwright.workers.gate.asked import Authorise, Request, Text, Validator, name_of
from maskwright.workers.gate.layers import Parse, ParseError, SchemaLayer, judge_accepting
from maskwright.workers.gate.outcomes import Layer, Reason, Rejected
from maskwright.workers.gate.performing import Ask
from maskwright.workers.gate.store import Step
from maskwright.workers.metrics.counters import MeasuredLayer

Verdicts = dict[MeasuredLayer, bool]
"""Whether the text passed, of the layers that were asked."""
_MEASURED = {
    Layer.ACCEPTING: MeasuredLayer.SYNTAX,
    Layer.PARSE: MeasuredLayer.SYNTAX,
    Layer.SCHEMA: MeasuredLayer.SCHEMA,
    Layer.BUSINESS: MeasuredLayer.BUSINESS,
    Layer.PERMISSION: MeasuredLayer.PERMISSION,
}


class _Refused(Exception):
    def __init__(self, layer: Layer, reasons: Sequence[Reason]) -> None:
        self.layer, self.reasons = layer, tuple(reasons)


@dataclass(frozen=True, slots=True)
class Judge:
    """The layers of one gate. `at` is told of each that a text passes."""

    artifact: Artifact
    schema: SchemaLayer | None
    parse: Parse
    validators: tuple[Validator, ...]
    authorise: Authorise | None
    at: Step

    def judge(
        self, text: Text, key: str, scope: str, principal: str | None, verdicts: Verdicts
    ) -> Generator[Ask, Any, Request | Rejected]:
        """The request that the action gets, or the rejection. Fills `verdicts`."""
        data = text.data
        try:
            self._pass(Layer.ACCEPTING, judge_accepting(self.artifact, data, text.tokens), verdicts)
            value, reasons = self._value(data)
            self._pass(Layer.PARSE, reasons, verdicts)
            if self.schema is not None:
                self._pass(Layer.SCHEMA, self.schema.judge(value), verdicts)
            request = Request(key, scope, data.decode("utf-8", "replace"), value, principal)
            if self.validators:
                reasons = []
                for validator in self.validators:
                    reasons += _reasons((yield Ask(validator, self._anew(request, data))), name_of(validator))
                self._pass(Layer.BUSINESS, reasons, verdicts)
            if self.authorise is not None:
                permitted = yield Ask(self.authorise, self._anew(request, data))
                self._pass(Layer.PERMISSION, _denial(permitted), verdicts)
        except _Refused as refused:
            return Rejected(key, refused.layer, refused.reasons)
        return request

    def _pass(self, layer: Layer, reasons: Sequence[Reason], verdicts: Verdicts) -> None:
        if layer != Layer.ACCEPTING or reasons:  # syntax is both layers: it has passed with the second
            verdicts[_MEASURED[layer]] = not reasons
        if reasons:
            raise _Refused(layer, reasons)
        self.at(str(layer))

    def _value(self, data: bytes) -> tuple[Any, list[Reason]]:
        try:
            return self.parse(data), []
        except ParseError as error:
            return None, [error.reason]

    def _anew(self, request: Request, data: bytes) -> Request:
        return replace(request, value=self.parse(data))


def _reasons(answer: Any, check: str) -> list[Reason]:
    if answer is None:
        return []
    given: Iterable[Any] = (answer,) if isinstance(answer, str | Reason) else answer
    return [r if isinstance(r, Reason) else Reason(str(r), check=check) for r in given]


def _denial(answer: Any) -> list[Reason]:
    if answer is True:
        return []
    return [Reason(answer if isinstance(answer, str) else f"not permitted (the authorisation returned {answer!r:.80})")]
