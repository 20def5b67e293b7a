"""Certificates for the tests, by the openssl command; as RFC 5280 wants them, which Python checks from 3.13 on."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_EXTENSIONS = """subjectAltName=DNS:localhost,IP:127.0.0.1,DNS:{name}
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
"""


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        if shutil.which("openssl") is None:
            pytest.skip("openssl isn't installed")
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.certificate, self._key = folder / f"{name}.pem", folder / f"{name}.key"
        subject = ["-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign"]
        new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        _openssl(*new, *subject, "-keyout", str(self._key), "-out", str(self.certificate))

    def issue(self, name: str, file: str = "") -> tuple[str, str]:
        """(certificate, key) of a name, as paths; written over where they are."""
        certificate, key = (self.folder / f"{file or name}.{kind}" for kind in ("crt", "key"))
        request, extensions = self.folder / "request.csr", self.folder / "extensions.cnf"
        extensions.write_text(_EXTENSIONS.format(name=name))
        new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        staged = [self.folder / "staged.crt", self.folder / "staged.key"]
        _openssl(*new, "-subj", f"/CN={name}", "-keyout", str(staged[1]), "-out", str(request))
        signer = ["-CA", str(self.certificate), "-CAkey", str(self._key), "-CAcreateserial", "-days", "2"]
        sign = ["x509", "-req", "-in", str(request), *signer, "-extfile", str(extensions)]
        _openssl(*sign, "-out", str(staged[0]))
        for source, place in zip(staged, (certificate, key), strict=True):
            source.replace(place)
        return str(certificate), str(key)
