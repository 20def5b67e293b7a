"""S3 services on loopback, started by the tests: ministack, and moto's server where it's installed."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import boto3

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test-secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


def free_port() -> int:
    """Not one that the system gives to whoever asks for any, since it's taken only later."""
    for port in random.Random().sample(range(10_000, 20_000), 100):
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


def moto_server() -> str | None:
    """The command of moto's server, if there is one."""
    return shutil.which("moto_server")


@contextmanager
def ministack(folder: Path) -> Iterator[str]:
    """Yields the endpoint. Answers to localhost and, for virtual-host style, <bucket>.localhost."""
    port = free_port()
    settings = {"SERVICES": "s3", "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "LOG_LEVEL": "ERROR"}
    script = "import sys; from ministack.app import main; sys.argv = ['ministack']; main()"
    with _running([sys.executable, "-c", script], settings, folder / "ministack.log"):
        yield _wait(f"http://localhost:{port}", "/_ministack/health")


@contextmanager
def moto(folder: Path) -> Iterator[str]:
    command, port = moto_server(), free_port()
    assert command is not None
    with _running([command, "-H", "127.0.0.1", "-p", str(port)], {}, folder / "moto.log"):
        yield _wait(f"http://localhost:{port}", "/moto-api/")


def make_bucket(endpoint: str, bucket: str) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test-secret",
    )
    client.create_bucket(Bucket=bucket)


@contextmanager
def _running(command: list[str], settings: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **settings})
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(endpoint: str, path: str) -> str:
    for _ in range(300):
        try:
            with urllib.request.urlopen(endpoint + path, timeout=2):
                return endpoint
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"no service at {endpoint}")
