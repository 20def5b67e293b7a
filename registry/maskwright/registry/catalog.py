"""Artifacts, refusals, tokenizers and request results, by name.

The store holds each as a record; the index holds the same fields as a row. A look-up asks the index, then
the store (another replica may have written it), and fills the index. A write goes to the store first.
Within the store the order is: blobs, then the record that names them, so whatever a record names is there.

    artifacts/<artifact key>          what a source compiled to
    artifact_keys/<artifact hash>     its key, for look-ups by digest
    refusals/<refusal key>            a source's own fault, with its diagnostics
    tokenizers/<fingerprint>          file and pack
    requests/<request id>             which artifact a request id got

Blocking; the service calls it in threads.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, TypeVar

from .content import ContentStore, Digest
from .faults import Reason, RegistryError
from .index import Index, Table
from .store import CorruptBlob

_ARTIFACT_KEYS = "artifact_keys"
_REINDEX_BATCH = 500
KEPT_JSON, MAX_KEPT_JSON = 1000, 64 << 10
"""Blobs with JSON that stay in memory, and the largest of them in bytes."""


@dataclass(frozen=True)
class TokenizerRecord:
    """`stop_token_ids` and `beside`, the companion files as (name, hash, size), are JSON texts."""

    fingerprint: str
    name: str
    vocab_size: int
    file_hash: str
    file_size: int
    pack_hash: str
    pack_size: int
    stop_token_ids: str
    logits_width: int
    beside: str

    @property
    def companions(self) -> list[tuple[str, Digest]]:
        return [(name, Digest(hash_, size)) for name, hash_, size in json.loads(self.beside)]

    @property
    def file(self) -> Digest:
        return Digest(self.file_hash, self.file_size)

    @property
    def pack(self) -> Digest:
        return Digest(self.pack_hash, self.pack_size)


@dataclass(frozen=True)
class ArtifactRecord:
    artifact_key: str
    source_hash: str
    kind: str
    options: str
    fingerprint: str
    compiler_version: str
    artifact_hash: str
    artifact_size: int
    pack_hash: str
    pack_size: int
    report_hash: str
    report_size: int

    @property
    def artifact(self) -> Digest:
        return Digest(self.artifact_hash, self.artifact_size)

    @property
    def pack(self) -> Digest:
        return Digest(self.pack_hash, self.pack_size)

    @property
    def report(self) -> Digest:
        return Digest(self.report_hash, self.report_size)


@dataclass(frozen=True)
class RefusalRecord:
    refusal_key: str
    artifact_key: str
    diagnostics_hash: str
    diagnostics_size: int

    @property
    def diagnostics(self) -> Digest:
        return Digest(self.diagnostics_hash, self.diagnostics_size)


@dataclass(frozen=True)
class RequestRecord:
    request_id: str
    request_hash: str
    artifact_key: str


_Record = TypeVar("_Record", TokenizerRecord, ArtifactRecord, RefusalRecord, RequestRecord)


class Catalog:
    """Look-ups and writes over one store and one index. Safe to share between threads."""

    def __init__(self, content: ContentStore, index: Index) -> None:
        self.content, self.index = content, index
        self._lock = threading.Lock()
        self._values: OrderedDict[str, Any] = OrderedDict()
        if index.is_new:
            self.reindex()

    def tokenizer(self, fingerprint: str) -> TokenizerRecord | None:
        return self._find(Table.TOKENIZERS, fingerprint, TokenizerRecord)

    def tokenizers(self, after: str, count: int) -> list[TokenizerRecord]:
        """At most `count` records after the fingerprint `after`, in order; always from the store."""
        records = (r for name, r in self.content.list_records(Table.TOKENIZERS) if name > after)
        return [_build(TokenizerRecord, Table.TOKENIZERS, r) for r in islice(records, count)]

    def add_tokenizer(self, record: TokenizerRecord) -> TokenizerRecord:
        """Keeps a record whose blobs are in the store; returns the one that's kept."""
        return self._add(Table.TOKENIZERS, record.fingerprint, record)

    def artifact(self, key: str) -> ArtifactRecord | None:
        return self._find(Table.ARTIFACTS, key, ArtifactRecord)

    def artifact_by_hash(self, hash_: str) -> ArtifactRecord | None:
        row = self.index.artifact_by_hash(hash_)
        if row is not None:
            return ArtifactRecord(**row)
        pointer = self.content.find_record(_ARTIFACT_KEYS, hash_)
        return None if pointer is None else self.artifact(str(pointer.get("artifact_key")))

    def add_artifact(self, record: ArtifactRecord) -> ArtifactRecord:
        """Keeps a record whose blobs are in the store; returns the first that was kept under its key."""
        pointer = {"artifact_key": record.artifact_key}
        self.content.put_record(_ARTIFACT_KEYS, record.artifact_hash, pointer)
        return self._add(Table.ARTIFACTS, record.artifact_key, record)

    def refusal(self, key: str) -> RefusalRecord | None:
        return self._find(Table.REFUSALS, key, RefusalRecord)

    def add_refusal(
        self, key: str, artifact_key: str, diagnostics: Sequence[dict[str, Any]]
    ) -> RefusalRecord:
        digest = self.put_json(list(diagnostics))
        return self._add(Table.REFUSALS, key, RefusalRecord(key, artifact_key, digest.hash, digest.size))

    def request(self, request_id: str) -> RequestRecord | None:
        return self._find(Table.REQUESTS, request_id, RequestRecord)

    def add_request(self, record: RequestRecord) -> RequestRecord:
        return self._add(Table.REQUESTS, record.request_id, record)

    def put_json(self, value: Any) -> Digest:
        return self.content.put(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())

    def get_json(self, digest: Digest) -> Any:
        """A blob's value, not to be changed. Small ones read lately are in memory: every hit asks for one."""
        with self._lock:
            if digest.hash in self._values:
                self._values.move_to_end(digest.hash)
                return self._values[digest.hash]
        value = json.loads(self.content.get(digest))
        if digest.size <= MAX_KEPT_JSON:
            with self._lock:
                self._values[digest.hash] = value
                while len(self._values) > KEPT_JSON:
                    self._values.popitem(last=False)
        return value

    def reindex(self) -> int:
        """Empties the index and fills it from the store; says how many rows. Damaged records are left out."""
        self.index.clear()
        return sum(self._reindex_table(table) for table in Table)

    def _reindex_table(self, table: Table) -> int:
        total = 0
        batch: list[dict[str, Any]] = []
        for row in self._whole_records(table):
            batch.append(row)
            if len(batch) == _REINDEX_BATCH:
                self.index.put(table, batch)
                total, batch = total + len(batch), []
        self.index.put(table, batch)
        return total + len(batch)

    def _whole_records(self, table: Table) -> Iterator[dict[str, Any]]:
        for key in self.content.store.list(f"{table}/"):
            try:
                record = self.content.find_record(table, key.removeprefix(f"{table}/"))
                if record is not None:
                    yield asdict(_build(_TYPES[table], table, record))
            except CorruptBlob:
                continue

    def _find(self, table: Table, key: str, kind: type[_Record]) -> _Record | None:
        row = self.index.get(table, key)
        if row is not None:
            return kind(**row)
        found = self.content.find_record(table, key)
        if found is None:
            return None
        record = _build(kind, table, found)
        self.index.put(table, [asdict(record)])
        return record

    def _add(self, table: Table, key: str, record: _Record) -> _Record:
        kept = _build(type(record), table, self.content.put_record(table, key, asdict(record)))
        self.index.put(table, [asdict(kept)])
        return kept


_TYPES: dict[Table, type[Any]] = {
    Table.TOKENIZERS: TokenizerRecord,
    Table.ARTIFACTS: ArtifactRecord,
    Table.REFUSALS: RefusalRecord,
    Table.REQUESTS: RequestRecord,
}


def _build(kind: type[_Record], table: Table, fields: dict[str, Any]) -> _Record:
    try:
        return kind(**fields)
    except TypeError as error:
        raise RegistryError(
            Reason.CORRUPT_BLOB, f"a record in {table} has other fields", {"table": str(table)}
        ) from error
