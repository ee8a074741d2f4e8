"""What every peer program shares: its announcement, its verdict, and its time limit."""

from __future__ import annotations

import asyncio
import ipaddress
import sys
from collections.abc import Coroutine
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

TIME_LIMIT_SECONDS = 45.0
"""No scenario takes longer, on the slowest machine and under a sanitizer."""


class Failure(Exception):
    """What the other end did wrong, in one sentence."""


def check(condition: bool, message: str) -> None:
    """Fails the scenario with `message` unless `condition` holds."""
    if not condition:
        raise Failure(message)


def announce(port: int) -> None:
    """Says that the peer is ready to be dialled."""
    print(f"listening {port}", flush=True)


def run(scenario: Coroutine[object, object, None]) -> None:
    """Runs a scenario and ends the process: 0 and `ok`, or 1 and what went wrong."""

    async def bounded() -> None:
        async with asyncio.timeout(TIME_LIMIT_SECONDS):
            await scenario

    try:
        asyncio.run(bounded())
    except TimeoutError:
        print(f"failed: no end within {TIME_LIMIT_SECONDS:.0f} s", flush=True)
        sys.exit(1)
    except Exception as error:  # noqa: BLE001: whatever it is, it is this program's verdict
        print(f"failed: {type(error).__name__}: {error}", flush=True)
        sys.exit(1)
    print("ok", flush=True)


def pattern(length: int, seed: int = 0) -> bytes:
    """Bytes in which a missing, doubled or moved part shows: the same on both ends of a test."""
    return bytes((index * 31 + (index >> 8) + seed * 7) & 0xFF for index in range(length))


def make_certificate(directory: Path, names: list[str]) -> tuple[Path, Path]:
    """A self-signed certificate and its key, for tests in which no end is TransportKit's."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "peer")])
    now = datetime.now(timezone.utc)
    alternatives: list[x509.GeneralName] = []
    for name in names:
        try:
            alternatives.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            alternatives.append(x509.DNSName(name))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = directory / "certificate.pem", directory / "key.pem"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return certificate_file, key_file
