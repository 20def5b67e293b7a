"""What `deploy/` says agrees with the program: configuration that loads, metrics that there are, flags that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from maskwright.registry.cli import _parser
from maskwright.registry.settings import PREFIX, load_config
from maskwright.registry.store.locate import s3_settings
from maskwright.registry.telemetry import Metrics

yaml = pytest.importorskip("yaml", reason="PyYAML isn't installed")
DEPLOY = Path(__file__).parents[3] / "deploy"
_METRIC = re.compile(r"\bmaskwright_[a-z_]+")


def _documents(name: str) -> list[dict[str, Any]]:
    return [d for d in yaml.safe_load_all((DEPLOY / name).read_text()) if d]


def _of_kind(kind: str) -> list[dict[str, Any]]:
    return [d for d in _documents("kubernetes/registry.yaml") if d["kind"] == kind]


def _known_metrics() -> set[str]:
    known = set()
    for family in Metrics().registry.collect():
        suffixes = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_count", "_sum"]}
        known |= {family.name + suffix for suffix in suffixes[family.type]}
    return known


def test_alerts_and_dashboard_use_metrics_that_there_are() -> None:
    (rules,) = _documents("prometheus/alerts.yaml")
    alerts = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    dashboard = json.loads((DEPLOY / "grafana/registry.json").read_text())
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(alerts) >= 6
    assert len(panels) >= 10
    for expression in (*alerts, *panels):
        used = set(_METRIC.findall(expression))
        assert used
        assert used <= _known_metrics(), expression


def test_config_map_loads(tmp_path: Path) -> None:
    (config_map,) = _of_kind("ConfigMap")
    path = tmp_path / "server.toml"
    path.write_text(config_map["data"]["server.toml"])
    config = load_config(path, {})
    assert config.authentication.mode == "required"
    assert s3_settings(config.store).bucket == "maskwright"
    (deployment,) = _of_kind("Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > config.drain_seconds
    ports = {p["name"]: p["containerPort"] for p in pod["containers"][0]["ports"]}
    assert config.address.endswith(f":{ports['grpc']}")
    assert config.telemetry.metrics_address.endswith(f":{ports['metrics']}")
    limit = int(pod["containers"][0]["resources"]["limits"]["memory"].removesuffix("Gi")) << 30
    assert config.pool.children * config.pool.memory_bytes < limit


def test_commands_of_the_manifests_parse() -> None:
    (job,) = _of_kind("CronJob")
    (gc,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    (deployment,) = _of_kind("Deployment")
    (server,) = deployment["spec"]["template"]["spec"]["containers"]
    for command in (gc["command"] + gc["args"], server["readinessProbe"]["exec"]["command"]):
        assert command[0] == "maskwright"
        _parser().parse_args(command[1:])


def test_compose_environment_is_a_configuration() -> None:
    (compose,) = _documents("compose.yaml")
    for name in ("one", "two"):
        service = compose["services"][name]
        environment = {k: str(v) for k, v in service["environment"].items()}
        config = load_config(None, environment, address=service["command"][1])
        assert any(k.startswith(PREFIX) for k in environment)
        assert s3_settings(config.store).endpoint == "http://s3:4566"
        assert config.insecure


def test_everything_selects_the_same_pods() -> None:
    (deployment,) = _of_kind("Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    for kind in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
        (document,) = _of_kind(kind)
        spec = document["spec"]
        chosen = spec["selector"] if "selector" in spec else spec["podSelector"]
        assert chosen.get("matchLabels", chosen) == labels
    (scaler,) = _of_kind("HorizontalPodAutoscaler")
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
