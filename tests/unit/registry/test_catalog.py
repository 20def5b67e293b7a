"""Content addressing, records, the index and the catalog."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from dataclasses import asdict
from pathlib import Path

import pytest

from maskwright.registry.catalog import ArtifactRecord, Catalog, RequestRecord, TokenizerRecord
from maskwright.registry.content import ContentStore, Digest, blob_key
from maskwright.registry.faults import Reason, RegistryError
from maskwright.registry.hot_blobs import HotBlobs
from maskwright.registry.index import FOLD_KEYS, MIGRATIONS, Index, Table
from maskwright.registry.index.database import migrate
from maskwright.registry.store import BlobNotFound, CorruptBlob, LocalStore


@pytest.fixture
def content(tmp_path: Path) -> ContentStore:
    return ContentStore(LocalStore(tmp_path / "store"))


@pytest.fixture
def catalog(content: ContentStore, tmp_path: Path) -> Catalog:
    return Catalog(content, Index(tmp_path / "index.sqlite"))


def _artifact(content: ContentStore, number: int) -> ArtifactRecord:
    artifact, pack, report = content.put(b"a%d" % number), content.put(b"pack"), content.put(b"{}")
    return ArtifactRecord(
        artifact_key=hashlib.sha256(b"%d" % number).hexdigest(),
        source_hash="s",
        kind="regex",
        options="{}",
        fingerprint="f",
        compiler_version="1",
        artifact_hash=artifact.hash,
        artifact_size=artifact.size,
        pack_hash=pack.hash,
        pack_size=pack.size,
        report_hash=report.hash,
        report_size=report.size,
    )


def _tokenizer(content: ContentStore) -> TokenizerRecord:
    file = content.put(b"file")
    return TokenizerRecord("fp", "t.json", 7, file.hash, file.size, file.hash, file.size, "[1]", 8, "[]")


# -- content ------------------------------------------------------------------------------------------------


def test_put_is_idempotent_and_repairs(content: ContentStore, tmp_path: Path) -> None:
    digest = content.put(b"bytes")
    assert content.put(b"bytes") == digest == content.find(digest.hash)
    path = tmp_path / "store/objects" / blob_key(digest.hash)
    path.write_bytes(b"byteZ")
    with pytest.raises(CorruptBlob):
        content.get(digest)
    content.put(b"bytes")
    assert content.get(digest) == b"bytes"


def test_wrong_size_is_corrupt(content: ContentStore) -> None:
    digest = content.put(b"bytes")
    with pytest.raises(CorruptBlob):
        content.get(Digest(digest.hash, 4))


@pytest.mark.parametrize("hash_", ["", "abc", "A" * 64, "../" + "0" * 61])
def test_what_isnt_a_digest(hash_: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        Digest(hash_, 1)
    with pytest.raises(ValueError, match="not a"):
        blob_key(hash_)


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 20, 95])
@pytest.mark.parametrize("offset", [0, 1, 9, 10, 19])
def test_chunks_join_to_the_rest(content: ContentStore, size: int, offset: int) -> None:
    data = bytes(range(size))
    parts = list(content.chunks(content.put(data), min(offset, size), 10))
    assert b"".join(part for _, part in parts) == data[offset:]
    assert all(len(part) <= 10 for _, part in parts)


def test_chunks_of_a_corrupt_blob_never_end_well(content: ContentStore, tmp_path: Path) -> None:
    data = bytes(95)
    digest = content.put(data)
    for position in (0, 50, 94):
        path = tmp_path / "store/objects" / blob_key(digest.hash)
        path.write_bytes(data[:position] + b"!" + data[position + 1 :])
        received = []
        with pytest.raises(CorruptBlob):
            for _, part in content.chunks(digest, 0, 10):
                received.append(part)
        assert len(b"".join(received)) < len(data)


def test_first_record_wins(content: ContentStore) -> None:
    assert content.put_record("t", "n", {"v": 1}) == {"v": 1}
    assert content.put_record("t", "n", {"v": 2}) == {"v": 1}
    assert list(content.list_records("t")) == [("n", {"v": 1})]


@pytest.mark.parametrize(
    "damage", [b"", b"{", b'{"record":{"v":1}}', b"[]", b'{"record":{"v":2},"sha256":"0"}']
)
def test_damaged_record_is_an_error(content: ContentStore, tmp_path: Path, damage: bytes) -> None:
    content.put_record("t", "n", {"v": 1})
    (tmp_path / "store/objects/t/n").write_bytes(damage)
    with pytest.raises(CorruptBlob):
        content.get_record("t", "n")


def test_any_flipped_bit_of_a_record_is_noticed(content: ContentStore, tmp_path: Path) -> None:
    record = {"v": "text", "n": 12}
    content.put_record("t", "n", record)
    path = tmp_path / "store/objects/t/n"
    whole = path.read_bytes()
    for position in range(len(whole)):
        for bit in range(8):
            path.write_bytes(whole[:position] + bytes((whole[position] ^ 1 << bit,)) + whole[position + 1 :])
            with pytest.raises(CorruptBlob):
                content.get_record("t", "n")


# -- index --------------------------------------------------------------------------------------------------


def test_migrations_from_every_version_end_alike(tmp_path: Path) -> None:
    def schema(start: int) -> list[tuple[str, str]]:
        connection = sqlite3.connect(":memory:")
        for step in MIGRATIONS[:start]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {start}")
        connection.commit()
        migrate(connection)
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        return rows.fetchall()

    assert len({tuple(schema(start)) for start in range(len(MIGRATIONS) + 1)}) == 1


def test_first_migration_makes_the_tables_that_mirror_the_store() -> None:
    connection = sqlite3.connect(":memory:")
    migrate(connection)
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {str(t) for t in Table} | {"usage"} <= names


def test_failed_step_leaves_the_version_before(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = sqlite3.connect(":memory:")
    migrate(connection)
    monkeypatch.setattr(
        "maskwright.registry.index.database.MIGRATIONS",
        [*MIGRATIONS, ["CREATE TABLE extra (a)", "CREATE TABLE extra (a)"]],
    )
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
    assert connection.execute("SELECT * FROM sqlite_master WHERE name = 'extra'").fetchone() is None


def test_second_migration_adds_the_journal_and_keeps_rows() -> None:
    connection = sqlite3.connect(":memory:")
    for statement in MIGRATIONS[0]:
        connection.execute(statement)
    connection.execute("INSERT INTO requests VALUES ('r', 'h', 'k')")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    for statement in MIGRATIONS[1]:
        connection.execute(statement)
    connection.execute("INSERT INTO journal VALUES (1, '{}')")
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute("INSERT INTO journal VALUES (1, '{}')")
    kept = connection.execute("SELECT request_id, request_hash, artifact_key FROM requests").fetchall()
    assert kept == [("r", "h", "k")]


def test_fourth_migration_seals_rows_and_believes_none_without(tmp_path: Path, content: ContentStore) -> None:
    connection = sqlite3.connect(tmp_path / "index.sqlite")
    for step in MIGRATIONS[:3]:
        for statement in step:
            connection.execute(statement)
    connection.execute("INSERT INTO requests VALUES ('r', 'h', 'k')")
    connection.execute("INSERT INTO fold VALUES (7)")
    connection.execute("PRAGMA user_version = 3")
    connection.commit()
    connection.close()
    index = Index(tmp_path / "index.sqlite")
    assert index.get(Table.REQUESTS, "r") is None
    assert index.fold(10) is None
    index.put(Table.REQUESTS, [{"request_id": "r", "request_hash": "h", "artifact_key": "k"}])
    assert index.get(Table.REQUESTS, "r") == {"request_id": "r", "request_hash": "h", "artifact_key": "k"}


def test_third_migration_adds_the_journals_state_and_drops_the_copy_without_it() -> None:
    connection = sqlite3.connect(":memory:")
    for statement in [*MIGRATIONS[0], *MIGRATIONS[1]]:
        connection.execute(statement)
    connection.execute("INSERT INTO requests VALUES ('r', 'h', 'k')")
    connection.execute("INSERT INTO journal VALUES (1, '{}')")
    connection.execute("PRAGMA user_version = 2")
    connection.commit()
    migrate(connection)
    kept = connection.execute("SELECT request_id, request_hash, artifact_key FROM requests").fetchall()
    assert kept == [("r", "h", "k")]
    for table in ("journal", "fold", *FOLD_KEYS):
        assert connection.execute(f"SELECT * FROM {table}").fetchall() == []


def test_racing_openers_migrate_once(tmp_path: Path) -> None:
    faults: list[BaseException] = []

    def open_() -> None:
        try:
            Index(tmp_path / "i.sqlite").close()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=open_) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert not (tmp_path / "i.sqlite.damaged").exists()


def test_later_schema_is_set_aside(tmp_path: Path) -> None:
    Index(tmp_path / "i.sqlite").close()
    connection = sqlite3.connect(tmp_path / "i.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    index = Index(tmp_path / "i.sqlite")
    assert index.is_new
    assert (tmp_path / "i.sqlite.damaged").exists()


def test_closed_or_broken_index_is_a_miss(catalog: Catalog, content: ContentStore) -> None:
    record = catalog.add_artifact(_artifact(content, 1))
    catalog.index._database.conn.execute("DROP TABLE artifacts")
    assert catalog.artifact(record.artifact_key) == record
    assert catalog.artifact_by_hash(record.artifact_hash) == record
    assert catalog.add_artifact(_artifact(content, 2)).artifact_size == 2


def test_usage_counts(catalog: Catalog) -> None:
    for _ in range(3):
        catalog.index.count_fetches({"h": 2, "i": 1})
    assert list(catalog.index._database.query("SELECT * FROM usage ORDER BY 1")) == [
        {"artifact_hash": "h", "fetches": 6},
        {"artifact_hash": "i", "fetches": 3},
    ]


def test_hot_blobs_stay_within_their_bound(content: ContentStore, tmp_path: Path) -> None:
    hot = HotBlobs(content, 250)
    digests = [content.put(bytes([n]) * 100) for n in range(3)]
    for digest in digests[:2]:
        hot.read(digest)
    assert hot.find(digests[0].hash) == bytes(100)
    hot.read(digests[2])
    assert [hot.find(d.hash) is not None for d in digests] == [True, False, True]
    large = content.put(bytes(300))
    assert hot.read(large) == bytes(300)
    assert hot.find(large.hash) is None
    hot.forget(digests[0].hash)
    assert hot.find(digests[0].hash) is None
    (tmp_path / "store/objects" / blob_key(digests[1].hash)).write_bytes(b"?" * 100)
    with pytest.raises(CorruptBlob):
        hot.read(digests[1])
    assert hot.find(digests[1].hash) is None


# -- catalog ------------------------------------------------------------------------------------------------


def test_every_record_survives_an_empty_index(
    content: ContentStore, catalog: Catalog, tmp_path: Path
) -> None:
    artifact = catalog.add_artifact(_artifact(content, 1))
    tokenizer = catalog.add_tokenizer(_tokenizer(content))
    refusal = catalog.add_refusal("b" * 64, "a" * 64, [{"code": "X", "message": "m"}])
    request = catalog.add_request(RequestRecord("id", "h", artifact.artifact_key))
    other = Catalog(content, Index(tmp_path / "other.sqlite"))
    assert other.index.get(Table.ARTIFACTS, artifact.artifact_key) == asdict(artifact)
    other.index.clear()
    assert other.artifact_by_hash(artifact.artifact_hash) == artifact
    assert other.tokenizer("fp") == tokenizer
    assert other.refusal("b" * 64) == refusal
    assert other.request("id") == request
    assert other.get_json(refusal.diagnostics) == [{"code": "X", "message": "m"}]
    assert other.reindex() == 4


def test_reindex_leaves_out_damaged_records(content: ContentStore, catalog: Catalog, tmp_path: Path) -> None:
    kept, lost = (catalog.add_artifact(_artifact(content, n)) for n in (1, 2))
    (tmp_path / "store/objects/artifacts" / lost.artifact_key).write_bytes(b"?")
    assert catalog.reindex() == 1
    assert catalog.artifact(kept.artifact_key) == kept
    with pytest.raises(CorruptBlob):
        catalog.artifact(lost.artifact_key)


def test_record_with_other_fields_is_corrupt(content: ContentStore, catalog: Catalog) -> None:
    content.put_record("artifacts", "c" * 64, {"unknown": 1})
    with pytest.raises(RegistryError) as caught:
        catalog.artifact("c" * 64)
    assert caught.value.reason is Reason.CORRUPT_BLOB


def test_missing_things(catalog: Catalog, content: ContentStore) -> None:
    assert catalog.artifact("d" * 64) is None
    assert catalog.artifact_by_hash("d" * 64) is None
    with pytest.raises(BlobNotFound):
        content.get_record("artifacts", "d" * 64)
