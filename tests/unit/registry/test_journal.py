"""The journal, and what can be done to names."""

from __future__ import annotations

import hashlib
import itertools
import json
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.registry.catalog import ArtifactRecord, Catalog
from maskwright.registry.content import ContentStore
from maskwright.registry.faults import Reason, RegistryError
from maskwright.registry.index import Index
from maskwright.registry.names import Author, Changes, Entry, Journal, State
from maskwright.registry.names.journal import Decision
from maskwright.registry.store import CorruptBlob, LocalStore, StoreCapabilities, StoreUnavailable, SwapUnsupported

ANN = Author("ann")


class Replica:
    """A catalog, a journal and an index of its own over a shared store."""

    def __init__(self, folder: Path, name: str, skew: timedelta = timedelta()) -> None:
        self.content = ContentStore(LocalStore(folder / "store"))
        self.index = Index(folder / f"{name}.sqlite")
        self.catalog = Catalog(self.content, self.index)
        self.journal = Journal(self.content, self.index, lambda: datetime.now(UTC) + skew)
        self.changes = Changes(self.journal, self.catalog)

    def artifact(self, number: int, fingerprint: str = "f") -> ArtifactRecord:
        put = self.content.put
        artifact, pack, report = put(b"a%d%s" % (number, fingerprint.encode())), put(b"pack"), put(b"{}")
        key = hashlib.sha256(b"%d %s" % (number, fingerprint.encode())).hexdigest()
        sizes = (artifact.hash, artifact.size, pack.hash, pack.size, report.hash, report.size)
        return self.catalog.add_artifact(ArtifactRecord(key, "s", "regex", "{}", fingerprint, "1", *sizes))

    def publish(self, number: int = 1, name: str = "n", author: Author = ANN) -> int:
        entry = self.changes.publish(name, [self.artifact(number).artifact_key], "", author)
        return int(entry.fields["version"])

    def pointed(self, channel: str = "prod", name: str = "default/n") -> int:
        self.journal.catch_up()
        return self.journal.read(lambda s: s.names[name].channels[channel].version)


@pytest.fixture
def replica(tmp_path: Path) -> Callable[..., Replica]:
    return lambda name="one", **more: Replica(tmp_path, name, **more)


def _reason(call: Callable[[], object]) -> Reason:
    with pytest.raises(RegistryError) as caught:
        call()
    return caught.value.reason


# -- changes ------------------------------------------------------------------------------------


def test_versions_count_up_and_are_never_used_again(replica: Callable[..., Replica]) -> None:
    one = replica()
    assert [one.publish(n) for n in (1, 2, 2)] == [1, 2, 3]
    one.changes.retire("n", [3], ANN)
    assert one.publish(4) == 4
    assert one.publish(1, name="team/n") == 1


def test_promote_roll_back_and_roll_back_again(replica: Callable[..., Replica]) -> None:
    one = replica()
    for number in range(1, 5):
        one.publish(number)
        one.changes.promote("n", "prod", number, ANN)
    assert one.changes.rollback("n", "prod", ANN).fields["version"] == 3
    assert one.changes.rollback("n", "prod", ANN, to=1).fields["version"] == 1
    assert one.pointed() == 1
    assert _reason(lambda: one.changes.rollback("n", "prod", ANN)) is Reason.NO_EARLIER_VERSION
    assert _reason(lambda: one.changes.rollback("n", "beta", ANN)) is Reason.UNKNOWN_CHANNEL


def test_promote_from_what_was_expected(replica: Callable[..., Replica]) -> None:
    one = replica()
    for number in (1, 2, 3):
        one.publish(number)
    assert _reason(lambda: one.changes.promote("n", "prod", 1, ANN, expected=1)) is Reason.CHANNEL_MOVED
    one.changes.promote("n", "prod", 1, ANN, expected=0)
    one.changes.promote("n", "prod", 2, ANN, expected=1)
    assert _reason(lambda: one.changes.promote("n", "prod", 3, ANN, expected=1)) is Reason.CHANNEL_MOVED
    assert _reason(lambda: one.changes.promote("n", "prod", 9, ANN)) is Reason.UNKNOWN_VERSION
    assert _reason(lambda: one.changes.promote("m", "prod", 1, ANN)) is Reason.UNKNOWN_NAME


