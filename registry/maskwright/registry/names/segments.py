"""Full stretches of the journal as one object each, so that reading it anew doesn't take a request for every entry.

    segments/<20 digits of the last revision>    {"entries": [...]}, `LENGTH` of them: a record, written once

Whoever appends the last entry of a stretch writes its segment; one that died before leaves that to the next who reads
the stretch. A segment is a copy: the entries' own objects stay, since a replica that lags behind learns from the next
revision's object whether there is one, and would write over history if that were gone. A damaged segment is passed
over.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ..content import ContentStore, decode_record, encode_record
from ..store import BlobNotFound, BlobTooLarge, CorruptBlob, StoreError

TABLE = "segments"
LENGTH = 500
MAX_BYTES = 64 << 20
_log = logging.getLogger(__name__)


def begins_segment(revision: int) -> bool:
    return revision % LENGTH == 1


def ends_segment(revision: int) -> bool:
    return revision > 0 and revision % LENGTH == 0


def read_segment(content: ContentStore, first: int) -> list[dict[str, Any]] | None:
    """The entries' fields of the stretch that begins with a revision; None where there's no whole segment."""
    key = _key(first + LENGTH - 1)
    try:
        entries = decode_record(key, content.store.get(key, MAX_BYTES))["entries"]
    except BlobNotFound:
        return None
    except (CorruptBlob, BlobTooLarge, KeyError) as error:
        _log.warning("a segment of the journal is passed over: %s", error)
        return None
    return entries if len(entries) == LENGTH else None


def write_segment(content: ContentStore, entries: Sequence[dict[str, Any]]) -> None:
    """Keeps a full stretch; a failure only costs time later."""
    key = _key(int(entries[-1]["revision"]))
    data = encode_record({"entries": list(entries)})
    if len(data) > MAX_BYTES:
        return
    try:
        content.store.put_if_absent(key, data)
    except StoreError as error:
        _log.warning("a segment of the journal isn't written: %s", error)


def _key(last: int) -> str:
    return f"{TABLE}/{last:020d}"
