"""Checks what's in this folder statically, with the linters of each kind of file (`pip install '.[deploy]'`).

    Dockerfiles            hadolint
    YAML                   yamllint
    Kubernetes manifests   kubernetes-validate, against the schemas of `KUBERNETES`
    compose, workflows     check-jsonschema, against the published schemas that it ships
    PromQL                 promql-parser, every expression of the alerts and the dashboard

Nothing here runs a container, a cluster, a Prometheus or a workflow.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import yaml

HERE = Path(__file__).parent
KUBERNETES = "1.31"
YAML_RULES = json.dumps(
    {
        "extends": "default",
        "rules": {
            "line-length": {"max": 150},
            "document-start": "disable",
            "truthy": {"check-keys": False},  # a workflow's "on"
            "comments": {"min-spaces-from-content": 1},
        },
    }
)
COMMANDS = (
    ["hadolint", *sorted(map(str, HERE.glob("*.Dockerfile")))],
    ["yamllint", "--strict", "-d", YAML_RULES, str(HERE)],
    ["kubernetes-validate", "-k", KUBERNETES, "--strict", str(HERE / "kubernetes" / "registry.yaml")],
    ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(HERE / "compose.yaml")],
    ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", str(HERE / "github-actions.yaml")],
)


def expressions() -> Iterator[tuple[str, str]]:
    """(place, PromQL) of every alert and every panel."""
    rules = yaml.safe_load((HERE / "prometheus" / "alerts.yaml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield f"alert {rule['alert']}", rule["expr"]
    dashboard = json.loads((HERE / "grafana" / "registry.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield f"panel {panel['title']}", target["expr"]


def check_expressions() -> list[str]:
    faults = []
    for place, text in expressions():
        try:
            promql_parser.parse(text.replace("$__rate_interval", "5m"))
        except ValueError as error:
            faults.append(f"{place}: {error}")
    return faults


def main() -> int:
    failed: list[Any] = check_expressions()
    for command in COMMANDS:
        done = subprocess.run(
            [str(Path(sys.executable).with_name(command[0])), *command[1:]], capture_output=True, text=True
        )
        if done.returncode:
            failed.append(f"{command[0]}:\n{done.stdout}{done.stderr}")
    for fault in failed:
        sys.stderr.write(f"{fault}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