def test_revoked_artifacts_cant_be_named_and_are_rolled_over(replica: Callable[..., Replica]) -> None:
    one = replica()
    for number in (1, 2, 3):
        one.publish(number)
        one.changes.promote("n", "prod", number, ANN)
    bad = one.artifact(2)
    first = one.changes.revoke(bad.artifact_hash, "lets too much through", ANN)
    assert one.changes.revoke(bad.artifact_hash, "again", ANN) == first
    assert _reason(lambda: one.publish(2)) is Reason.REVOKED
    assert _reason(lambda: one.changes.promote("n", "beta", 2, ANN)) is Reason.REVOKED
    assert one.changes.rollback("n", "prod", ANN).fields["version"] == 1
    assert _reason(lambda: one.changes.revoke("0" * 64, "", ANN)) is Reason.UNKNOWN_ARTIFACT


def test_what_is_in_use_isnt_retired(replica: Callable[..., Replica]) -> None:
    one = replica()
    for number in range(1, 6):
        one.publish(number)
    for number in (1, 2, 3):
        one.changes.promote("n", "prod", number, ANN)
    one.changes.pin("n", 4, True, ANN)
    for used in (2, 3, 4):
        assert _reason(lambda v=used: one.changes.retire("n", [v], ANN)) is Reason.VERSION_IN_USE
    one.changes.pin("n", 4, False, ANN)
    one.changes.retire("n", [1, 4, 5], ANN)
    assert one.journal.read(lambda s: sorted(s.names["default/n"].versions)) == [2, 3]
    assert _reason(lambda: one.changes.retire("n", [1], ANN)) is Reason.UNKNOWN_VERSION


def test_a_version_holds_one_artifact_for_each_vocabulary(replica: Callable[..., Replica]) -> None:
    one = replica()
    keys = [one.artifact(1, f).artifact_key for f in ("f2", "f1")]
    entry = one.changes.publish("n", keys, "", ANN)
    assert [a["fingerprint"] for a in entry.fields["artifacts"]] == ["f1", "f2"]
    doubled = [one.artifact(n).artifact_key for n in (1, 2)]
    for wrong in ([], doubled, [keys[0]] * 65):
        assert _reason(lambda k=wrong: one.changes.publish("n", k, "", ANN)) is Reason.INVALID_REQUEST
    assert _reason(lambda: one.changes.publish("n", ["0" * 64], "", ANN)) is Reason.UNKNOWN_ARTIFACT


@pytest.mark.parametrize("name", ["", "A", "a/b/c", "../a", "a b", "-a", "a/", "/a", "ä"])
def test_malformed_names(replica: Callable[..., Replica], name: str) -> None:
    one = replica()
    assert _reason(lambda: one.publish(1, name)) is Reason.INVALID_REQUEST
    assert _reason(lambda: one.changes.promote("n", name, 1, ANN)) is Reason.INVALID_REQUEST


def test_request_id_does_a_change_once(replica: Callable[..., Replica]) -> None:
    one, two = replica("one"), replica("two")
    author = Author("ann", "r-1")
    assert one.publish(1, author=author) == two.publish(1, author=author) == one.publish(1, author=author) == 1
    assert _reason(lambda: two.publish(2, author=author)) is Reason.REQUEST_ID_REUSED
    assert _reason(lambda: two.changes.promote("n", "prod", 1, author)) is Reason.REQUEST_ID_REUSED
    two.changes.promote("n", "prod", 1, Author("ann", "r-2"))
    assert _reason(lambda: two.changes.rollback("n", "prod", Author("ann", "r-2"))) is Reason.REQUEST_ID_REUSED


# -- journal ------------------------------------------------------------------------------------


