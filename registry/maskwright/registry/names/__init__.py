"""Names, versions, channels and revocations: a journal of changes, folded into a state."""

from .changes import Author, Changes
from .journal import Journal
from .state import (
    NAME,
    Artifact,
    Channel,
    Entry,
    Name,
    State,
    Token,
    Version,
    check_channel,
    check_name,
    namespace_of,
)

__all__ = [
    "NAME",
    "Artifact",
    "Author",
    "Changes",
    "Channel",
    "Entry",
    "Journal",
    "Name",
    "State",
    "Token",
    "Version",
    "check_channel",
    "check_name",
    "namespace_of",
]
