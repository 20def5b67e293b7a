"""The index's schema as an ordered list of steps; `PRAGMA user_version` counts those applied.

A step is never edited once released: a change is a new step, and gets a test.
"""

from __future__ import annotations

MIGRATIONS: list[list[str]] = [
    [
        """CREATE TABLE tokenizers (
            fingerprint TEXT PRIMARY KEY, name TEXT NOT NULL, vocab_size INTEGER NOT NULL,
            file_hash TEXT NOT NULL, file_size INTEGER NOT NULL,
            pack_hash TEXT NOT NULL, pack_size INTEGER NOT NULL,
            stop_token_ids TEXT NOT NULL, logits_width INTEGER NOT NULL, beside TEXT NOT NULL)""",
        """CREATE TABLE artifacts (
            artifact_key TEXT PRIMARY KEY,
            source_hash TEXT NOT NULL, kind TEXT NOT NULL, options TEXT NOT NULL,
            fingerprint TEXT NOT NULL, compiler_version TEXT NOT NULL,
            artifact_hash TEXT NOT NULL, artifact_size INTEGER NOT NULL,
            pack_hash TEXT NOT NULL, pack_size INTEGER NOT NULL,
            report_hash TEXT NOT NULL, report_size INTEGER NOT NULL)""",
        "CREATE INDEX artifacts_by_hash ON artifacts (artifact_hash)",
        "CREATE INDEX artifacts_by_source ON artifacts (source_hash, fingerprint)",
        """CREATE TABLE refusals (
            refusal_key TEXT PRIMARY KEY, artifact_key TEXT NOT NULL,
            diagnostics_hash TEXT NOT NULL, diagnostics_size INTEGER NOT NULL)""",
        """CREATE TABLE requests (
            request_id TEXT PRIMARY KEY, request_hash TEXT NOT NULL, artifact_key TEXT NOT NULL)""",
        "CREATE TABLE usage (artifact_hash TEXT PRIMARY KEY, fetches INTEGER NOT NULL DEFAULT 0)",
    ],
    ["CREATE TABLE journal (revision INTEGER PRIMARY KEY, entry TEXT NOT NULL)"],
    [
        # The copy without request ids is dropped: the journal is read again from the store.
        "DROP TABLE journal",
        "CREATE TABLE journal (revision INTEGER PRIMARY KEY, request_id TEXT NOT NULL, entry TEXT NOT NULL)",
        "CREATE INDEX journal_by_request ON journal (revision) WHERE request_id != ''",
        "CREATE TABLE fold (revision INTEGER NOT NULL)",
        "CREATE TABLE names (name TEXT PRIMARY KEY, latest INTEGER NOT NULL)",
        """CREATE TABLE versions (
            name TEXT NOT NULL, version INTEGER NOT NULL, artifacts TEXT NOT NULL, note TEXT NOT NULL,
            at TEXT NOT NULL, by TEXT NOT NULL, revision INTEGER NOT NULL, pinned INTEGER NOT NULL,
            PRIMARY KEY (name, version))""",
        """CREATE TABLE channels (
            name TEXT NOT NULL, channel TEXT NOT NULL, version INTEGER NOT NULL, revision INTEGER NOT NULL,
            history TEXT NOT NULL, PRIMARY KEY (name, channel))""",
        "CREATE TABLE revocations (artifact_hash TEXT PRIMARY KEY, revision INTEGER NOT NULL)",
        """CREATE TABLE tokens (
            id TEXT PRIMARY KEY, token_hash TEXT NOT NULL, scopes TEXT NOT NULL, namespaces TEXT NOT NULL,
            caller TEXT NOT NULL, expires REAL)""",
        "CREATE TABLE collecting (artifact_key TEXT PRIMARY KEY)",
    ],
    # Rows without a seal count as damaged, and are filled again from the store.
    [
        f"ALTER TABLE {table} ADD COLUMN seal TEXT NOT NULL DEFAULT ''"
        for table in (
            "tokenizers",
            "artifacts",
            "refusals",
            "requests",
            "journal",
            "fold",
            "names",
            "versions",
            "channels",
            "revocations",
            "tokens",
            "collecting",
        )
    ],
]
