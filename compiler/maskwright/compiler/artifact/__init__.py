"""Artifact and pack files: FORMAT.md, the writer, and the compiler's reader of a pack's tables."""

from maskwright.compiler.artifact.reader import read_pack_tables
from maskwright.compiler.artifact.writer import (
    ArtifactMeta,
    PackMeta,
    VocabularyData,
    write_artifact,
    write_pack,
)

__all__ = ["ArtifactMeta", "PackMeta", "VocabularyData", "read_pack_tables", "write_artifact", "write_pack"]
