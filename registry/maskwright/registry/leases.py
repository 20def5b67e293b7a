"""Leases: artifacts that a caller wants kept for a while, though no name may hold them.

    leases/<caller's digest>/<lease id>    {"hashes": [...], "until": Unix seconds}, swapped at each renewal

Times are by the clocks of the servers that wrote them; garbage collection, by the store's, allows for `SKEW` seconds.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

from .content import ContentStore

TABLE = "leases"
SKEW = 600.0


def put_lease(content: ContentStore, caller: str, lease_id: str, hashes: Sequence[str], seconds: int) -> int:
    """Begins or renews a lease; returns until when. Raises SwapUnsupported, StoreUnavailable."""
    until = int(time.time()) + seconds
    owner = hashlib.sha256(caller.encode()).hexdigest()[:16]
    content.swap_record(TABLE, f"{owner}/{lease_id}", lambda _: {"hashes": sorted(set(hashes)), "until": until})
    return until


def leased_hashes(content: ContentStore, now: float) -> set[str]:
    """Hashes of artifacts under a lease that's live `now`; leases that ended long ago are removed."""
    held: set[str] = set()
    for name, lease in content.list_records(TABLE):
        if lease["until"] + SKEW > now:
            held.update(lease["hashes"])
        else:
            content.store.delete(f"{TABLE}/{name}")
    return held
