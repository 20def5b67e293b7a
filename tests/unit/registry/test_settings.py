"""Configuration by file, environment and command line; stores by location; logs and metrics."""

from __future__ import annotations

import json
import logging
import socket
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from maskwright.registry.cli import main
from maskwright.registry.config import ServerConfig
from maskwright.registry.settings import ConfigError, load_config
from maskwright.registry.store import LocalStore
from maskwright.registry.store.locate import open_store, s3_settings, store_exists
from maskwright.registry.telemetry import JsonFormatter, Metrics

EXAMPLE = Path(__file__).parents[3] / "deploy" / "maskwright-server.toml"


def _file(folder: Path, text: str) -> Path:
    path = folder / "server.toml"
    path.write_text(text)
    return path


def test_the_example_is_read(tmp_path: Path) -> None:
    config = load_config(EXAMPLE, {})
    assert (config.pool.children, config.authentication.mode) == (2, "required")
    assert config.authentication.certificates[1].namespaces == ("payments", "support-*")
    assert config.profiles["batch"].states == 400_000
    assert set(config.profiles) == {"strict", "default", "large", "batch"}
    assert s3_settings(config.store).encryption == "AES256"


def test_command_line_before_environment_before_file(tmp_path: Path) -> None:
    path = _file(tmp_path, 'address = "127.0.0.1:1"\n[pool]\nchildren = 1\nqueue = 7\n')
    environment = {
        "MASKWRIGHT_SERVER_POOL__CHILDREN": "2",
        "MASKWRIGHT_SERVER_ADDRESS": "127.0.0.1:2",
        "MASKWRIGHT_SERVER_DRAIN_SECONDS": "1.5",
        "MASKWRIGHT_SERVER_INSECURE": "true",
        "MASKWRIGHT_CACHE": "/other/program",
    }
    config = load_config(path, environment, address="127.0.0.1:3", data=tmp_path, store=None)
    assert (config.address, config.pool.children, config.pool.queue) == ("127.0.0.1:3", 2, 7)
    assert (config.drain_seconds, config.insecure, config.data) == (1.5, True, tmp_path)
    assert load_config(None, {}) == ServerConfig()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("adress = 'x:1'", "adress"),
        ("[pool]\nchildren = 'many'", "pool.children"),
        ("[pool]\nchildren = true", "pool.children"),
        ("[pool]\nchildren = 1.5", "pool.children"),
        ("pool = 3", "pool"),
        ("drain_seconds = nan", "drain_seconds"),
        ("[quotas]\ncalls_per_second = inf", "quotas.calls_per_second"),
        ("[profiles.strict]\ncompile_seconds = 1" + "0" * 400, "profiles.strict.compile_seconds"),
        ("[profiles.strict]\nstaets = 3", "profiles.strict.staets"),
        ("profiles = 3", "profiles"),
        ("[tls]\nkey = 'k'", "tls.certificate"),
        ("[tls]\ncertificate = 'c'\nkey = 'k'\nrequire_client = true", "tls"),
        ("[authentication]\nmode = 'maybe'", "authentication.mode"),
        ("[authentication]\ncertificates = 'x'", "authentication.certificates"),
        ("[[authentication.certificates]]\nname = 'a'\nscopes = ['all']", "authentication.certificates[0]"),
        ("[telemetry]\nmetrics_address = 'x'", "telemetry"),
        ("[quotas]\ncalls_per_second = -1", "quotas"),
        ("insecure = 'perhaps'", "insecure"),
    ],
)
def test_faults_are_told_with_their_place(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(_file(tmp_path, text), {})
    assert caught.value.place == place
    assert str(caught.value).startswith(f"{place}: ")


@pytest.mark.parametrize("text", ["address = '0.0.0.0:1'", "chunk_bytes = 1", "follow_seconds = 0", "x ="])
def test_faults_of_the_whole(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        load_config(_file(tmp_path, text), {})


def test_check_config_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--config", str(EXAMPLE), "--check-config"]) == 0
    assert main(["serve", "--config", str(_file(tmp_path, "x = 1")), "--check-config"]) == 2
    assert main(["serve", "--config", str(tmp_path / "none"), "--check-config"]) == 3
    assert "x: isn't known" in capsys.readouterr().err


# -- stores by location -------------------------------------------------------------------------


def test_locations(tmp_path: Path) -> None:
    for location in (str(tmp_path / "a"), f"file:{tmp_path / 'a'}"):
        store = open_store(location)
        assert isinstance(store, LocalStore)
        assert store.root == tmp_path / "a"
    settings = s3_settings("s3://bucket/a/b?endpoint=http://x:1&attempts=2&read_seconds=1.5")
    assert (settings.bucket, settings.prefix, settings.endpoint) == ("bucket", "a/b/", "http://x:1")
    assert (settings.attempts, settings.read_seconds) == (2, 1.5)
    assert s3_settings("s3://bucket").prefix == ""


@pytest.mark.parametrize(
    "location",
    [
        "s3:///x",
        "s3://b?nope=1",
        "s3://b?prefix=x",
        "s3://key:secret@b",
        "s3://b?attempts=x",
        "s3://b?read_seconds=nan",
        "s3://b#f",
    ],
)
def test_malformed_locations(location: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        s3_settings(location)
    assert "secret" not in str(caught.value).replace("credentials", "")


def test_whether_a_store_is_there(tmp_path: Path) -> None:
    assert not store_exists(f"file:{tmp_path}")
    assert not store_exists(str(tmp_path / "none"))
    LocalStore(tmp_path / "store")
    assert store_exists(f"file:{tmp_path / 'store'}")
    assert store_exists("s3://bucket/prefix")


# -- telemetry ----------------------------------------------------------------------------------


def test_log_lines_are_json_with_known_fields() -> None:
    record = logging.LogRecord("n", logging.INFO, "f", 1, "call %s", ("x",), None)
    record.method, record.token = "M", "secret"
    line = JsonFormatter().format(record)
    fields = json.loads(line)
    assert (fields["message"], fields["method"], fields["level"]) == ("call x", "M", "INFO")
    assert "secret" not in line
    assert "\n" not in line


def test_metrics_are_served_and_stop() -> None:
    metrics = Metrics()
    metrics.calls.labels("A/B", "OK").inc()
    metrics.observe_report({"masks": 7, "artifact_bytes": 100, "largest_mask": 3, "kind": "x"})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    stop = metrics.serve(address)
    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
        text = answer.read().decode()
    assert 'maskwright_calls_total{code="OK",method="A/B"} 1.0' in text
    assert "maskwright_largest_mask_tokens 3.0" in text
    stop()
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://{address}/metrics")


def test_config_is_checked_again_when_changed() -> None:
    with pytest.raises(ValueError, match="isn't this host's own"):
        replace(ServerConfig(), address="10.0.0.1:1")
    assert replace(ServerConfig(), address="10.0.0.1:1", insecure=True).insecure
