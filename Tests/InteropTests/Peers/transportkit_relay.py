"""The relay's wire and the end-to-end session inside it, written from `docs/protocol.md` §8 and §10."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

INFO = "ftw/rendezvous/v1/"
EPOCH_SECONDS = 3600
FRAME_LIMIT = 65_536
MESSAGE_1 = 96
MESSAGE_2 = 48
PROLOGUE = b"ftw.session.v1:"
PATH = re.compile(r"/r/([0-9]{1,16})/([0-9a-f]{32})/(box|app)")
CLAIM = re.compile(r"deadman [0-9a-f]{32}")


def handle(secret: bytes, epoch: int, info: str = INFO) -> str:
    """The name of a room: HKDF-SHA256 (RFC 5869) without salt, 16 bytes."""
    key = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(key, f"{info}{epoch}".encode() + b"\x01", "sha256")[:16].hex()


def epoch_of(seconds: float) -> int:
    """The number of whole hours since 1970, floored below it too."""
    return int(seconds // EPOCH_SECONDS)


def path(secret: bytes, role: str, epoch: int | None = None) -> str:
    """What a peer asks the relay for."""
    epoch = epoch_of(time.time()) if epoch is None else epoch
    return f"/r/{epoch}/{handle(secret, epoch)}/{role}"


@dataclass(frozen=True)
class Join:
    """What somebody asks for who joins."""

    epoch: int
    handle: str
    role: str

    @staticmethod
    def read(target: str) -> Join | None:
        """Reads a target; None for anything but exactly four parts."""
        match = PATH.fullmatch(target.partition("?")[0])
        if match is None or int(match[1]) > 2**53 - 1:
            return None
        return Join(int(match[1]), match[2], match[3])


class Rejected(Exception):
    """A handshake or a message that is none."""


class Symmetric:
    """The SymmetricState of the Noise Protocol Framework (rev 34, §5.2)."""

    def __init__(self, responder: bytes) -> None:
        self.hash = b"Noise_IK_25519_ChaChaPoly_SHA256"
        self.chaining = self.hash
        self.key = b""
        self.number = 0
        self.mix_hash(PROLOGUE + responder)
        self.mix_hash(responder)

    def mix_hash(self, data: bytes) -> None:
        self.hash = hashlib.sha256(self.hash + data).digest()

    def _derive(self, data: bytes) -> tuple[bytes, bytes]:
        temporary = hmac.digest(self.chaining, data, "sha256")
        first = hmac.digest(temporary, b"\x01", "sha256")
        return first, hmac.digest(temporary, first + b"\x02", "sha256")

    def mix_key(self, own: X25519PrivateKey, theirs: bytes) -> None:
        try:
            shared = own.exchange(X25519PublicKey.from_public_bytes(theirs))
        except ValueError:
            raise Rejected("a key that is none") from None
        self.chaining, self.key = self._derive(shared)
        self.number = 0

    def seal(self, text: bytes) -> bytes:
        sealed = ChaCha20Poly1305(self.key).encrypt(nonce(self.number), text, self.hash)
        self.number += 1
        self.mix_hash(sealed)
        return sealed

    def open(self, sealed: bytes) -> bytes:
        try:
            text = ChaCha20Poly1305(self.key).decrypt(nonce(self.number), sealed, self.hash)
        except InvalidTag:
            raise Rejected("it does not authenticate") from None
        self.number += 1
        self.mix_hash(sealed)
        return text

    def split(self) -> tuple[bytes, bytes]:
        return self._derive(b"")


def nonce(number: int) -> bytes:
    return bytes(4) + number.to_bytes(8, "little")


class Session:
    """The two directions of a session; each message has its number in front."""

    def __init__(self, send: bytes, receive: bytes) -> None:
        self._send = ChaCha20Poly1305(send)
        self._receive = ChaCha20Poly1305(receive)
        self._next = 0
        self._seen: set[int] = set()

    def seal(self, text: bytes) -> bytes:
        number = self._next.to_bytes(8, "big")
        sealed = self._send.encrypt(nonce(self._next), text, number)
        self._next += 1
        return number + sealed

    def open(self, message: bytes) -> bytes:
        if len(message) < 24:
            raise Rejected("it is too short")
        number = int.from_bytes(message[:8], "big")
        if number in self._seen or number == 2**64 - 1:
            raise Rejected("its number is used or reserved")
        try:
            text = self._receive.decrypt(nonce(number), message[8:], message[:8])
        except InvalidTag:
            raise Rejected("it does not authenticate") from None
        self._seen.add(number)
        return text


class Initiator:
    """The client's handshake."""

    def __init__(self, key: X25519PrivateKey, box: bytes) -> None:
        self._key = key
        self._state = Symmetric(box)
        self._ephemeral = X25519PrivateKey.generate()
        own = self._ephemeral.public_key().public_bytes_raw()
        self._state.mix_hash(own)
        self._state.mix_key(self._ephemeral, box)
        static = self._state.seal(key.public_key().public_bytes_raw())
        self._state.mix_key(key, box)
        self.message1 = own + static + self._state.seal(b"")

    def finish(self, message2: bytes) -> Session:
        theirs = message2[:32]
        self._state.mix_hash(theirs)
        self._state.mix_key(self._ephemeral, theirs)
        self._state.mix_key(self._key, theirs)
        self._state.open(message2[32:])
        first, second = self._state.split()
        return Session(first, second)


def respond(key: X25519PrivateKey, message1: bytes) -> tuple[bytes, bytes, Session]:
    """The box's handshake: message 2, the client's key, the session."""
    if len(message1) < MESSAGE_1:
        raise Rejected("it is too short for a message 1")
    state = Symmetric(key.public_key().public_bytes_raw())
    theirs = message1[:32]
    state.mix_hash(theirs)
    state.mix_key(key, theirs)
    static = state.open(message1[32:80])
    state.mix_key(key, static)
    state.open(message1[80:])
    ephemeral = X25519PrivateKey.generate()
    own = ephemeral.public_key().public_bytes_raw()
    state.mix_hash(own)
    state.mix_key(ephemeral, theirs)
    state.mix_key(ephemeral, static)
    message2 = own + state.seal(b"")
    first, second = state.split()
    return message2, static, Session(second, first)
