from maskwright.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NamedVersion(_message.Message):
    __slots__ = ("name", "version", "channel")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: int
    channel: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., channel: _Optional[str] = ...) -> None: ...

class ResolveRequest(_message.Message):
    __slots__ = ("artifact_key", "artifact_hash", "named", "readable_majors", "tokenizer_fingerprint", "min_revision")
    ARTIFACT_KEY_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_HASH_FIELD_NUMBER: _ClassVar[int]
    NAMED_FIELD_NUMBER: _ClassVar[int]
    READABLE_MAJORS_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    MIN_REVISION_FIELD_NUMBER: _ClassVar[int]
    artifact_key: str
    artifact_hash: str
    named: NamedVersion
    readable_majors: _containers.RepeatedScalarFieldContainer[int]
    tokenizer_fingerprint: str
    min_revision: int
    def __init__(self, artifact_key: _Optional[str] = ..., artifact_hash: _Optional[str] = ..., named: _Optional[_Union[NamedVersion, _Mapping]] = ..., readable_majors: _Optional[_Iterable[int]] = ..., tokenizer_fingerprint: _Optional[str] = ..., min_revision: _Optional[int] = ...) -> None: ...

class ResolveResponse(_message.Message):
    __slots__ = ("info", "format_major", "version", "revision")
    INFO_FIELD_NUMBER: _ClassVar[int]
    FORMAT_MAJOR_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    info: _types_pb2.ArtifactInfo
    format_major: int
    version: int
    revision: int
    def __init__(self, info: _Optional[_Union[_types_pb2.ArtifactInfo, _Mapping]] = ..., format_major: _Optional[int] = ..., version: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("digest", "offset")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    digest: _types_pb2.Digest
    offset: int
    def __init__(self, digest: _Optional[_Union[_types_pb2.Digest, _Mapping]] = ..., offset: _Optional[int] = ...) -> None: ...

class FetchResponse(_message.Message):
    __slots__ = ("digest", "offset", "data")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    digest: _types_pb2.Digest
    offset: int
    data: bytes
    def __init__(self, digest: _Optional[_Union[_types_pb2.Digest, _Mapping]] = ..., offset: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class VersionedArtifact(_message.Message):
    __slots__ = ("tokenizer_fingerprint", "artifact_key", "artifact")
    TOKENIZER_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_KEY_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    tokenizer_fingerprint: str
    artifact_key: str
    artifact: _types_pb2.Digest
    def __init__(self, tokenizer_fingerprint: _Optional[str] = ..., artifact_key: _Optional[str] = ..., artifact: _Optional[_Union[_types_pb2.Digest, _Mapping]] = ...) -> None: ...

class Version(_message.Message):
    __slots__ = ("name", "version", "artifacts", "note", "published_at", "published_by", "revision", "pinned", "channels", "revoked")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ARTIFACTS_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_AT_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_BY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: int
    artifacts: _containers.RepeatedCompositeFieldContainer[VersionedArtifact]
    note: str
    published_at: str
    published_by: str
    revision: int
    pinned: bool
    channels: _containers.RepeatedScalarFieldContainer[str]
    revoked: bool
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., artifacts: _Optional[_Iterable[_Union[VersionedArtifact, _Mapping]]] = ..., note: _Optional[str] = ..., published_at: _Optional[str] = ..., published_by: _Optional[str] = ..., revision: _Optional[int] = ..., pinned: bool = ..., channels: _Optional[_Iterable[str]] = ..., revoked: bool = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("revision", "kind", "name", "channel", "version", "artifact_hash", "reason", "at", "by", "versions")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Change.Kind]
        KIND_PUBLISH: _ClassVar[Change.Kind]
        KIND_PROMOTE: _ClassVar[Change.Kind]
        KIND_ROLLBACK: _ClassVar[Change.Kind]
        KIND_PIN: _ClassVar[Change.Kind]
        KIND_RETIRE: _ClassVar[Change.Kind]
        KIND_REVOKE: _ClassVar[Change.Kind]
        KIND_COLLECT: _ClassVar[Change.Kind]
    KIND_UNSPECIFIED: Change.Kind
    KIND_PUBLISH: Change.Kind
    KIND_PROMOTE: Change.Kind
    KIND_ROLLBACK: Change.Kind
    KIND_PIN: Change.Kind
    KIND_RETIRE: Change.Kind
    KIND_REVOKE: Change.Kind
    KIND_COLLECT: Change.Kind
    REVISION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_HASH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    revision: int
    kind: Change.Kind
    name: str
    channel: str
    version: int
    artifact_hash: str
    reason: str
    at: str
    by: str
    versions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, revision: _Optional[int] = ..., kind: _Optional[_Union[Change.Kind, str]] = ..., name: _Optional[str] = ..., channel: _Optional[str] = ..., version: _Optional[int] = ..., artifact_hash: _Optional[str] = ..., reason: _Optional[str] = ..., at: _Optional[str] = ..., by: _Optional[str] = ..., versions: _Optional[_Iterable[int]] = ...) -> None: ...

