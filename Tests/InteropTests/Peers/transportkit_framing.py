"""TransportKit's framing on QUIC streams, a second time.

Written from the description of the wire and not from the Swift sources, so that the two can be held against
each other. No I/O: bytes in, items out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ALPN_PEER = "tk/1"
"""The protocol of a plain link between two peers (R3)."""

VARINT_MAX = (1 << 62) - 1
TARGET_LIMIT = 4096
MESSAGE_LIMIT = 1 << 20
BULK_KIND = 0x00

CLOSE_NORMAL = 1000
CLOSE_NONE_GIVEN = 1005
CLOSE_PATH_LOST = 1006
CLOSE_TOO_BIG = 1009
CLOSE_BAD_TARGET = 4400
CLOSE_NOBODY_THERE = 4404


class FramingError(Exception):
    """The peer's bytes cannot be read; `close_code` says how the session has to end."""

    def __init__(self, close_code: int, message: str) -> None:
        super().__init__(message)
        self.close_code = close_code


class UnknownStreamKind(Exception):
    """A unidirectional stream of a kind that this version does not know; the stream is refused, the session goes on."""

    def __init__(self, kind: int) -> None:
        super().__init__(f"unidirectional stream of kind {kind:#x}")
        self.kind = kind


def encode_varint(value: int, *, size: int | None = None) -> bytes:
    """Writes a variable-length integer (RFC 9000 section 16), in its shortest form unless a size is given."""
    if not 0 <= value <= VARINT_MAX:
        raise ValueError(f"{value} does not fit a varint")
    shortest = 1 if value < 1 << 6 else 2 if value < 1 << 14 else 4 if value < 1 << 30 else 8
    size = shortest if size is None else size
    if size not in (1, 2, 4, 8) or size < shortest:
        raise ValueError(f"{value} does not fit a varint of {size} bytes")
    mark = {1: 0, 2: 1, 4: 2, 8: 3}[size]
    return (value | mark << (8 * size - 2)).to_bytes(size, "big")


def decode_varint(data: bytes | bytearray, offset: int = 0) -> tuple[int, int] | None:
    """Reads a varint in any of its forms: its value and how many bytes it took, or None if it is not whole."""
    if offset >= len(data):
        return None
    size = 1 << (data[offset] >> 6)
    if len(data) - offset < size:
        return None
    value = int.from_bytes(data[offset : offset + size], "big")
    return value & ((1 << (8 * size - 2)) - 1), size


def encode_message(payload: bytes, *, length_size: int | None = None) -> bytes:
    """Writes a message with its length before it."""
    return encode_varint(len(payload), size=length_size) + payload


def encode_target(target: str, *, length_size: int | None = None) -> bytes:
    """Writes the target, the first thing on the control stream, after checking it."""
    data = target.encode()
    check_target(data)
    return encode_message(data, length_size=length_size)


def check_target(data: bytes) -> str:
    """The target as text; raises with 4400 where it is unusable."""
    if not 1 <= len(data) <= TARGET_LIMIT:
        raise FramingError(CLOSE_BAD_TARGET, f"a target of {len(data)} bytes")
    try:
        text = data.decode("utf-8", errors="strict")
    except UnicodeDecodeError:
        raise FramingError(CLOSE_BAD_TARGET, "the target is not UTF-8") from None
    if not text.startswith("/") or any(byte <= 0x20 or byte == 0x7F or byte == ord("#") for byte in data):
        raise FramingError(CLOSE_BAD_TARGET, "the target is not the path and query of a URL")
    return text


@dataclass(frozen=True)
class Target:
    """What the dialer asks for."""

    text: str


@dataclass(frozen=True)
class Payload:
    """One message."""

    data: bytes


Item = Target | Payload


class FramedStream:
    """Takes one stream of the peer apart. Make it with `control` or `unidirectional`."""

    def __init__(self, stage: str, limit: int) -> None:
        self._stage = stage
        self._limit = limit
        self._buffer = bytearray()

    @classmethod
    def control(cls, *, is_listener: bool, limit: int = MESSAGE_LIMIT) -> FramedStream:
        """The control stream: a listener reads the target first, a dialer reads messages at once."""
        return cls("target" if is_listener else "messages", limit)

    @classmethod
    def unidirectional(cls, *, limit: int = MESSAGE_LIMIT) -> FramedStream:
        """A unidirectional stream: its kind, then what that kind holds."""
        return cls("kind", limit)

    @property
    def buffered(self) -> int:
        """How many bytes wait for the rest of their item."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[Item]:
        """Adds bytes that arrived and yields what is whole.

        Raises `FramingError` as soon as a length is announced that is not allowed, and `UnknownStreamKind`; nothing can
        be fed after either.
        """
        self._buffer += data
        while (item := self._next()) is not None:
            yield item

    def _next(self) -> Item | None:
        head = decode_varint(self._buffer)
        if self._stage == "kind" and head is not None:
            kind, size = head
            if kind != BULK_KIND:
                raise UnknownStreamKind(kind)
            del self._buffer[:size]
            self._stage = "messages"
            head = decode_varint(self._buffer)
        if head is None:
            return None
        length, size = head
        if self._stage == "target" and not 1 <= length <= TARGET_LIMIT:
            raise FramingError(CLOSE_BAD_TARGET, f"a target of {length} bytes")
        if self._stage == "messages" and length > self._limit:
            raise FramingError(CLOSE_TOO_BIG, f"a message of {length} bytes, where {self._limit} are allowed")
        if len(self._buffer) < size + length:
            return None
        data = bytes(self._buffer[size : size + length])
        del self._buffer[: size + length]
        if self._stage == "target":
            self._stage = "messages"
            return Target(check_target(data))
        return Payload(data)
