"""A blob store in one bucket of any S3-compatible service, through boto3.

    <prefix><key>                  visible blobs
    <prefix>probe/<random>         written and removed by the capability check

Put-if-absent is `If-None-Match: *`, compare-and-swap is `If-Match: <etag>`. Whether the service honours them is
tried when the store is opened, also between racing writers (`s3_probe`). Where If-None-Match isn't honoured a
put looks first and then writes: racing writers may then both write, which is harmless for content-addressed
blobs, and `capabilities()` says so. Where If-Match isn't honoured compare_and_swap raises SwapUnsupported.

Every write carries a random token in its metadata. A conditional write that's refused after its first try may
have been refused because of that very try, whose answer got lost; the token tells.

Writes carry their MD5 and SHA-256. An answer whose etag is the MD5 of what was sent proves that it arrived; an
etag isn't always an MD5 (SSE-KMS), so otherwise what was written is read back, and written over where it's
damaged. Reads are tried again when the connection breaks or the body fails its checksum.

Blobs longer than `multipart_bytes` go up in parts and appear when the upload is completed; an upload that fails
is aborted, and what a killed process leaves needs the bucket's lifecycle rule (AbortIncompleteMultipartUpload).

Doesn't handle: versioned reads, requester-pays buckets, SSE-C.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    FlexibleChecksumError,
    IncompleteReadError,
    ResponseStreamingError,
)
from urllib3.exceptions import HTTPError

from .interface import (
    BlobInfo,
    BlobNotFound,
    BlobTooLarge,
    CorruptBlob,
    PreconditionFailed,
    StoreCapabilities,
    StoreError,
    StoreUnavailable,
    SwapUnsupported,
    check_key,
)
from .s3_probe import RequestRefused, probe

_Result = TypeVar("_Result")
MIN_PART = 5 << 20
TOKEN = "maskwright-writer"
_MISSING = {"NoSuchKey", "404", "NotFound"}
_REFUSED = {"PreconditionFailed", "412"}
_CONFLICT = {"ConditionalRequestConflict", "OperationAborted", "409"}
_BAD_DIGEST = {"BadDigest", "InvalidDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch"}


@dataclass(frozen=True)
class S3Settings:
    """Where the bucket is and how to talk to it. Credentials come by AWS's usual chain, never from here.

    prefix: before every key, "" or ending in "/". endpoint: URL; "" is AWS's for the region. addressing: where
    the bucket's name goes, into the host or the path. checksums: "sha256", or "md5" for services that refuse the
    newer headers. encryption: "" (the bucket's own), "AES256" or "aws:kms", with `kms_key`. ca_bundle: file of
    certificates to trust instead of the usual ones. Seconds and attempts are of one request.
    """

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""
    addressing: Literal["auto", "path", "virtual"] = "auto"
    checksums: Literal["sha256", "md5"] = "sha256"
    encryption: Literal["", "AES256", "aws:kms"] = ""
    kms_key: str = ""
    ca_bundle: str = ""
    multipart_bytes: int = 16 << 20
    connect_seconds: float = 5.0
    read_seconds: float = 30.0
    attempts: int = 4

    def __post_init__(self) -> None:
        if not self.bucket:
            raise ValueError("bucket is missing")
        if self.prefix and not self.prefix.endswith("/"):
            raise ValueError(f"prefix must end in '/', not {self.prefix!r}")
        if self.multipart_bytes < MIN_PART:
            raise ValueError(f"multipart_bytes must be at least {MIN_PART}, not {self.multipart_bytes}")
        if self.kms_key and self.encryption != "aws:kms":
            raise ValueError("kms_key needs encryption 'aws:kms'")
        if self.attempts < 1 or self.connect_seconds <= 0 or self.read_seconds <= 0:
            raise ValueError("attempts, connect_seconds and read_seconds must be positive")


class S3Store:
    """A `BlobStore` in a bucket that exists. Safe to share between threads and processes.

    Opening it costs the capability check, about forty small requests, unless `capabilities` are given.
    Raises StoreUnavailable.
    """

    def __init__(self, settings: S3Settings, capabilities: StoreCapabilities | None = None) -> None:
        self.settings = settings
        self._client = _client(settings)
        self._capabilities = capabilities or StoreCapabilities(put_if_absent=True, compare_and_swap=True)
        if capabilities is None:
            self._capabilities = probe(self)

    def capabilities(self) -> StoreCapabilities:
        return self._capabilities

    def put_if_absent(self, key: str, data: bytes) -> bool:
        check_key(key)
        if not self._capabilities.put_if_absent:
            if self._find(key) is not None:
                return False
            self._write(key, data, {})
            return True
        return self._write(key, data, {"IfNoneMatch": "*"}) is not None

    def compare_and_swap(self, key: str, expected: str | None, data: bytes) -> str:
        check_key(key)
        if not self._capabilities.compare_and_swap:
            raise SwapUnsupported(key)
        condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
        etag = self._write(key, data, condition)
        if etag is None:
            found = self._find(key)
            raise PreconditionFailed(key, expected, None if found is None else found["ETag"])
        return etag

    def get(self, key: str, max_bytes: int | None = None) -> bytes:
        return self.get_tagged(key, max_bytes)[0]

    def get_tagged(self, key: str, max_bytes: int | None = None) -> tuple[bytes, str]:
        place = self._place(key)

        def read() -> tuple[bytes, str]:
            answer = self._client.get_object(**place, ChecksumMode="ENABLED")
            with closing(answer["Body"]) as body:
                if max_bytes is not None and answer["ContentLength"] > max_bytes:
                    raise BlobTooLarge(key, answer["ContentLength"], max_bytes)
                return _read_all(body, answer["ContentLength"]), answer["ETag"]

        return self._try(key, read)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        place, wanted = self._place(key), f"bytes={start}-{start + length - 1}"

        def read() -> bytes:
            answer = self._client.get_object(**place, Range=wanted)
            with closing(answer["Body"]) as body:
                return _read_all(body, answer["ContentLength"])[:length]

        try:
            return self._try(key, read) if length > 0 else b""
        except _PastEnd:
            return b""

    def head(self, key: str) -> BlobInfo:
        found = self._find(key)
        if found is None:
            raise BlobNotFound(key)
        return BlobInfo(key, found["ContentLength"], found["ETag"], found["LastModified"].timestamp())

    def size(self, key: str) -> int:
        return self.head(key).size

    def list(self, prefix: str) -> Iterator[str]:
        arguments = {"Bucket": self.settings.bucket, "Prefix": self.settings.prefix + prefix}
        while True:
            page = self._try(prefix, partial(self._client.list_objects_v2, **arguments))
            for item in page.get("Contents", ()):
                yield item["Key"].removeprefix(self.settings.prefix)
            arguments["ContinuationToken"] = page.get("NextContinuationToken", "")
            if not arguments["ContinuationToken"]:
                return

    def delete(self, key: str) -> bool:
        if self._find(key) is None:
            return False
        place = self._place(key)
        self._try(key, lambda: self._client.delete_object(**place))
        return True

    def _place(self, key: str) -> dict[str, str]:
        return {"Bucket": self.settings.bucket, "Key": self.settings.prefix + check_key(key)}

    def _find(self, key: str) -> dict[str, Any] | None:
        place = self._place(key)
        try:
            found: dict[str, Any] = self._try(key, lambda: self._client.head_object(**place))
        except BlobNotFound:
            return None
        return found

    def _write(self, key: str, data: bytes, condition: dict[str, str]) -> str | None:
        """The new etag, or None where the condition doesn't hold. What arrived damaged is written over."""
        for _ in range(self.settings.attempts):
            try:
                return self._write_once(key, data, condition)
            except _Damaged as damaged:
                condition = {"IfMatch": damaged.etag} if self._capabilities.compare_and_swap else {}
        raise CorruptBlob(key, hashlib.sha256(data).hexdigest(), "other bytes, at every attempt")

    def _write_once(self, key: str, data: bytes, condition: dict[str, str]) -> str | None:
        token = secrets.token_hex(8)
        large = len(data) > self.settings.multipart_bytes
        write = self._put_parts if large else self._put_whole
        try:
            return self._try(key, lambda: write(key, data, token, condition))
        except (_ConditionFailed, BlobNotFound) as error:
            # Refused, or an If-Match write to a missing key, or an upload that an unheard try completed.
            found = self._find(key)
            if found is not None and found.get("Metadata", {}).get(TOKEN) == token:
                return self._confirm(key, data, found["ETag"])
            if isinstance(error, _ConditionFailed) or "IfMatch" in condition:
                return None
            raise StoreUnavailable(key, "an upload got lost") from error

    def _put_whole(self, key: str, data: bytes, token: str, condition: dict[str, str]) -> str:
        answer = self._client.put_object(
            **self._place(key),
            Body=data,
            Metadata={TOKEN: token},
            **self._checksums(data),
            **condition,
            **self._encryption(),
        )
        etag: str = answer["ETag"]
        return etag if _is_md5_of(etag, data) else self._confirm(key, data, etag)

    def _put_parts(self, key: str, data: bytes, token: str, condition: dict[str, str]) -> str:
        place = self._place(key)
        algorithm = {"ChecksumAlgorithm": "SHA256"} if self._sha else {}
        upload = self._client.create_multipart_upload(
            **place, Metadata={TOKEN: token}, **algorithm, **self._encryption()
        )["UploadId"]
        pieces = list(_split(data, self.settings.multipart_bytes))
        try:
            parts = [
                self._put_part({**place, "UploadId": upload}, number, piece)
                for number, piece in enumerate(pieces, 1)
            ]
            answer = self._client.complete_multipart_upload(
                **place, UploadId=upload, MultipartUpload={"Parts": parts}, **condition
            )
        except BaseException:
            self._abort(place, upload)
            raise
        etag: str = answer["ETag"]
        whole = all(_is_md5_of(part["ETag"], piece) for part, piece in zip(parts, pieces, strict=True))
        return etag if whole else self._confirm(key, data, etag)

    def _put_part(self, upload: dict[str, str], number: int, data: bytes) -> dict[str, Any]:
        checksums = self._checksums(data)
        answer = self._client.upload_part(**upload, PartNumber=number, Body=data, **checksums)
        sha = {"ChecksumSHA256": checksums["ChecksumSHA256"]} if self._sha else {}
        return {"PartNumber": number, "ETag": answer["ETag"], **sha}

    def _abort(self, place: dict[str, str], upload: str) -> None:
        try:
            self._client.abort_multipart_upload(**place, UploadId=upload)
        except (ClientError, BotoCoreError):
            return  # the lifecycle rule removes it

    def _confirm(self, key: str, data: bytes, etag: str) -> str:
        """Reads back what an etag doesn't tell to be ours. Another's write in between is no fault."""
        found, tag = self.get_tagged(key)
        if tag == etag and found != data:
            raise _Damaged(key, etag)
        return etag

    def _checksums(self, data: bytes) -> dict[str, str]:
        """Content-MD5 is checked by every service; some only believe the newer ones."""
        md5 = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        if not self._sha:
            return {"ContentMD5": md5}
        sha = base64.b64encode(hashlib.sha256(data).digest()).decode()
        return {"ContentMD5": md5, "ChecksumAlgorithm": "SHA256", "ChecksumSHA256": sha}

    @property
    def _sha(self) -> bool:
        return self.settings.checksums == "sha256"

    def _encryption(self) -> dict[str, str]:
        if not self.settings.encryption:
            return {}
        key = {"SSEKMSKeyId": self.settings.kms_key} if self.settings.kms_key else {}
        return {"ServerSideEncryption": self.settings.encryption, **key}

    def _try(self, key: str, call: Callable[[], _Result]) -> _Result:
        """What boto doesn't try again: bodies that break off or fail their checksum, conflicting writers."""
        for attempt in range(1, self.settings.attempts + 1):
            try:
                return call()
            except StoreError:
                raise
            except Exception as error:
                known = _as_store_error(key, error)
                if not isinstance(known, StoreUnavailable | CorruptBlob) or attempt == self.settings.attempts:
                    raise known from error
                if not _again(error):
                    raise known from error
                time.sleep(0.05 * 2**attempt)
        raise AssertionError("unreachable: the last attempt returns or raises")


class _ConditionFailed(StoreError):
    """The service says that If-Match or If-None-Match doesn't hold."""


class _Damaged(StoreError):
    """A write of ours arrived as other bytes, and lies there under `etag`."""

    def __init__(self, key: str, etag: str) -> None:
        self.etag = etag
        super().__init__(key, "arrived damaged")


class _PastEnd(StoreError):
    """A range that begins after the last byte."""


def _client(settings: S3Settings) -> Any:
    checksums = "when_supported" if settings.checksums == "sha256" else "when_required"
    config = Config(
        signature_version="s3v4",
        connect_timeout=settings.connect_seconds,
        read_timeout=settings.read_seconds,
        retries={"mode": "standard", "total_max_attempts": settings.attempts},
        max_pool_connections=64,
        request_checksum_calculation="when_required",
        response_checksum_validation=checksums,
        s3={"addressing_style": settings.addressing},
    )
    try:
        return boto3.session.Session().client(
            "s3",
            endpoint_url=settings.endpoint or None,
            region_name=settings.region or None,
            verify=settings.ca_bundle or None,
            config=config,
        )
    except (BotoCoreError, ValueError) as error:
        raise StoreUnavailable(settings.bucket, f"S3 can't be used: {error}") from error


def _as_store_error(key: str, error: Exception) -> StoreError:
    """Only codes go into messages: what services write may quote a request."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return _of_code(key, _code(error), status, error.operation_name)
    if isinstance(error, FlexibleChecksumError):
        return CorruptBlob(key, "the checksum that the service tells", "another")
    if isinstance(error, BotoCoreError | HTTPError | OSError):
        return StoreUnavailable(key, f"S3 gave no whole answer ({type(error).__name__})")
    raise error


def _of_code(key: str, code: str, status: int, operation: str) -> StoreError:
    if code in _MISSING or code == "NoSuchUpload":
        return BlobNotFound(key)
    if code in _REFUSED or status == 412:
        return _ConditionFailed(key, "the condition doesn't hold")
    if code in ("InvalidRange", "416"):
        return _PastEnd(key, "past the end")
    if code in _BAD_DIGEST:
        return CorruptBlob(key, "the checksum sent", "another, by the service")
    kind = RequestRefused if status in (400, 405, 501) else StoreUnavailable
    return kind(key, f"S3 refused {operation} ({code})")


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _again(error: Exception) -> bool:
    """Whether trying once more may help, beyond boto's own attempts."""
    if isinstance(error, ClientError):
        return _code(error) in _CONFLICT | _BAD_DIGEST
    broken = (FlexibleChecksumError, IncompleteReadError, ResponseStreamingError, HTTPError)
    return isinstance(error, broken)


def _read_all(body: Any, length: int) -> bytes:
    data: bytes = body.read()
    if len(data) != length:
        raise IncompleteReadError(actual_bytes=len(data), expected_bytes=length)
    return data


def _split(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def _is_md5_of(etag: str, data: bytes) -> bool:
    """An etag that's the MD5 of what the service received proves that it's what was sent."""
    return etag.strip('"') == hashlib.md5(data, usedforsecurity=False).hexdigest()
