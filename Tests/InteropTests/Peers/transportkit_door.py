"""The wire between client and door and between box and door, a second time (docs/protocol.md, section 9).

It shares no line with the Swift codec and has another shape, tables where that has types. Both come from one hand,
though: the vectors show that the two agree, and docs/protocol.md says on what. No I/O: bytes in, values out. A message
is a plain dictionary of texts, as the vectors write it down.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from transportkit_framing import VARINT_MAX, decode_varint, encode_varint

Value = dict[str, str]

MESSAGE_LIMIT = 65_536
PAYLOAD_LIMIT = 65_511
BEGIN_LIMIT = 1_024
HANDSHAKE_LIMIT = 4_096
CONTROL_LIMIT = 40_960
SEAL = 24
KEYS_LIMIT = 1_024
WINDOW_MIN, WINDOW_MAX = 196_608, 16_777_216
SECONDS_MAX = 600
URL_LIMIT = 512
LINE_LIMIT = 2_048
NAMES_LIMIT = 32
NAME_LIMIT = 32
NAME_ALPHABET = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789.-")

WAYS = ("clientToDoor", "doorToClient", "boxToDoor", "doorToBox")
BOX_LEG = frozenset({"boxToDoor", "doorToBox"})

FRAME_KINDS = {2: "begin", 3: "tun", 4: "tun-bulk", 5: "tun-unreliable"}
FRAME_NUMBERS = {name: number for number, name in FRAME_KINDS.items()}


class WireError(Exception):
    """Bytes that are not the wire: what is wrong, in which message and field, and where it begins."""

    def __init__(self, fault: str, message: str, offset: int, field: str | None = None) -> None:
        super().__init__(f"{fault} in {message}{'.' + field if field else ''} at {offset}")
        self.fault = fault
        self.message = message
        self.offset = offset
        self.field = field


# Ids.


def key_id(label: str, key: bytes) -> bytes:
    """The 16 bytes by which a public key is known."""
    return hashlib.sha256(label.encode() + b"\0" + key).digest()[:16]


def id_text(identity: bytes) -> str:
    """The text form of an id: base32 in lower case, without padding."""
    return base64.b32encode(identity).decode().rstrip("=").lower()


def home_id(key: bytes) -> bytes:
    """The home of the box with this key."""
    return key_id("transportkit.home.v1", key)


def device_id(key: bytes) -> bytes:
    """The id of the device with this key."""
    return key_id("transportkit.device.v1", key)


def pairing_hash(home: bytes, code: bytes) -> bytes:
    """What the door is shown of a pairing code."""
    return hashlib.sha256(b"transportkit.pair.v1\0" + id_text(home).encode() + code).digest()


# Fields.


@dataclass(frozen=True)
class Field:
    """A field: its number, how its value reads as text, and how it is written from text.

    `read` returns the text, raises `LengthError` for a length and `ValueError` for a value that cannot be.
    """

    number: int
    read: Callable[[bytes], str]
    write: Callable[[str], bytes]


class LengthError(Exception):
    """A value has a length that it cannot have."""


def fixed(length: int) -> tuple[Callable[[bytes], str], Callable[[str], bytes]]:
    """Bytes of one length, written as hexadecimal digits."""

    def read(value: bytes) -> str:
        if len(value) != length:
            raise LengthError
        return value.hex()

    return read, bytes.fromhex


def number(length: int, lowest: int, highest: int) -> tuple[Callable[[bytes], str], Callable[[str], bytes]]:
    """A big-endian number within bounds, written in decimal."""

    def read(value: bytes) -> str:
        if len(value) != length:
            raise LengthError
        result = int.from_bytes(value, "big")
        if not lowest <= result <= highest:
            raise ValueError
        return str(result)

    return read, lambda text: int(text).to_bytes(length, "big")


def read_caps(value: bytes) -> str:
    """Names that are each preceded by their length."""
    names: list[bytes] = []
    rest = value
    while rest:
        name = rest[1 : 1 + rest[0]]
        if len(name) != rest[0] or not 1 <= len(name) <= NAME_LIMIT or not NAME_ALPHABET.issuperset(name):
            raise ValueError
        if len(names) == NAMES_LIMIT or (names and names[-1] >= name):
            raise ValueError
        names.append(name)
        rest = rest[1 + len(name) :]
    return ",".join(name.decode() for name in names)


def write_caps(text: str) -> bytes:
    """The names of a set, ascending."""
    return b"".join(bytes([len(name)]) + name.encode() for name in sorted(filter(None, text.split(","))))


def read_keys(value: bytes) -> str:
    """Keys in strictly ascending order."""
    if len(value) % 32 or len(value) > 32 * KEYS_LIMIT:
        raise LengthError
    keys = [value[start : start + 32] for start in range(0, len(value), 32)]
    if any(first >= second for first, second in zip(keys, keys[1:])):
        raise ValueError
    return value.hex()


def read_begin(value: bytes) -> str:
    """A session and its first message."""
    if not 1 <= len(value) - 8 <= BEGIN_LIMIT:
        raise LengthError
    return value.hex()


def several(lowest: int, highest: int) -> tuple[Callable[[bytes], str], Callable[[str], bytes]]:
    """So many different runs of 32 bytes, one after the other."""

    def read(value: bytes) -> str:
        if len(value) % 32 or not lowest <= len(value) // 32 <= highest:
            raise LengthError
        return value.hex()

    return read, bytes.fromhex


def read_doors(value: bytes) -> str:
    """One key, or two different ones."""
    text = several(1, 2)[0](value)
    if value[:32] == value[32:]:
        raise ValueError
    return text


def read_url(value: bytes) -> str:
    """Where the door listens."""
    if not 1 <= len(value) <= URL_LIMIT:
        raise LengthError
    text = value.decode()
    if not re.fullmatch(r"wss?://[a-z0-9.-]+:[1-9][0-9]{0,4}(/[!-~]*)?", text) or "#" in text:
        raise ValueError
    return text


FIELDS = {
    "home": Field(1, *fixed(16)),
    "pair": Field(2, *fixed(32)),
    "tun": Field(3, read_begin, bytes.fromhex),
    "window": Field(4, *number(4, WINDOW_MIN, WINDOW_MAX)),
    "caps": Field(5, read_caps, write_caps),
    "device": Field(6, *fixed(16)),
    "sid": Field(7, *fixed(8)),
    "total": Field(8, *number(8, 0, VARINT_MAX)),
    "keys": Field(9, read_keys, bytes.fromhex),
    "more": Field(10, *number(1, 0, 1)),
    "seconds": Field(11, *number(4, 1, SECONDS_MAX)),
    "nonce": Field(12, *fixed(8)),
    "box": Field(13, *fixed(32)),
    "doors": Field(14, read_doors, bytes.fromhex),
    "code": Field(15, *fixed(16)),
    "url": Field(16, read_url, str.encode),
    "pins": Field(17, *several(1, 4)),
}


@dataclass(frozen=True)
class Shape:
    """Which fields a message has, in ascending order of their numbers; a name with a `?` may be absent."""

    fields: tuple[str, ...]
    ways: tuple[str, ...] = ()
    number: int = 0


GREETINGS = {
    "client-hello": Shape(("home", "pair?", "tun?", "window")),
    "client-welcome": Shape(("window", "caps?")),
    "box-hello": Shape(("window", "caps")),
    "box-welcome": Shape(("window",)),
}
CONTROLS = {
    "enter": Shape((), ("clientToDoor",), 0x01),
    "entered": Shape((), ("doorToClient",), 0x02),
    "box": Shape(("caps?",), ("doorToClient",), 0x03),
    "credit": Shape(("device", "sid", "total"), WAYS, 0x04),
    "check": Shape(("nonce",), ("clientToDoor", "boxToDoor"), 0x05),
    "here": Shape(("nonce",), ("doorToClient", "doorToBox"), 0x06),
    "roster": Shape(("keys", "more"), ("boxToDoor",), 0x10),
    "linked": Shape((), ("doorToBox",), 0x11),
    "admit": Shape(("keys",), ("boxToDoor",), 0x12),
    "revoke": Shape(("keys",), ("boxToDoor",), 0x13),
    "expect": Shape(("pair", "seconds"), ("boxToDoor",), 0x14),
    "forget": Shape(("pair",), ("boxToDoor",), 0x15),
}
CONTROL_NAMES = {shape.number: name for name, shape in CONTROLS.items()}


def split_fields(data: bytes, start: int, message: str) -> dict[int, tuple[int, bytes]]:
    """The fields by number, each with where it begins."""
    found: dict[int, tuple[int, bytes]] = {}
    offset, last = start, -1
    while offset < len(data):
        head = decode_varint(data, offset + 1)
        if head is None or offset + 1 + head[1] + head[0] > len(data):
            raise WireError("cutShort", message, offset)
        if data[offset] <= last:
            raise WireError("outOfOrder", message, offset)
        last = data[offset]
        begin = offset + 1 + head[1]
        found[last] = (offset, data[begin : begin + head[0]])
        offset = begin + head[0]
    return found


def read_shape(data: bytes, start: int, message: str, names: tuple[str, ...]) -> Value:
    """Reads the fields that a message has and passes over all others."""
    found = split_fields(data, start, message)
    value: Value = {}
    for name in names:
        optional, name = name.endswith("?"), name.rstrip("?")
        field = FIELDS[name]
        if field.number not in found:
            if optional:
                continue
            raise WireError("missing", message, len(data), name)
        offset, raw = found[field.number]
        try:
            value[name] = field.read(raw)
        except LengthError:
            raise WireError("badLength", message, offset, name) from None
        except ValueError:
            raise WireError("badValue", message, offset, name) from None
    return value


def write_shape(value: Value, names: tuple[str, ...]) -> bytes:
    """Writes the fields that a message has."""
    written = b""
    for name in (name.rstrip("?") for name in names):
        if name in value:
            raw = FIELDS[name].write(value[name])
            written += bytes([FIELDS[name].number]) + encode_varint(len(raw)) + raw
    return written


def names_of(kind: str, way: str) -> tuple[str, ...]:
    """The fields of a control message; only between box and door a session is named with its device."""
    return tuple(name for name in CONTROLS[kind].fields if name != "device" or way in BOX_LEG)


# Messages.


def decode(reads: str, data: bytes, way: str, is_datagram: bool = False) -> Value:
    """Reads `data` as what `reads` says: a message of the link, a control message, or a payload of the handshake."""
    if reads == "message":
        return decode_message(data, way, is_datagram)
    if reads == "control":
        return decode_control(data, way)
    if len(data) > HANDSHAKE_LIMIT:
        raise WireError("tooLong", reads, 0)
    return read_shape(data, 0, reads, GREETINGS[reads].fields)


def encode(reads: str, value: Value, way: str) -> bytes:
    """Writes what `decode` reads."""
    if reads == "message":
        return encode_message(value)
    if reads == "control":
        return bytes([CONTROLS[value["type"]].number]) + write_shape(value, names_of(value["type"], way))
    return write_shape(value, GREETINGS[reads].fields)


def decode_control(data: bytes, way: str) -> Value:
    """Reads a control message that was unsealed."""
    if len(data) > CONTROL_LIMIT:
        raise WireError("tooLong", "control", 0)
    if not data:
        raise WireError("cutShort", "control", 0)
    kind = CONTROL_NAMES.get(data[0])
    if kind is None:
        return {"type": "unknown", "number": str(data[0])}
    if way not in CONTROLS[kind].ways:
        raise WireError("misplaced", kind, 0)
    return {"type": kind, **read_shape(data, 1, kind, names_of(kind, way))}


def decode_message(data: bytes, way: str, is_datagram: bool) -> Value:
    """Reads a message of the link."""
    if len(data) > MESSAGE_LIMIT:
        raise WireError("tooLong", "message", 0)
    if not data:
        raise WireError("cutShort", "message", 0)
    for first, kind, shortest, longest in (
        (0, "handshake", 1, HANDSHAKE_LIMIT),
        (1, "sealed", 1 + SEAL, CONTROL_LIMIT + SEAL),
    ):
        if data[0] == first:
            if is_datagram:
                raise WireError("misplaced", kind, 0)
            if len(data) - 1 < shortest:
                raise WireError("cutShort", kind, 0)
            if len(data) - 1 > longest:
                raise WireError("tooLong", kind, 1)
            return {"kind": kind, "body": data[1:].hex()}
    kind = FRAME_KINDS.get(data[0], "unknown")
    if kind == "unknown":
        return {"kind": kind, "number": str(data[0])}
    if (is_datagram and kind != "tun-unreliable") or (kind == "begin" and way not in ("clientToDoor", "doorToBox")):
        raise WireError("misplaced", kind, 0)
    header = 25 if way in BOX_LEG else 9
    if len(data) < header:
        raise WireError("cutShort", kind, 0)
    payload = data[header:]
    if len(payload) > PAYLOAD_LIMIT:
        raise WireError("tooLong", kind, header)
    if (not payload and kind != "tun") or (kind == "begin" and len(payload) > BEGIN_LIMIT):
        raise WireError("badLength", kind, header)
    device = {"device": data[1:17].hex()} if way in BOX_LEG else {}
    return {"kind": kind, **device, "sid": data[header - 8 : header].hex(), "d": payload.hex()}


def encode_message(value: Value) -> bytes:
    """Writes a message of the link."""
    if value["kind"] in ("handshake", "sealed"):
        return bytes([value["kind"] == "sealed"]) + bytes.fromhex(value["body"])
    rest = bytes.fromhex(value.get("device", "") + value["sid"] + value["d"])
    return bytes([FRAME_NUMBERS[value["kind"]]]) + rest


# The pairing line.

LINE_PREFIX = "tk1:"
LINE_FIELDS = ("home", "box", "doors", "code", "url", "pins?")


class LineError(Exception):
    """A text that is no pairing line, and why."""


def write_line(value: Value) -> str:
    """The line that a box shows; the home is worked out from the key of the box."""
    home = home_id(bytes.fromhex(value["box"])).hex()
    fields = write_shape({"home": home, **value}, LINE_FIELDS)
    return LINE_PREFIX + base64.urlsafe_b64encode(fields).decode().rstrip("=")


def read_line(line: str) -> Value:
    """Reads what a box shows."""
    text = line.strip()
    if not text.startswith(LINE_PREFIX):
        raise LineError("otherVersion" if re.match(r"tk[0-9]*:", text) else "noLine")
    digits = text.removeprefix(LINE_PREFIX)
    if len(text) > LINE_LIMIT or not re.fullmatch(r"[A-Za-z0-9_-]*", digits):
        raise LineError("noText")
    try:
        data = base64.urlsafe_b64decode(digits + "=" * (-len(digits) % 4))
    except binascii.Error:
        raise LineError("noText") from None
    # Bits that are left over are zero.
    if base64.urlsafe_b64encode(data).decode().rstrip("=") != digits:
        raise LineError("noText")
    value = read_shape(data, 0, "pairing-line", LINE_FIELDS)
    if value["home"] != home_id(bytes.fromhex(value["box"])).hex():
        raise LineError("wrongHome")
    return value
