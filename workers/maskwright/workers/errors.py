"""What the worker runtime raises: `ArtifactError` for bytes that can't be trusted, `WrongVocabulary` for a
pack that doesn't fit, `PackNotFound` for one that isn't there.

Messages are rendered from fields; no caller needs to parse text.
"""

from __future__ import annotations


class ArtifactError(Exception):
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
