"""What the worker runtime raises: `ArtifactError` for bytes that can't be trusted, `WrongVocabulary` for a
pack that doesn't fit, `PackNotFound` for one that isn't there, `SnapshotError` for a snapshot that isn't one of
this artifact, `DeadEnd` where no token can be drawn.

Messages are rendered from fields; no caller needs to parse text.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class DeadEndCause(StrEnum):
    """Why no token can be drawn, as likely as the matcher can tell."""

    VOCABULARY_MISMATCH = "vocabulary mismatch"
    """The logits aren't over the artifact's vocabulary: legal tokens lie beyond them."""
    OUTSIDE_TRUNCATION = "outside truncation"
    """The mask has tokens, and something else (top-k, top-p, a bias) took them away before it was applied."""
    UNSUPPORTED = "unsupported"
    """The mask itself is empty: there's no stop token, a stop token is text that the grammar needs, or the
    artifact's tables are wrong.
    """


class PortableError(Exception):
    """An exception that keeps its type, fields and text between processes. pickle would call the constructor with
    `args`, which aren't its parameters where the text is made there.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), self.args, dict(self.__dict__))


def _revive(kind: type[PortableError], args: tuple[Any, ...], fields: dict[str, Any]) -> PortableError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class ArtifactError(PortableError):
    """A file, or a table in it, breaks the format. `section` is its part ("preamble", "header", "trailer", or
    a section's name), `offset` the byte in the file where that part begins, or None where there is no such
    place.
    """

    def __init__(self, section: str, offset: int | None, reason: str) -> None:
        self.section, self.offset, self.reason = section, offset, reason
        super().__init__(section, offset, reason)

    def __str__(self) -> str:
        place = "" if self.offset is None else f" at byte {self.offset}"
        return f"{self.section}{place}: {self.reason}"


class WrongVocabulary(ArtifactError):
    """The artifact was compiled for another vocabulary pack. `field` is "pack" or "vocabulary"; both values
    are hex digests.
    """

    def __init__(self, field: str, expected: str, found: str) -> None:
        self.field, self.expected, self.found = field, expected, found
        super().__init__("header", None, f"the artifact needs {field} {expected}, this one is {found}")


class PackNotFound(ArtifactError):
    """No file holds the pack that the artifact names. `digest` is the pack's, `searched` the paths that were
    tried.
    """

    def __init__(self, digest: str, searched: tuple[str, ...]) -> None:
        self.digest, self.searched = digest, searched
        super().__init__("header", None, f"pack {digest} isn't at {' or '.join(searched)}")


class TablesRefused(Exception):
    """An artifact's tables can't be laid out for a device. `reason` is "bytes" (they'd take more than the limit),
    "lazy" (contexts are made as they're met) or "returns" (chained returns have no bound, where loops must have one);
    `limit` and `observed` are numbers or None, `digest` the artifact's.
    """

    def __init__(self, reason: str, limit: int | None, observed: int | None, digest: str) -> None:
        self.reason, self.limit, self.observed, self.digest = reason, limit, observed, digest
        super().__init__(reason, limit, observed, digest)

    def __str__(self) -> str:
        why = {
            "bytes": f"its tables take {self.observed} bytes or more, the limit is {self.limit}",
            "lazy": "its contexts are made as they're met, so its tables are never complete",
            "returns": "no bound on chained returns is known, and loops of fixed length need one",
        }[self.reason]
        return f"artifact {self.digest}: {why}; follow it with Matcher"


class SnapshotError(Exception):
    """Bytes that aren't a snapshot, or one of another artifact, vocabulary or format version. `part` names what
    is wrong ("form", "checksum", "version", "artifact", "vocabulary", "stop tokens", "state", "history").
    """

    def __init__(self, part: str, reason: str) -> None:
        self.part, self.reason = part, reason
        super().__init__(part, reason)

    def __str__(self) -> str:
        return f"snapshot, {self.part}: {self.reason}"


class DeadEnd(Exception):
    """No token can be drawn. Not to be tried again: the same state gives the same mask.

    cause: a `DeadEndCause`. detail: what was found, for people. place: where the matcher stands (`Place`; its
    `expected` tells what the automaton takes). prefix: the steps accepted so far, tokens as int, texts of
    `accept_string` as bytes: keep it, it's all there is of the generation. text: the prefix's bytes.
    vocabulary: its fingerprint. artifact: its digest.
    """

    def __init__(
        self,
        cause: DeadEndCause,
        detail: str,
        place: Any,
        prefix: tuple[int | bytes, ...],
        text: bytes,
        vocabulary: str,
        artifact: str,
    ) -> None:
        self.cause, self.detail, self.place = cause, detail, place
        self.prefix, self.text, self.vocabulary, self.artifact = prefix, text, vocabulary, artifact
        super().__init__(cause, detail, place, prefix, text, vocabulary, artifact)

    def __str__(self) -> str:
        return (
            f"no token can be drawn after {len(self.prefix)} steps ({self.cause}): {self.detail}; "
            f"in {self.place.frame} from {self.place.pointer or 'the root'}, text ends in {self.text[-40:]!r}, "
            f"vocabulary {self.vocabulary}, artifact {self.artifact}"
        )
