from maskwright.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ResolveRequest(_message.Message):
    __slots__ = ("artifact_key", "artifact_hash", "readable_majors")
    ARTIFACT_KEY_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_HASH_FIELD_NUMBER: _ClassVar[int]
    READABLE_MAJORS_FIELD_NUMBER: _ClassVar[int]
    artifact_key: str
    artifact_hash: str
    readable_majors: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, artifact_key: _Optional[str] = ..., artifact_hash: _Optional[str] = ..., readable_majors: _Optional[_Iterable[int]] = ...) -> None: ...

class ResolveResponse(_message.Message):
    __slots__ = ("info", "format_major")
    INFO_FIELD_NUMBER: _ClassVar[int]
    FORMAT_MAJOR_FIELD_NUMBER: _ClassVar[int]
    info: _types_pb2.ArtifactInfo
    format_major: int
    def __init__(self, info: _Optional[_Union[_types_pb2.ArtifactInfo, _Mapping]] = ..., format_major: _Optional[int] = ...) -> None: ...

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
