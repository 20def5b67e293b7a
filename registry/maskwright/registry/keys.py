"""Names of what the registry keeps, as digests that every replica computes alike.

- A *source hash* is over the text; for a JSON source that parses, over the text without insignificant white
  space, with key order, numbers and string escapes as written. Where the caller supplies other schemas that
  references may name, they're in it too, each under its URI.
- An *artifact key* is over (source hash, kind, options, vocabulary fingerprint, compiler version).
- A *refusal key* is over (artifact key, limits): limits only decide whether a compilation is refused.
- A *request hash* is over everything that a request id promises to be the same.

Fields are joined as compact JSON with sorted keys, under a tag, so that no two inputs share an encoding.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict

from maskwright.compiler.options import Limits

_STRING_OR_SPACE = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|[ \t\r\n]+')


def source_hash(kind: str, source: str, resources: Mapping[str, str] | None = None) -> str:
    """Hash of a source of `kind` ("json_schema", "regex", "lark", "gbnf", "tools"). Costs one JSON parse for JSON."""
    if resources:
        supplied = {uri: source_hash(kind, text) for uri, text in resources.items()}
        return _hash("supplied", [source_hash(kind, source), supplied])
    if kind in ("json_schema", "tools") and _is_json(source):
        return _hash("json", _STRING_OR_SPACE.sub(r"\1", source))
    return _hash("text", source)


def artifact_key(source: str, kind: str, options: str, fingerprint: str, compiler_version: str) -> str:
    """`source` is a source hash, `options` the canonical form."""
    return _hash(
        "artifact",
        {
            "source": source,
            "kind": kind,
            "options": options,
            "fingerprint": fingerprint,
            "compiler": compiler_version,
        },
    )


def refusal_key(artifact: str, limits: Limits) -> str:
    return _hash("refusal", {"artifact": artifact, "limits": asdict(limits)})


def request_hash(source: str, kind: str, fingerprint: str, asked: Mapping[str, object]) -> str:
    """`asked`: what else the caller said, as it said it. Neither the compiler's version nor defaults are in it: a retry
    gets the first result also after an upgrade that adds options or limits."""
    return _hash("request", {"source": source, "kind": kind, "fingerprint": fingerprint, "asked": asked})


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _hash(tag: str, value: object) -> str:
    encoded = json.dumps([tag, value], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(encoded.encode()).hexdigest()
