"""The SQLite index: a cache of the blob store."""

from .database import Index, Row, Table
from .migrations import MIGRATIONS

__all__ = ["MIGRATIONS", "Index", "Row", "Table"]
