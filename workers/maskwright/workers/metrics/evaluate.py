"""A log's layered metrics: what `maskwright evaluate` shows.

Syntax and schema are judged here, from the text, by the gate's own layers (strict JSON, the whole schema), where a
line names its schema; a verdict in the log that says otherwise is a fault. Other layers are counted as the log has
them. A text that doesn't parse isn't judged by its schema. A text that was cut is judged as it stands: it usually
fails syntax, and how many were cut is in the table's first line. Texts without a schema have the verdicts of the log
alone.

Needs jsonschema-rs for lines with a schema. Cost: a parse and a validation for each; memory doesn't grow with the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from maskwright.workers.gate.layers import ParseError, SchemaLayer, parse_json
from maskwright.workers.metrics.counters import LayerMetrics, MeasuredLayer
from maskwright.workers.metrics.log import Definition, FaultCode, Generation, LogFault, read_log

MAX_FAULTS = 1000
"""Faults that are kept; all are counted."""


@dataclass
class Evaluation:
    """Metrics by group, in order of first appearance, and what was wrong. `n_faults` counts also those not kept."""

    groups: dict[str, LayerMetrics] = field(default_factory=dict)
    faults: list[LogFault] = field(default_factory=list)
    n_faults: int = 0


def evaluate(lines: Iterable[bytes]) -> Evaluation:
    """Reads and judges a whole log. Raises MissingDependency."""
    found = Evaluation()
    schemas: dict[str, SchemaLayer | None] = {}
    for record in read_log(lines):
        if isinstance(record, LogFault):
            _fault(found, record)
        elif isinstance(record, Definition):
            schemas[record.name] = _schema(record, found)
        else:
            metrics = found.groups.setdefault(record.group, LayerMetrics({"group": record.group}))
            metrics.record_text(_verdicts(record, schemas, found), record.ended, record.tokens)
            _observe(metrics, record)
    return found


def _schema(definition: Definition, found: Evaluation) -> SchemaLayer | None:
    try:
        return SchemaLayer(definition.schema, formats=definition.formats, draft=definition.draft)
    except ValueError as error:
        message = str(error).partition("\n")[0]
        _fault(found, LogFault(definition.line, FaultCode.INVALID_SCHEMA, message, "schema"))
        return None


def _verdicts(g: Generation, schemas: dict[str, SchemaLayer | None], found: Evaluation) -> dict[MeasuredLayer, bool]:
    judged: dict[MeasuredLayer, bool | None] = {}
    if g.schema is not None:
        judged = _judge(g.text, schemas[g.schema])
    verdicts = {MeasuredLayer.DEAD_END: g.ended != "dead end", **g.layers}
    for layer, verdict in judged.items():
        stated = verdicts.pop(layer, None)
        if stated is not None and stated != verdict:
            message = f"the log says {_word(stated)}, the text {_word(verdict)}"
            _fault(found, LogFault(g.line, FaultCode.CONTRADICTION, message, f"layers.{layer}"))
        if verdict is not None:
            verdicts[layer] = verdict
    return verdicts


def _judge(text: str, schema: SchemaLayer | None) -> dict[MeasuredLayer, bool | None]:
    value: Any
    try:
        value = parse_json(text.encode("utf-8", "surrogatepass"))
    except ParseError:
        return {MeasuredLayer.SYNTAX: False, MeasuredLayer.SCHEMA: None}
    if schema is None:
        return {MeasuredLayer.SYNTAX: True}
    return {MeasuredLayer.SYNTAX: True, MeasuredLayer.SCHEMA: not schema.judge(value)}


def _word(verdict: bool | None) -> str:
    return {True: "passed", False: "failed", None: "isn't judged"}[verdict]


def _observe(metrics: LayerMetrics, g: Generation) -> None:
    if g.added_ttft_seconds is not None:
        metrics.added_ttft.observe(g.added_ttft_seconds)
    if g.added_tpot_seconds is not None:
        metrics.added_tpot.observe(g.added_tpot_seconds, max(1, g.tokens - 1))


def _fault(found: Evaluation, fault: LogFault) -> None:
    found.n_faults += 1
    if len(found.faults) < MAX_FAULTS:
        found.faults.append(fault)
