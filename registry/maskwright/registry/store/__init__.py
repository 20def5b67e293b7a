"""Blob stores: bytes under keys, behind one interface."""

from .interface import (
    BlobInfo,
    BlobNotFound,
    BlobStore,
    BlobTooLarge,
    CorruptBlob,
    PreconditionFailed,
    StoreCapabilities,
    StoreError,
    StoreUnavailable,
    SwapUnsupported,
    check_key,
)
from .local import LocalStore

__all__ = [
    "BlobInfo",
    "BlobNotFound",
    "BlobStore",
    "BlobTooLarge",
    "CorruptBlob",
    "LocalStore",
    "PreconditionFailed",
    "StoreCapabilities",
    "StoreError",
    "StoreUnavailable",
    "SwapUnsupported",
    "check_key",
]
