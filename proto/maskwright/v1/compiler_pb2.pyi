from maskwright.v1 import status_pb2 as _status_pb2
from maskwright.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CompileRequest(_message.Message):
    __slots__ = ("source", "kind", "options", "tokenizer_fingerprint", "limits_profile", "validate_only", "request_id", "resources")
    class ResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_PROFILE_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    source: str
    kind: _types_pb2.SourceKind
    options: _types_pb2.CompileOptions
    tokenizer_fingerprint: str
    limits_profile: str
    validate_only: bool
    request_id: str
    resources: _containers.ScalarMap[str, str]
    def __init__(self, source: _Optional[str] = ..., kind: _Optional[_Union[_types_pb2.SourceKind, str]] = ..., options: _Optional[_Union[_types_pb2.CompileOptions, _Mapping]] = ..., tokenizer_fingerprint: _Optional[str] = ..., limits_profile: _Optional[str] = ..., validate_only: bool = ..., request_id: _Optional[str] = ..., resources: _Optional[_Mapping[str, str]] = ...) -> None: ...

class CompileResponse(_message.Message):
    __slots__ = ("info", "cached")
    INFO_FIELD_NUMBER: _ClassVar[int]
    CACHED_FIELD_NUMBER: _ClassVar[int]
    info: _types_pb2.ArtifactInfo
    cached: bool
    def __init__(self, info: _Optional[_Union[_types_pb2.ArtifactInfo, _Mapping]] = ..., cached: bool = ...) -> None: ...

class PrecompileRequest(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[CompileRequest]
    def __init__(self, items: _Optional[_Iterable[_Union[CompileRequest, _Mapping]]] = ...) -> None: ...

class PrecompileResponse(_message.Message):
    __slots__ = ("index", "done", "failed")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    index: int
    done: CompileResponse
    failed: _status_pb2.RpcStatus
    def __init__(self, index: _Optional[int] = ..., done: _Optional[_Union[CompileResponse, _Mapping]] = ..., failed: _Optional[_Union[_status_pb2.RpcStatus, _Mapping]] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("source", "kind", "options", "tokenizer_fingerprint", "limits_profile", "resources")
    class ResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_PROFILE_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    source: str
    kind: _types_pb2.SourceKind
    options: _types_pb2.CompileOptions
    tokenizer_fingerprint: str
    limits_profile: str
    resources: _containers.ScalarMap[str, str]
    def __init__(self, source: _Optional[str] = ..., kind: _Optional[_Union[_types_pb2.SourceKind, str]] = ..., options: _Optional[_Union[_types_pb2.CompileOptions, _Mapping]] = ..., tokenizer_fingerprint: _Optional[str] = ..., limits_profile: _Optional[str] = ..., resources: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("accepted", "info", "diagnostics")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    accepted: bool
    info: _types_pb2.ArtifactInfo
    diagnostics: _containers.RepeatedCompositeFieldContainer[_types_pb2.Diagnostic]
    def __init__(self, accepted: bool = ..., info: _Optional[_Union[_types_pb2.ArtifactInfo, _Mapping]] = ..., diagnostics: _Optional[_Iterable[_Union[_types_pb2.Diagnostic, _Mapping]]] = ...) -> None: ...

class GetCapabilitiesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetCapabilitiesResponse(_message.Message):
    __slots__ = ("server_version", "compiler_version", "kinds", "limits_profiles", "max_message_bytes", "max_tokenizer_bytes", "artifact_format_majors", "names", "signing_key_id")
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMPILER_VERSION_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_PROFILES_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENIZER_BYTES_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FORMAT_MAJORS_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    SIGNING_KEY_ID_FIELD_NUMBER: _ClassVar[int]
    server_version: str
    compiler_version: str
    kinds: _containers.RepeatedScalarFieldContainer[_types_pb2.SourceKind]
    limits_profiles: _containers.RepeatedCompositeFieldContainer[LimitsProfile]
    max_message_bytes: int
    max_tokenizer_bytes: int
    artifact_format_majors: _containers.RepeatedScalarFieldContainer[int]
    names: bool
    signing_key_id: str
    def __init__(self, server_version: _Optional[str] = ..., compiler_version: _Optional[str] = ..., kinds: _Optional[_Iterable[_Union[_types_pb2.SourceKind, str]]] = ..., limits_profiles: _Optional[_Iterable[_Union[LimitsProfile, _Mapping]]] = ..., max_message_bytes: _Optional[int] = ..., max_tokenizer_bytes: _Optional[int] = ..., artifact_format_majors: _Optional[_Iterable[int]] = ..., names: bool = ..., signing_key_id: _Optional[str] = ...) -> None: ...

class LimitsProfile(_message.Message):
    __slots__ = ("name", "limits")
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    name: str
    limits: _containers.ScalarMap[str, float]
    def __init__(self, name: _Optional[str] = ..., limits: _Optional[_Mapping[str, float]] = ...) -> None: ...
