"""The worker runtime: load an artifact, follow a sequence, mask its logits. Needs numpy and nothing else.

    pack = VocabularyPack.load("llama.mwpack")
    artifact = Artifact.load("refund.mwa", pack)
    matcher = Matcher(artifact)
    mask = allocate_token_bitmask(1, artifact.vocab_size)
    matcher.fill_next_token_bitmask(mask)
    apply_token_bitmask_inplace(logits, mask)
    matcher.accept_token(token)

The client that fetches artifacts from a registry is `maskwright.workers.client`; it's imported on demand,
since it needs gRPC.
"""

from maskwright.workers.artifact import Artifact
from maskwright.workers.batch import BatchMatcher
from maskwright.workers.errors import (
    ArtifactError,
    DeadEnd,
    DeadEndCause,
    PackNotFound,
    SnapshotError,
    WrongVocabulary,
)
from maskwright.workers.explain import Explanation, Place
from maskwright.workers.masks import allocate_token_bitmask, apply_token_bitmask_inplace
from maskwright.workers.matcher import Matcher
from maskwright.workers.pack import VocabularyPack

__all__ = [
    "Artifact",
    "ArtifactError",
    "BatchMatcher",
    "DeadEnd",
    "DeadEndCause",
    "Explanation",
    "Matcher",
    "PackNotFound",
    "Place",
    "SnapshotError",
    "VocabularyPack",
    "WrongVocabulary",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
]
