"""Does a lock file still tell what a manifest would compile to? Found without compiling."""

from __future__ import annotations

from maskwright.workers.client import Lock

from .manifest import Item, Manifest


def staleness(manifest: Manifest, lock: Lock, compiler_version: str = "") -> list[str]:
    """What differs, one line each; nothing where the lock holds. Without a compiler's version that isn't compared."""
    locked = {(a.name, a.tokenizer): a for a in lock.artifacts}
    found: list[str] = []
    hashes = {name: manifest.tokenizer_hash(name) for name in manifest.tokenizers}
    for item in manifest.items:
        known = locked.pop((item.name, item.tokenizer), None)
        place = f"{item.name} for {item.tokenizer}"
        if known is None:
            found.append(f"{place}: not in the lock")
            continue
        now = {**_inputs(item), "tokenizer_hash": hashes[item.tokenizer]}
        changed = [name for name, value in now.items() if getattr(known, name) != value]
        if changed:
            found.append(f"{place}: {', '.join(_WORDS[name] for name in changed)} changed")
    found += [f"{name} for {tokenizer}: not in the manifest any more" for name, tokenizer in locked]
    if compiler_version and lock.compiler_version != compiler_version:
        found.append(f"compiled by {lock.compiler_version}, and the compiler is {compiler_version}")
    return found


_WORDS = {"source_hash": "source", "kind": "kind", "options": "options", "tokenizer_hash": "tokenizer"}


def _inputs(item: Item) -> dict[str, str]:
    return {"source_hash": item.source_hash, "kind": item.kind, "options": item.options.canonical()}
