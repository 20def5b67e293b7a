"""The page's files, read once from the package, and the headers that every answer carries.

A path is looked up among the names that ship, so no path can lead out of them. The page itself may run only
scripts of its own origin, and no strings as code. Ajv compiles schemas to functions, which needs exactly that, so it
runs in a worker whose own policy allows it: the worker has no document, and may connect nowhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

from .http import Request, Response

PREFIX = "/lab"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_WORKER_POLICY = "default-src 'none'; script-src 'self' 'unsafe-eval'"
WORKER = "ajv-worker.js"
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Site:
    """Answers GET and HEAD for the page and its files."""

    def __init__(self) -> None:
        self._files = {f"{PREFIX}/{name}": _file(name, data) for name, data in _read(files(__package__) / "static")}
        self._files[PREFIX] = self._files[f"{PREFIX}/"] = self._files[f"{PREFIX}/index.html"]

    def answer(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(b"", 405, headers={**HEADERS, "Allow": "GET, HEAD"})
        if request.path == "/":
            return Response(b"", 302, headers={**HEADERS, "Location": PREFIX})
        found = self._files.get(request.path)
        if found is None:
            return Response(b"nothing is here\n", 404, headers=HEADERS)
        if request.headers.get("if-none-match") == found.headers["ETag"]:
            return Response(b"", 304, found.content_type, found.headers)
        return found


def _read(folder: Traversable, before: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _read(entry, f"{before}{entry.name}/")
        elif entry.name.endswith(tuple(_TYPES)):
            yield before + entry.name, entry.read_bytes()


def _file(name: str, data: bytes) -> Response:
    policy = _WORKER_POLICY if name == WORKER else _PAGE_POLICY
    headers = {
        **HEADERS,
        "Content-Security-Policy": policy,
        "ETag": f'"{hashlib.sha256(data).hexdigest()[:32]}"',
        "Cache-Control": "no-cache",
    }
    return Response(data, 200, _TYPES["." + name.rpartition(".")[2]], headers)
