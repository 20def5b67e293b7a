from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SourceKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SOURCE_KIND_UNSPECIFIED: _ClassVar[SourceKind]
    SOURCE_KIND_JSON_SCHEMA: _ClassVar[SourceKind]
    SOURCE_KIND_REGEX: _ClassVar[SourceKind]
    SOURCE_KIND_LARK: _ClassVar[SourceKind]
    SOURCE_KIND_GBNF: _ClassVar[SourceKind]
    SOURCE_KIND_TOOLS: _ClassVar[SourceKind]

class Severity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEVERITY_UNSPECIFIED: _ClassVar[Severity]
    SEVERITY_ERROR: _ClassVar[Severity]
    SEVERITY_WARNING: _ClassVar[Severity]
    SEVERITY_NOTE: _ClassVar[Severity]
SOURCE_KIND_UNSPECIFIED: SourceKind
SOURCE_KIND_JSON_SCHEMA: SourceKind
SOURCE_KIND_REGEX: SourceKind
SOURCE_KIND_LARK: SourceKind
SOURCE_KIND_GBNF: SourceKind
SOURCE_KIND_TOOLS: SourceKind
SEVERITY_UNSPECIFIED: Severity
SEVERITY_ERROR: Severity
SEVERITY_WARNING: Severity
SEVERITY_NOTE: Severity

