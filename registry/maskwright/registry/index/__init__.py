"""The SQLite index: a cache of the blob store."""

from .database import FOLD_KEYS, Fold, Index, Row, Table
from .migrations import MIGRATIONS

__all__ = ["FOLD_KEYS", "MIGRATIONS", "Fold", "Index", "Row", "Table"]
