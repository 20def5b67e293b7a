"""Compiling a manifest: every source for every tokenizer, through a server or here, into a lock file."""

from .backends import Backend, LocalBackend, Outcome, PreparedTokenizer, ServerBackend
from .manifest import Item, Manifest, ManifestError, load_manifest
from .staleness import staleness

__all__ = [
    "Backend",
    "Item",
    "LocalBackend",
    "Manifest",
    "ManifestError",
    "Outcome",
    "PreparedTokenizer",
    "ServerBackend",
    "load_manifest",
    "staleness",
]
