"""Layered metrics: what became of generated texts, with every layer counted apart.

    metrics = LayerMetrics({"gate": "refund"})
    gate = CommitGate(artifact, schema, validators, store, metrics=metrics)
    metrics.added_tpot.observe(seconds)
    render_prometheus([metrics]); render_table({"refund": metrics})

counters     the layers and what is counted
exposition   as Prometheus text, written here: no client library
table        as a table for people
log          a log of generations, one JSON object a line
evaluate     a log's table: `maskwright evaluate LOG.jsonl`
"""

from maskwright.workers.metrics.counters import Durations, LayerMetrics, MeasuredLayer
from maskwright.workers.metrics.exposition import render_prometheus
from maskwright.workers.metrics.table import render_table

__all__ = ["Durations", "LayerMetrics", "MeasuredLayer", "render_prometheus", "render_table"]
