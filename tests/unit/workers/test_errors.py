"""Errors keep their fields between processes: an engine's workers hand them to the one that serves requests."""

from __future__ import annotations

import copy
import pickle

import pytest
from compiled import regex

from maskwright.workers import ArtifactError, Matcher, PackNotFound, SnapshotError, WrongVocabulary
from maskwright.workers.adapters.sources import ArtifactNotFound
from maskwright.workers.client.errors import (
    ArtifactRevoked,
    ArtifactUntrusted,
    CorruptDownload,
    ServiceUnavailable,
    SourceRefused,
)
from maskwright.workers.errors import TablesRefused
from maskwright.workers.gate import CannotSettle, ParseError, Reason, SchemaNeeded, StoreError, WrongSchema
from maskwright.workers.gate.errors import MissingDependency
from maskwright.workers.sampler import TruncatedBeforeMask

ERRORS = [
    ArtifactError("rows", 7, "wrong"),
    WrongVocabulary("pack", "aa", "bb"),
    PackNotFound("aa", ("x", "y")),
    SnapshotError("form", "short"),
    TablesRefused("bytes", 1, 2, "aa"),
    Matcher(regex("ab")).report_empty(5),
    TruncatedBeforeMask(3, 1),
    ArtifactNotFound("regex", "aa", "folder"),
    WrongSchema("aa", "bb"),
    SchemaNeeded("aa"),
    MissingDependency("package", "extra"),
    StoreError("file", "full"),
    CannotSettle("scope", "key", "done"),
    ParseError(Reason("odd", offset=3)),
    CorruptDownload("aa", "bb"),
    ArtifactRevoked("aa", "leaked"),
    ArtifactUntrusted("aa", ("k",), ("w",)),
    SourceRefused("INVALID_ARGUMENT", "no", "R", {"a": "b"}, [{"code": "X"}], 2, "cc", 1.5),
    ServiceUnavailable("UNAVAILABLE", "gone"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_an_error_survives_a_process(error: Exception) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(again) is type(error) and str(again) == str(error)
        assert vars(again) == vars(error) and again.args == error.args