def test_replicas_that_race_agree_and_lose_nothing(replica: Callable[..., Replica]) -> None:
    replicas = [replica(f"r{n}") for n in range(4)]
    replicas[0].publish(1)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda r: [r.publish(1) for _ in range(5)], replicas))
    assert sorted(itertools.chain(*done)) == list(range(2, 22))

    def promote(one: Replica) -> int:
        won = 0
        for version in range(1, 6):
            try:
                one.changes.promote("n", "prod", version, ANN, expected=version - 1)
                won += 1
            except RegistryError as error:
                assert error.reason is Reason.CHANNEL_MOVED
        return won

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(promote, replicas)) == 5
    assert {r.pointed() for r in replicas} == {5}
    assert len({json.dumps([e.to_json() for e in r.journal.entries(0)]) for r in replicas}) == 1


def test_order_doesnt_depend_on_clocks(replica: Callable[..., Replica]) -> None:
    ahead, behind = replica("a", skew=timedelta(days=400)), replica("b", skew=timedelta(days=-400))
    for number, one in zip(range(1, 7), itertools.cycle((ahead, behind)), strict=False):
        assert one.publish(number) == number
        one.changes.promote("n", "prod", number, ANN)
    assert ahead.pointed() == behind.pointed() == 6
    assert behind.changes.rollback("n", "prod", ANN).fields["version"] == 5


def test_an_index_without_the_journal_is_filled_again(replica: Callable[..., Replica], tmp_path: Path) -> None:
    one = replica()
    for number in range(1, 41):
        one.publish(number)
    one.changes.promote("n", "prod", 40, ANN)
    fresh = replica("fresh")
    assert fresh.pointed() == 40
    again = Journal(fresh.content, fresh.index)
    assert again.read(lambda s: s.revision) == 41
    # A copy that isn't the store's isn't believed.
    forged = json.dumps({**one.journal.entries(40)[0].to_json(), "by": "eve"})
    with sqlite3.connect(tmp_path / "fresh.sqlite") as database:
        database.execute("UPDATE journal SET entry = ? WHERE revision = 41", [forged])
    other = Journal(fresh.content, fresh.index)
    assert other.read(lambda s: s.revision) == 0
    assert other.catch_up() == 41
    with sqlite3.connect(tmp_path / "fresh.sqlite") as database:
        database.execute("DELETE FROM journal WHERE revision = 7")
    other = Journal(fresh.content, fresh.index)
    assert other.read(lambda s: s.revision) == 0
    assert other.catch_up() == 41


def test_damage_in_the_journal_is_an_error(replica: Callable[..., Replica], tmp_path: Path) -> None:
    one = replica()
    one.publish(1)
    (place,) = (tmp_path / "store/objects/journal").iterdir()
    place.write_bytes(place.read_bytes().replace(b"ann", b"eve"))
    with pytest.raises(CorruptBlob):
        replica("fresh").journal.catch_up()
    assert one.journal.read(lambda s: s.names["default/n"].latest) == 1


def test_what_comes_before_damage_counts(replica: Callable[..., Replica], tmp_path: Path) -> None:
    one, behind = replica("one"), replica("behind")
    for number in range(1, 41):
        one.publish(number)
    place = tmp_path / f"store/objects/journal/{31:020d}"
    good = place.read_bytes()
    place.write_bytes(good[:-5])
    told = threading.Event()
    behind.journal.watch(told.set)
    with pytest.raises(CorruptBlob):
        behind.journal.catch_up()
    assert told.is_set()
    assert behind.journal.read(lambda s: (s.revision, s.names["default/n"].latest)) == (30, 30)
    # Nothing may be decided on a state that isn't the latest.
    with pytest.raises(CorruptBlob):
        behind.publish(41)
    place.write_bytes(good)
    assert behind.publish(41) == 41