class Digest(_message.Message):
    __slots__ = ("hash", "size_bytes")
    HASH_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    hash: str
    size_bytes: int
    def __init__(self, hash: _Optional[str] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class Span(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class Diagnostic(_message.Message):
    __slots__ = ("code", "severity", "message", "source", "pointer", "span", "detail", "hint")
    CODE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    POINTER_FIELD_NUMBER: _ClassVar[int]
    SPAN_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    code: str
    severity: Severity
    message: str
    source: str
    pointer: str
    span: Span
    detail: _struct_pb2.Struct
    hint: str
    def __init__(self, code: _Optional[str] = ..., severity: _Optional[_Union[Severity, str]] = ..., message: _Optional[str] = ..., source: _Optional[str] = ..., pointer: _Optional[str] = ..., span: _Optional[_Union[Span, _Mapping]] = ..., detail: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., hint: _Optional[str] = ...) -> None: ...

class DiagnosticList(_message.Message):
    __slots__ = ("diagnostics", "omitted", "all")
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    OMITTED_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    diagnostics: _containers.RepeatedCompositeFieldContainer[Diagnostic]
    omitted: int
    all: Digest
    def __init__(self, diagnostics: _Optional[_Iterable[_Union[Diagnostic, _Mapping]]] = ..., omitted: _Optional[int] = ..., all: _Optional[_Union[Digest, _Mapping]] = ...) -> None: ...

class CompileOptions(_message.Message):
    __slots__ = ("whitespace", "indent", "max_whitespace", "property_order", "residual", "regex_dialect", "formats", "max_nesting", "grammar_start", "grammar_fallback", "grammar_strict", "default_max_length", "default_max_items", "default_max_digits", "draft")
    class Whitespace(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        WHITESPACE_UNSPECIFIED: _ClassVar[CompileOptions.Whitespace]
        WHITESPACE_FLEXIBLE: _ClassVar[CompileOptions.Whitespace]
        WHITESPACE_COMPACT: _ClassVar[CompileOptions.Whitespace]
        WHITESPACE_INDENT: _ClassVar[CompileOptions.Whitespace]
    WHITESPACE_UNSPECIFIED: CompileOptions.Whitespace
    WHITESPACE_FLEXIBLE: CompileOptions.Whitespace
    WHITESPACE_COMPACT: CompileOptions.Whitespace
    WHITESPACE_INDENT: CompileOptions.Whitespace
    class PropertyOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PROPERTY_ORDER_UNSPECIFIED: _ClassVar[CompileOptions.PropertyOrder]
        PROPERTY_ORDER_DECLARED: _ClassVar[CompileOptions.PropertyOrder]
        PROPERTY_ORDER_ANY: _ClassVar[CompileOptions.PropertyOrder]
    PROPERTY_ORDER_UNSPECIFIED: CompileOptions.PropertyOrder
    PROPERTY_ORDER_DECLARED: CompileOptions.PropertyOrder
    PROPERTY_ORDER_ANY: CompileOptions.PropertyOrder
    class Residual(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        RESIDUAL_UNSPECIFIED: _ClassVar[CompileOptions.Residual]
        RESIDUAL_REFUSE: _ClassVar[CompileOptions.Residual]
        RESIDUAL_ALLOW: _ClassVar[CompileOptions.Residual]
    RESIDUAL_UNSPECIFIED: CompileOptions.Residual
    RESIDUAL_REFUSE: CompileOptions.Residual
    RESIDUAL_ALLOW: CompileOptions.Residual
    class RegexDialect(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        REGEX_DIALECT_UNSPECIFIED: _ClassVar[CompileOptions.RegexDialect]
        REGEX_DIALECT_ECMA262: _ClassVar[CompileOptions.RegexDialect]
        REGEX_DIALECT_PYTHON: _ClassVar[CompileOptions.RegexDialect]
    REGEX_DIALECT_UNSPECIFIED: CompileOptions.RegexDialect
    REGEX_DIALECT_ECMA262: CompileOptions.RegexDialect
    REGEX_DIALECT_PYTHON: CompileOptions.RegexDialect
    class Formats(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        FORMATS_UNSPECIFIED: _ClassVar[CompileOptions.Formats]
        FORMATS_ENFORCE: _ClassVar[CompileOptions.Formats]
        FORMATS_ANNOTATE: _ClassVar[CompileOptions.Formats]
    FORMATS_UNSPECIFIED: CompileOptions.Formats
    FORMATS_ENFORCE: CompileOptions.Formats
    FORMATS_ANNOTATE: CompileOptions.Formats
    class GrammarFallback(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        GRAMMAR_FALLBACK_UNSPECIFIED: _ClassVar[CompileOptions.GrammarFallback]
        GRAMMAR_FALLBACK_REFUSE: _ClassVar[CompileOptions.GrammarFallback]
        GRAMMAR_FALLBACK_COMMIT: _ClassVar[CompileOptions.GrammarFallback]
    GRAMMAR_FALLBACK_UNSPECIFIED: CompileOptions.GrammarFallback
    GRAMMAR_FALLBACK_REFUSE: CompileOptions.GrammarFallback
    GRAMMAR_FALLBACK_COMMIT: CompileOptions.GrammarFallback
    class Draft(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DRAFT_UNSPECIFIED: _ClassVar[CompileOptions.Draft]
        DRAFT_2020_12: _ClassVar[CompileOptions.Draft]
        DRAFT_2019_09: _ClassVar[CompileOptions.Draft]
        DRAFT_7: _ClassVar[CompileOptions.Draft]
        DRAFT_6: _ClassVar[CompileOptions.Draft]
        DRAFT_4: _ClassVar[CompileOptions.Draft]
    DRAFT_UNSPECIFIED: CompileOptions.Draft
    DRAFT_2020_12: CompileOptions.Draft
    DRAFT_2019_09: CompileOptions.Draft
    DRAFT_7: CompileOptions.Draft
    DRAFT_6: CompileOptions.Draft
    DRAFT_4: CompileOptions.Draft
    WHITESPACE_FIELD_NUMBER: _ClassVar[int]
    INDENT_FIELD_NUMBER: _ClassVar[int]
    MAX_WHITESPACE_FIELD_NUMBER: _ClassVar[int]
    PROPERTY_ORDER_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_FIELD_NUMBER: _ClassVar[int]
    REGEX_DIALECT_FIELD_NUMBER: _ClassVar[int]
    FORMATS_FIELD_NUMBER: _ClassVar[int]
    MAX_NESTING_FIELD_NUMBER: _ClassVar[int]
    GRAMMAR_START_FIELD_NUMBER: _ClassVar[int]
    GRAMMAR_FALLBACK_FIELD_NUMBER: _ClassVar[int]
    GRAMMAR_STRICT_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_MAX_LENGTH_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_MAX_ITEMS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_MAX_DIGITS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    whitespace: CompileOptions.Whitespace
    indent: int
    max_whitespace: int
    property_order: CompileOptions.PropertyOrder
    residual: CompileOptions.Residual
    regex_dialect: CompileOptions.RegexDialect
    formats: CompileOptions.Formats
    max_nesting: int
    grammar_start: str
    grammar_fallback: CompileOptions.GrammarFallback
    grammar_strict: bool
    default_max_length: int
    default_max_items: int
    default_max_digits: int
    draft: CompileOptions.Draft
    def __init__(self, whitespace: _Optional[_Union[CompileOptions.Whitespace, str]] = ..., indent: _Optional[int] = ..., max_whitespace: _Optional[int] = ..., property_order: _Optional[_Union[CompileOptions.PropertyOrder, str]] = ..., residual: _Optional[_Union[CompileOptions.Residual, str]] = ..., regex_dialect: _Optional[_Union[CompileOptions.RegexDialect, str]] = ..., formats: _Optional[_Union[CompileOptions.Formats, str]] = ..., max_nesting: _Optional[int] = ..., grammar_start: _Optional[str] = ..., grammar_fallback: _Optional[_Union[CompileOptions.GrammarFallback, str]] = ..., grammar_strict: bool = ..., default_max_length: _Optional[int] = ..., default_max_items: _Optional[int] = ..., default_max_digits: _Optional[int] = ..., draft: _Optional[_Union[CompileOptions.Draft, str]] = ...) -> None: ...

class Tokenizer(_message.Message):
    __slots__ = ("fingerprint", "name", "vocab_size", "file", "pack", "stop_token_ids", "logits_width")
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VOCAB_SIZE_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    PACK_FIELD_NUMBER: _ClassVar[int]
    STOP_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    LOGITS_WIDTH_FIELD_NUMBER: _ClassVar[int]
    fingerprint: str
    name: str
    vocab_size: int
    file: Digest
    pack: Digest
    stop_token_ids: _containers.RepeatedScalarFieldContainer[int]
    logits_width: int
    def __init__(self, fingerprint: _Optional[str] = ..., name: _Optional[str] = ..., vocab_size: _Optional[int] = ..., file: _Optional[_Union[Digest, _Mapping]] = ..., pack: _Optional[_Union[Digest, _Mapping]] = ..., stop_token_ids: _Optional[_Iterable[int]] = ..., logits_width: _Optional[int] = ...) -> None: ...

class ArtifactInfo(_message.Message):
    __slots__ = ("artifact_key", "artifact", "pack", "tokenizer_fingerprint", "compiler_version", "kind", "source_hash", "report")
    ARTIFACT_KEY_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    PACK_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    COMPILER_VERSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SOURCE_HASH_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    artifact_key: str
    artifact: Digest
    pack: Digest
    tokenizer_fingerprint: str
    compiler_version: str
    kind: SourceKind
    source_hash: str
    report: _struct_pb2.Struct
    def __init__(self, artifact_key: _Optional[str] = ..., artifact: _Optional[_Union[Digest, _Mapping]] = ..., pack: _Optional[_Union[Digest, _Mapping]] = ..., tokenizer_fingerprint: _Optional[str] = ..., compiler_version: _Optional[str] = ..., kind: _Optional[_Union[SourceKind, str]] = ..., source_hash: _Optional[str] = ..., report: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class Signature(_message.Message):
    __slots__ = ("key_id", "public_key", "signature")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    public_key: bytes
    signature: bytes
    def __init__(self, key_id: _Optional[str] = ..., public_key: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...