class PublishRequest(_message.Message):
    __slots__ = ("name", "artifact_keys", "note", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_KEYS_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    artifact_keys: _containers.RepeatedScalarFieldContainer[str]
    note: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., artifact_keys: _Optional[_Iterable[str]] = ..., note: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class PublishResponse(_message.Message):
    __slots__ = ("version", "revision")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    version: int
    revision: int
    def __init__(self, version: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class PromoteRequest(_message.Message):
    __slots__ = ("name", "channel", "version", "expected_version", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    channel: str
    version: int
    expected_version: int
    request_id: str
    def __init__(self, name: _Optional[str] = ..., channel: _Optional[str] = ..., version: _Optional[int] = ..., expected_version: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class PromoteResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class RollbackRequest(_message.Message):
    __slots__ = ("name", "channel", "to_version", "expected_version", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    TO_VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    channel: str
    to_version: int
    expected_version: int
    request_id: str
    def __init__(self, name: _Optional[str] = ..., channel: _Optional[str] = ..., to_version: _Optional[int] = ..., expected_version: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class RollbackResponse(_message.Message):
    __slots__ = ("version", "revision")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    version: int
    revision: int
    def __init__(self, version: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class PinRequest(_message.Message):
    __slots__ = ("name", "version", "pinned", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: int
    pinned: bool
    request_id: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., pinned: bool = ..., request_id: _Optional[str] = ...) -> None: ...

class PinResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class RetireRequest(_message.Message):
    __slots__ = ("name", "versions", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    versions: _containers.RepeatedScalarFieldContainer[int]
    request_id: str
    def __init__(self, name: _Optional[str] = ..., versions: _Optional[_Iterable[int]] = ..., request_id: _Optional[str] = ...) -> None: ...

class RetireResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class RevokeRequest(_message.Message):
    __slots__ = ("artifact_hash", "reason", "request_id")
    ARTIFACT_HASH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    artifact_hash: str
    reason: str
    request_id: str
    def __init__(self, artifact_hash: _Optional[str] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RevokeResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class ListNamesRequest(_message.Message):
    __slots__ = ("prefix", "page_size", "page_token")
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    page_size: int
    page_token: str
    def __init__(self, prefix: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListNamesResponse(_message.Message):
    __slots__ = ("names", "next_page_token")
    class Channel(_message.Message):
        __slots__ = ("channel", "version", "revision")
        CHANNEL_FIELD_NUMBER: _ClassVar[int]
        VERSION_FIELD_NUMBER: _ClassVar[int]
        REVISION_FIELD_NUMBER: _ClassVar[int]
        channel: str
        version: int
        revision: int
        def __init__(self, channel: _Optional[str] = ..., version: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...
    class Name(_message.Message):
        __slots__ = ("name", "latest_version", "channels")
        NAME_FIELD_NUMBER: _ClassVar[int]
        LATEST_VERSION_FIELD_NUMBER: _ClassVar[int]
        CHANNELS_FIELD_NUMBER: _ClassVar[int]
        name: str
        latest_version: int
        channels: _containers.RepeatedCompositeFieldContainer[ListNamesResponse.Channel]
        def __init__(self, name: _Optional[str] = ..., latest_version: _Optional[int] = ..., channels: _Optional[_Iterable[_Union[ListNamesResponse.Channel, _Mapping]]] = ...) -> None: ...
    NAMES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedCompositeFieldContainer[ListNamesResponse.Name]
    next_page_token: str
    def __init__(self, names: _Optional[_Iterable[_Union[ListNamesResponse.Name, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListVersionsRequest(_message.Message):
    __slots__ = ("name", "page_size", "page_token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    page_size: int
    page_token: str
    def __init__(self, name: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListVersionsResponse(_message.Message):
    __slots__ = ("versions", "next_page_token")
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[Version]
    next_page_token: str
    def __init__(self, versions: _Optional[_Iterable[_Union[Version, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("after_revision", "names")
    AFTER_REVISION_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    after_revision: int
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, after_revision: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("revision", "change")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    revision: int
    change: Change
    def __init__(self, revision: _Optional[int] = ..., change: _Optional[_Union[Change, _Mapping]] = ...) -> None: ...

class LeaseRequest(_message.Message):
    __slots__ = ("lease_id", "artifact_hashes", "seconds")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_HASHES_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    artifact_hashes: _containers.RepeatedScalarFieldContainer[str]
    seconds: int
    def __init__(self, lease_id: _Optional[str] = ..., artifact_hashes: _Optional[_Iterable[str]] = ..., seconds: _Optional[int] = ...) -> None: ...

class LeaseResponse(_message.Message):
    __slots__ = ("expires_at",)
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    expires_at: int
    def __init__(self, expires_at: _Optional[int] = ...) -> None: ...

class AddSignatureRequest(_message.Message):
    __slots__ = ("artifact_hash", "signature")
    ARTIFACT_HASH_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    artifact_hash: str
    signature: _types_pb2.Signature
    def __init__(self, artifact_hash: _Optional[str] = ..., signature: _Optional[_Union[_types_pb2.Signature, _Mapping]] = ...) -> None: ...

class AddSignatureResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetSignaturesRequest(_message.Message):
    __slots__ = ("artifact_hash", "key_ids")
    ARTIFACT_HASH_FIELD_NUMBER: _ClassVar[int]
    KEY_IDS_FIELD_NUMBER: _ClassVar[int]
    artifact_hash: str
    key_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, artifact_hash: _Optional[str] = ..., key_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class GetSignaturesResponse(_message.Message):
    __slots__ = ("signatures",)
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    signatures: _containers.RepeatedCompositeFieldContainer[_types_pb2.Signature]
    def __init__(self, signatures: _Optional[_Iterable[_Union[_types_pb2.Signature, _Mapping]]] = ...) -> None: ...
