from maskwright.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RegisterRequest(_message.Message):
    __slots__ = ("header", "data")
    class Header(_message.Message):
        __slots__ = ("digest", "name", "beside")
        DIGEST_FIELD_NUMBER: _ClassVar[int]
        NAME_FIELD_NUMBER: _ClassVar[int]
        BESIDE_FIELD_NUMBER: _ClassVar[int]
        digest: _types_pb2.Digest
        name: str
        beside: _containers.RepeatedCompositeFieldContainer[RegisterRequest.Companion]
        def __init__(self, digest: _Optional[_Union[_types_pb2.Digest, _Mapping]] = ..., name: _Optional[str] = ..., beside: _Optional[_Iterable[_Union[RegisterRequest.Companion, _Mapping]]] = ...) -> None: ...
    class Companion(_message.Message):
        __slots__ = ("name", "data")
        NAME_FIELD_NUMBER: _ClassVar[int]
        DATA_FIELD_NUMBER: _ClassVar[int]
        name: str
        data: bytes
        def __init__(self, name: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    header: RegisterRequest.Header
    data: bytes
    def __init__(self, header: _Optional[_Union[RegisterRequest.Header, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class RegisterResponse(_message.Message):
    __slots__ = ("tokenizer", "created")
    TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    tokenizer: _types_pb2.Tokenizer
    created: bool
    def __init__(self, tokenizer: _Optional[_Union[_types_pb2.Tokenizer, _Mapping]] = ..., created: bool = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("tokenizers", "next_page_token")
    TOKENIZERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tokenizers: _containers.RepeatedCompositeFieldContainer[_types_pb2.Tokenizer]
    next_page_token: str
    def __init__(self, tokenizers: _Optional[_Iterable[_Union[_types_pb2.Tokenizer, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
