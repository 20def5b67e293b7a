"""The registry's client: compile remotely, fetch, verify, keep on disk, load.

    client = RegistryClient("127.0.0.1:7411")
    tokenizer = client.register_tokenizer("tokenizer.json")
    compiled = client.compile(schema, tokenizer.fingerprint)
    artifact = client.load_artifact(compiled.artifact.hash)

Needs grpcio and protobuf besides the worker's numpy. What's on disk is used without a call, so a worker
starts also when the registry is down. `AsyncRegistryClient` has the same calls for asyncio.

calls            what every call is made of: operations, retries; no input or output
compiling, fetching, names    the calls' steps, each written once
registry, async_registry      who performs them: a thread, an event loop (`transport`: what both hold)
follow           a channel's artifact, kept current
cache, lock, signing          what's on disk, what's pinned, whose word counts
messages, errors, download    between messages and plain values
"""

from maskwright.workers.client.async_registry import AsyncRegistryClient
from maskwright.workers.client.cache import DiskCache
from maskwright.workers.client.channel import Credentials
from maskwright.workers.client.errors import (
    ArtifactRevoked,
    ArtifactUntrusted,
    CallFailed,
    ClientError,
    CorruptDownload,
    ServiceUnavailable,
    SourceRefused,
)
from maskwright.workers.client.follow import ChannelFollower, Current
from maskwright.workers.client.lock import Lock, LockedArtifact, LockError, read_lock
from maskwright.workers.client.messages import BlobDigest, CompiledSource, RegisteredTokenizer
from maskwright.workers.client.names import Change, NamedArtifact, NamedVersion, NameSummary
from maskwright.workers.client.registry import RegistryClient
from maskwright.workers.client.signing import KeyFileError, Signature, SigningKey, TrustedKeys

__all__ = [
    "ArtifactRevoked",
    "ArtifactUntrusted",
    "AsyncRegistryClient",
    "BlobDigest",
    "CallFailed",
    "Change",
    "ChannelFollower",
    "ClientError",
    "CompiledSource",
    "CorruptDownload",
    "Credentials",
    "Current",
    "DiskCache",
    "KeyFileError",
    "Lock",
    "LockError",
    "LockedArtifact",
    "NameSummary",
    "NamedArtifact",
    "NamedVersion",
    "RegisteredTokenizer",
    "RegistryClient",
    "ServiceUnavailable",
    "Signature",
    "SigningKey",
    "SourceRefused",
    "TrustedKeys",
    "read_lock",
]