def test_an_entry_that_doesnt_fit_is_an_error_and_not_the_end(
    replica: Callable[..., Replica], tmp_path: Path
) -> None:
    """Whole, but not what this release can apply: a channel of a name that there isn't."""
    one = replica()
    one.publish(1)
    wrong = Entry(2, "rollback", "", "eve", {"name": "default/m", "channel": "prod", "version": 1})
    one.content.create_record("journal", f"{2:020d}", wrong.to_json())
    for _ in range(2):
        with pytest.raises(RegistryError) as caught:
            one.journal.catch_up()
        assert (caught.value.reason, caught.value.metadata) == (Reason.CORRUPT_BLOB, {"revision": "2"})
    assert one.journal.read(lambda s: s.revision) == 1
    (tmp_path / f"store/objects/journal/{2:020d}").unlink()
    assert one.publish(2) == 2


def test_a_store_that_was_put_back_gets_no_entries_beyond_a_hole(
    replica: Callable[..., Replica], tmp_path: Path
) -> None:
    one = replica()
    for number in (1, 2, 3):
        one.publish(number)
    for lost in (2, 3):
        (tmp_path / f"store/objects/journal/{lost:020d}").unlink()
    assert _reason(lambda: one.publish(4)) is Reason.CORRUPT_BLOB
    restarted = replica()
    assert restarted.publish(4) == 2
    assert [e.revision for e in restarted.journal.history(0)] == [1, 2]


def test_a_store_without_swap_holds_no_names(
    replica: Callable[..., Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = replica()

    def unsupported(key: str, expected: str | None, data: bytes) -> str:
        raise SwapUnsupported(key)

    monkeypatch.setattr(one.content.store, "compare_and_swap", unsupported)
    monkeypatch.setattr(one.content.store, "capabilities", lambda: StoreCapabilities(True, False))
    with pytest.raises(SwapUnsupported):
        one.publish(1)


def test_names_are_read_while_the_store_hangs(replica: Callable[..., Replica], monkeypatch: pytest.MonkeyPatch) -> None:
    one = replica()
    one.publish(1)
    hanging, entered = threading.Event(), threading.Event()

    def hang(*arguments: object) -> bytes:
        entered.set()
        hanging.wait(10)
        raise StoreUnavailable("k", "hangs")

    monkeypatch.setattr(one.content.store, "get", hang)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(one.journal.catch_up)
        entered.wait(10)
        assert one.journal.read(lambda s: s.names["default/n"].latest) == 1
        hanging.set()
        with pytest.raises(StoreUnavailable):
            call.result()


def test_watchers_are_told(replica: Callable[..., Replica]) -> None:
    one, two, told = replica("one"), replica("two"), threading.Event()
    stop = two.journal.watch(told.set)
    one.publish(1)
    assert not told.is_set()
    two.journal.catch_up()
    assert told.is_set()
    stop()
    told.clear()
    two.publish(1)
    assert not told.is_set()


def test_entries_of_a_later_release_only_move_the_revision(replica: Callable[..., Replica]) -> None:
    one = replica()
    one.journal.change(lambda _: Decision("dance", {"steps": 3}), "ann")
    assert one.publish(1) == 1
    assert one.journal.read(lambda s: s.revision) == 2
    with pytest.raises(ValueError, match="doesn't follow"):
        State().apply(Entry(2, "publish", "", "", {}))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["promote", "rollback"]), st.integers(1, 5)), max_size=40))
def test_rollback_undoes_promotes(steps: list[tuple[str, int]]) -> None:
    """Against a list as a stack: a rollback goes to what's below the top."""
    state, stack = State(), []
    artifact = [{"fingerprint": "f", "artifact_key": "k", "artifact_hash": "h", "artifact_size": 1}]
    for version in range(1, 6):
        fields = {"name": "d/n", "version": version, "artifacts": artifact, "note": ""}
        state.apply(Entry(version, "publish", "", "", fields))
    for kind, version in steps:
        if kind == "promote":
            stack.append(version)
        elif len(stack) < 2:
            continue
        else:
            stack.pop()
        fields = {"name": "d/n", "channel": "prod", "version": stack[-1]}
        state.apply(Entry(state.revision + 1, kind, "", "", fields))
        channel = state.names["d/n"].channels["prod"]
        assert channel.version == stack[-1]
        assert list(channel.history) == stack[:-1][-16:]
        stack = [*channel.history, channel.version]
