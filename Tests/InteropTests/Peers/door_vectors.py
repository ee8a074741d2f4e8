"""Reads, makes and compares the vectors of the door's wire, Tests/vectors/door-wire.json.

    swift test --disable-xctest --filter DoorVectorTests      with DOOR_WIRE_OUT=swift.json in the environment
    python door_vectors.py swift.json > ../../vectors/door-wire.json

Each side has made a half of the file with its encoder, and has written down what its decoder says of broken and of
randomly changed messages; each side's tests read the other's half, and make their own again.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import transportkit_door as door
from transportkit_framing import encode_varint

FILE = Path(__file__).parents[2] / "vectors" / "door-wire.json"
SEED = 9
MUTATIONS = 6
LONG_RUN = 256

Vector = dict[str, Any]


def pack(text: str) -> str:
    """Hexadecimal digits, with the last byte written once and counted where it stands at the end 256 times or more."""
    data = bytes.fromhex(text)
    head = data.rstrip(data[-1:]) if data else b""
    count = len(data) - len(head)
    return text if count < LONG_RUN else f"{head.hex()}+{data[-1:].hex()}*{count}"


def unpack(text: str) -> bytes:
    """The bytes that `pack` has written."""
    head, _, run = text.partition("+")
    byte, _, count = run.partition("*")
    return bytes.fromhex(head) + bytes.fromhex(byte) * int(count or 0)


def judge(reads: str, way: str, data: bytes, is_datagram: bool) -> Vector:
    """What this side says of some bytes."""
    try:
        value = door.decode(reads, data, way, is_datagram)
    except door.WireError as error:
        field = {"field": error.field} if error.field else {}
        return {"error": {"fault": error.fault, "message": error.message, **field, "offset": error.offset}}
    is_unknown = "unknown" in (value.get("kind"), value.get("type"))
    is_exact = not is_unknown and door.encode(reads, value, way) == data
    packed = {name: pack(text) if name in ("d", "body", "keys", "tun") else text for name, text in value.items()}
    return {"value": packed, "exact": is_exact}


def vector(name: str, reads: str, way: str, data: bytes, is_datagram: bool = False) -> Vector:
    """Some bytes and what this side says of them."""
    mark = {"datagram": True} if is_datagram else {}
    verdict = judge(reads, way, data, is_datagram)
    return {"name": name, "reads": reads, "way": way, **mark, "hex": pack(data.hex()), **verdict}


def key(number: int) -> bytes:
    """Any key."""
    return bytes([number]) * 31 + bytes([7])


def identities() -> list[dict[str, str]]:
    """Ids and hashes of keys and codes."""
    result = []
    for number in (0, 1, 0x7F, 0xFF):
        home, code = door.home_id(key(number)), bytes(range(number % 16, number % 16 + 16))
        result.append(
            {
                "key": key(number).hex(),
                "home": door.id_text(home),
                "homeBytes": home.hex(),
                "device": door.id_text(door.device_id(key(number))),
                "code": code.hex(),
                "pair": door.pairing_hash(home, code).hex(),
            }
        )
    return result


HOME = door.home_id(key(1)).hex()
DEVICE = door.device_id(key(2)).hex()
PAIR = door.pairing_hash(door.home_id(key(1)), bytes(range(16))).hex()
SID = "0011223344556677"
TOP = "f" * 16


def usable() -> list[tuple[str, str, str, door.Value]]:
    """Messages of each kind, at their edges."""
    first = SID + "ab" * 112
    window, widest = str(door.WINDOW_MIN), str(door.WINDOW_MAX)
    names = ",".join(sorted(f"{'n' * 30}{number:02}" for number in range(32)))
    keys = "".join(sorted(key(number).hex() for number in range(5)))
    many = "".join((number.to_bytes(4, "big") + bytes(28)).hex() for number in range(door.KEYS_LIMIT))
    to_door, to_client, to_box, from_box = "clientToDoor", "doorToClient", "doorToBox", "boxToDoor"
    box_leg = {"device": DEVICE, "sid": SID}
    return [
        ("a home alone", "client-hello", to_door, {"home": HOME, "window": "262144"}),
        ("pair", "client-hello", to_door, {"home": HOME, "pair": PAIR, "window": window}),
        ("pair and tun", "client-hello", to_door, {"home": HOME, "pair": PAIR, "tun": first, "window": widest}),
        ("the longest tun", "client-hello", to_door, {"home": HOME, "tun": SID + "cd" * 1024, "window": window}),
        ("no box", "client-welcome", to_client, {"window": window}),
        ("a box that takes tun", "client-welcome", to_client, {"window": window, "caps": "tun"}),
        ("a box that takes nothing", "client-welcome", to_client, {"window": window, "caps": ""}),
        ("as many names as there may be", "box-hello", from_box, {"window": window, "caps": names}),
        ("a box", "box-hello", from_box, {"window": "262144", "caps": "mux.1,tun"}),
        ("a door to a box", "box-welcome", to_box, {"window": widest}),
        ("enter", "control", to_door, {"type": "enter"}),
        ("entered", "control", to_client, {"type": "entered"}),
        ("the box has linked", "control", to_client, {"type": "box", "caps": "tun"}),
        ("the box has left", "control", to_client, {"type": "box"}),
        ("credit of a client", "control", to_door, {"type": "credit", "sid": SID, "total": "0"}),
        ("credit of a box", "control", from_box, {"type": "credit", **box_leg, "total": str(door.VARINT_MAX)}),
        ("a box asks", "control", from_box, {"type": "check", "nonce": TOP}),
        ("a door answers", "control", to_box, {"type": "here", "nonce": TOP}),
        ("an empty roster", "control", from_box, {"type": "roster", "keys": "", "more": "0"}),
        ("a roster with more to come", "control", from_box, {"type": "roster", "keys": keys, "more": "1"}),
        ("the longest roster", "control", from_box, {"type": "roster", "keys": many, "more": "0"}),
        ("linked", "control", to_box, {"type": "linked"}),
        ("admit", "control", from_box, {"type": "admit", "keys": key(3).hex()}),
        ("revoke", "control", from_box, {"type": "revoke", "keys": keys}),
        ("expect", "control", from_box, {"type": "expect", "pair": PAIR, "seconds": "600"}),
        ("forget", "control", from_box, {"type": "forget", "pair": PAIR}),
        ("a handshake", "message", to_door, {"kind": "handshake", "body": "5a" * 200}),
        ("the longest handshake", "message", to_client, {"kind": "handshake", "body": "5a" * 4096}),
        ("the shortest sealed", "message", to_door, {"kind": "sealed", "body": "00" * 25}),
        ("the longest sealed", "message", from_box, {"kind": "sealed", "body": "11" * 40_984}),
        ("begin", "message", to_door, {"kind": "begin", "sid": SID, "d": "ab" * 112}),
        ("begin at a box", "message", to_box, {"kind": "begin", **box_leg, "d": "ab" * 1024}),
        ("tun", "message", to_client, {"kind": "tun", "sid": TOP, "d": "010203"}),
        ("an end", "message", to_client, {"kind": "tun", "sid": SID, "d": ""}),
        ("an end at a box", "message", to_box, {"kind": "tun", **box_leg, "d": ""}),
        ("the longest tun of a box", "message", from_box, {"kind": "tun", **box_leg, "d": "ee" * 65_511}),
        ("bulk", "message", from_box, {"kind": "tun-bulk", **box_leg, "d": "ee" * 300}),
        ("unreliable", "message", to_door, {"kind": "tun-unreliable", "sid": SID, "d": "00"}),
    ]


def broken() -> list[Vector]:
    """Messages that a decoder refuses, and a few odd ones that it takes."""
    to_door, to_client, to_box, from_box = "clientToDoor", "doorToClient", "doorToBox", "boxToDoor"

    def field(name: str, raw: bytes, size: int | None = None) -> bytes:
        return bytes([door.FIELDS[name].number]) + encode_varint(len(raw), size=size) + raw

    home, window = field("home", bytes.fromhex(HOME)), field("window", (262_144).to_bytes(4, "big"))
    sid, total = field("sid", bytes(8)), field("total", bytes(8))
    two = key(1) + key(2)
    greetings = [
        ("nothing", b""),
        ("no window", home),
        ("no home", window),
        ("a number without a length", home + b"\x04"),
        ("a length that is cut", home + b"\x04\x40"),
        ("a value that is cut", home + window[:-1]),
        ("a length beyond all bytes", home + b"\x04\xff" + b"\xff" * 7),
        ("fields out of order", window + home),
        ("a field twice", home + home + window),
        ("a short home", field("home", bytes(15)) + window),
        ("a long pair", home + field("pair", bytes(33)) + window),
        ("a session without its first message", home + field("tun", bytes(8)) + window),
        ("a first message that is too long", home + field("tun", bytes(8 + 1025)) + window),
        ("a window of two bytes", home + field("window", bytes(2))),
        ("a window that is too small", home + field("window", (door.WINDOW_MIN - 1).to_bytes(4, "big"))),
        ("a window that is too large", home + field("window", (door.WINDOW_MAX + 1).to_bytes(4, "big"))),
        ("an unknown field", home + window + b"\xf0\x03abc"),
        ("a field of another message", home + window + sid),
        ("a length in a longer form", home + field("window", (262_144).to_bytes(4, "big"), size=8)),
        ("field 0", b"\x00\x00" + home + window),
        ("a payload that is too long", home + window + b"\xf0" + encode_varint(4096) + bytes(4096)),
    ]
    capabilities = [
        ("a name that is cut", b"\x04tun"),
        ("an empty name", b"\x00"),
        ("a name with a capital", b"\x03Tun"),
        ("a name that is no text", b"\x01\xff"),
        ("a name that is too long", b"\x21" + b"a" * 33),
        ("a name twice", b"\x03tun\x03tun"),
        ("names out of order", b"\x03tun\x03abc"),
        ("too many names", b"".join(b"\x02%02d" % number for number in range(33))),
    ]
    controls = [
        ("nothing", to_door, b""),
        ("an unknown type", to_door, b"\x7fabc"),
        ("a client that is no door", to_door, b"\x02"),
        ("a client with a roster", to_door, b"\x10" + field("keys", b"") + field("more", b"\0")),
        ("a door that asks", to_box, b"\x05" + field("nonce", bytes(8))),
        ("enter with an unknown field", to_door, b"\x01\xee\x01x"),
        ("enter with half a field", to_door, b"\x01\xee"),
        ("credit without a device", from_box, b"\x04" + sid + total),
        ("credit with a device too many", to_door, b"\x04" + field("device", bytes(16)) + sid + total),
        ("credit without a sid", to_client, b"\x04" + total),
        ("credit beyond 62 bits", to_client, b"\x04" + sid + field("total", b"\x40" + bytes(7))),
        ("credit of 4 bytes", to_client, b"\x04" + sid + field("total", bytes(4))),
        ("half a key", from_box, b"\x12" + field("keys", two[:48])),
        ("a key twice", from_box, b"\x12" + field("keys", key(1) * 2)),
        ("keys out of order", from_box, b"\x13" + field("keys", key(2) + key(1))),
        ("too many keys", from_box, b"\x13" + field("keys", b"".join(n.to_bytes(32, "big") for n in range(1025)))),
        ("more of 2", from_box, b"\x10" + field("keys", two) + field("more", b"\x02")),
        ("no more", from_box, b"\x10" + field("keys", two)),
        ("more of two bytes", from_box, b"\x10" + field("keys", two) + field("more", b"\0\0")),
        ("a pairing code for no time", from_box, b"\x14" + field("pair", bytes(32)) + field("seconds", bytes(4))),
        (
            "a pairing code for too long", from_box,
            b"\x14" + field("pair", bytes(32)) + field("seconds", (601).to_bytes(4, "big")),
        ),
        ("a short hash", from_box, b"\x15" + field("pair", bytes(31))),
        ("a control message that is too long", from_box, b"\x11" + bytes(40_960)),
    ]
    messages = [
        ("nothing", to_door, b"", False),
        ("an unknown kind", to_door, b"\x06abc", False),
        ("an unknown kind in a datagram", to_door, b"\xff", True),
        ("a handshake without bytes", to_door, b"\x00", False),
        ("a handshake that is too long", to_door, bytes(4098), False),
        ("a handshake in a datagram", to_door, bytes(100), True),
        ("a sealed nothing", to_door, b"\x01" + bytes(24), False),
        ("a sealed message that is too long", to_door, b"\x01" + bytes(40_985), False),
        ("a sealed message in a datagram", to_door, b"\x01" + bytes(30), True),
        ("half a sid", to_door, b"\x03" + bytes(7), False),
        ("half a device", from_box, b"\x03" + bytes(15), False),
        ("a device without a sid", from_box, b"\x03" + bytes(16), False),
        ("a door that begins with a client", to_client, b"\x02" + bytes(108), False),
        ("a box that begins", from_box, b"\x02" + bytes(108), False),
        ("an empty beginning", to_door, b"\x02" + bytes(8), False),
        ("a beginning that is too long", to_door, b"\x02" + bytes(8 + 1025), False),
        ("an empty bulk message", to_door, b"\x04" + bytes(8), False),
        ("an empty unreliable message", to_door, b"\x05" + bytes(8), True),
        ("an unreliable message in a datagram", to_door, b"\x05" + bytes(9), True),
        ("a reliable message in a datagram", to_door, b"\x03" + bytes(9), True),
        ("a bulk message in a datagram", from_box, b"\x04" + bytes(30), True),
        ("a frame that is too long", to_door, b"\x03" + bytes(8 + 65_512), False),
        ("a message that is too long", to_door, b"\x03" + bytes(65_536), False),
    ]
    return [
        *(vector(name, "client-hello", to_door, data) for name, data in greetings),
        *(vector(name, "box-hello", from_box, window + field("caps", data)) for name, data in capabilities),
        vector("no caps", "box-hello", from_box, window),
        *(vector(name, "control", way, data) for name, way, data in controls),
        *(vector(name, "message", way, data, is_datagram) for name, way, data, is_datagram in messages),
    ]


def mutate(data: bytes, randomness: random.Random) -> bytes:
    """The bytes with one random change."""
    changed = bytearray(data)
    at = randomness.randrange(len(changed)) if changed else 0
    match randomness.randrange(5):
        case 0 if changed:
            changed[at] ^= 1 << randomness.randrange(8)
        case 1 if changed:
            del changed[at:]
        case 2 if changed:
            del changed[at]
        case 3:
            changed.insert(at, randomness.randrange(256))
        case _:
            changed += changed[at : at + 20]
    return bytes(changed)


def make() -> dict[str, Any]:
    """This side's half of the file; the same each time."""
    good = [vector(name, reads, way, door.encode(reads, value, way)) for name, reads, way, value in usable()]
    randomness = random.Random(SEED)
    changed = [
        vector(f"{item['name']}, changed", item["reads"], item["way"], mutate(data, randomness))
        for item in good
        if len(data := unpack(item["hex"])) < 1_500
        for _ in range(MUTATIONS)
    ]
    return {"identities": identities(), "vectors": good + broken() + changed}


def main() -> None:
    """Writes the whole file, with the half that Swift has made."""
    halves = {"swift": json.loads(Path(sys.argv[1]).read_text()), "python": make()}
    lines = ['{"note": "See NOTES.md and Tests/InteropTests/Peers/door_vectors.py."']
    for name, half in halves.items():
        for part, items in half.items():
            body = ",\n".join(json.dumps(item, ensure_ascii=False, sort_keys=True) for item in items)
            lines.append(f',"{name}.{part}": [\n{body}\n]')
    print("\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
