"""Makes the vectors of the pairing line, Tests/vectors/pairing-line.json.

    python pairing_vectors.py > ../../vectors/pairing-line.json

Each is a text and what a reader says of it: its parts, or how it is none. The Swift tests read all of them and write the
good ones again.
"""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import transportkit_door as door
from door_vectors import key, mutate
from transportkit_framing import encode_varint

FILE = Path(__file__).parents[2] / "vectors" / "pairing-line.json"
SEED = 11
MUTATIONS = 60

Vector = dict[str, Any]


def judge(line: str) -> Vector:
    """What this side says of a text."""
    try:
        return {"value": door.read_line(line)}
    except door.LineError as error:
        return {"error": {"fault": str(error)}}
    except door.WireError as error:
        field = {"field": error.field} if error.field else {}
        return {"error": {"fault": error.fault, **field, "offset": error.offset}}


def vector(name: str, line: str) -> Vector:
    """A text and what this side says of it."""
    return {"name": name, "line": line, **judge(line)}


def text_of(data: bytes) -> str:
    """Any bytes in the form of a line."""
    return door.LINE_PREFIX + base64.urlsafe_b64encode(data).decode().rstrip("=")


CODE = bytes(range(16)).hex()
ONE = {"box": key(1).hex(), "doors": key(2).hex(), "code": CODE, "url": "wss://door.example:443"}


def usable() -> list[tuple[str, door.Value]]:
    """Lines at their edges."""
    url = "wss://door.example:8443/v1/app?tenant=7"
    return [
        ("the usual", ONE),
        ("two door keys", {**ONE, "doors": (key(3) + key(2)).hex()}),
        ("a path and a query", {**ONE, "url": url}),
        ("without TLS", {**ONE, "url": "ws://127.0.0.1:8080"}),
        ("a pin", {**ONE, "pins": key(4).hex()}),
        ("as many pins as there may be", {**ONE, "pins": (key(4) * 4).hex()}),
        ("the longest URL", {**ONE, "url": "wss://a.example:1/" + "x" * (512 - 18)}),
        ("other ends", {**ONE, "box": key(255).hex(), "code": "ff" * 16}),
    ]


def broken() -> list[tuple[str, str]]:
    """Texts that are no line, and a few odd ones that are."""
    good = door.write_line(ONE)

    def field(name: str, raw: bytes) -> bytes:
        return bytes([door.FIELDS[name].number]) + encode_varint(len(raw)) + raw

    home, box = field("home", door.home_id(key(1))), field("box", key(1))
    doors, code, url = field("doors", key(2)), field("code", bytes(16)), field("url", b"wss://door.example:443")
    parts = [
        ("nothing", b""),
        ("no home", box + doors + code + url),
        ("no box key", home + doors + code + url),
        ("no door key", home + box + code + url),
        ("no code", home + box + doors + url),
        ("no URL", home + box + doors + code),
        ("another home", field("home", door.home_id(key(9))) + box + doors + code + url),
        ("the id of a device", field("home", door.device_id(key(1))) + box + doors + code + url),
        ("a short home", field("home", bytes(15)) + box + doors + code + url),
        ("a short box key", home + field("box", bytes(31)) + doors + code + url),
        ("no key of the door", home + box + field("doors", b"") + code + url),
        ("half a door key", home + box + field("doors", bytes(48)) + code + url),
        ("three door keys", home + box + field("doors", bytes(96)) + code + url),
        ("a door key twice", home + box + field("doors", key(2) * 2) + code + url),
        ("a short code", home + box + doors + field("code", bytes(15)) + url),
        ("an empty URL", home + box + doors + code + field("url", b"")),
        ("a URL that is too long", home + box + doors + code + field("url", b"wss://a.example:1/" + b"x" * 495)),
        ("another scheme", home + box + doors + code + field("url", b"https://door.example:443")),
        ("port 0", home + box + doors + code + field("url", b"wss://door.example:0")),
        ("a URL that is no text", home + box + doors + code + field("url", b"wss://\xff")),
        ("no pin", home + box + doors + code + url + field("pins", b"")),
        ("half a pin", home + box + doors + code + url + field("pins", bytes(40))),
        ("five pins", home + box + doors + code + url + field("pins", bytes(160))),
        ("fields out of order", box + home + doors + code + url),
        ("a field twice", home + box + box + doors + code + url),
        ("an unknown field", home + box + doors + code + url + b"\xf0\x03abc"),
        ("a cut value", (home + box + doors + code + url)[:-1]),
    ]
    return [
        ("an empty text", ""),
        ("a line of another kind", "https://door.example"),
        ("a later version", "tk2:" + good[4:]),
        ("no version", "tk:" + good[4:]),
        ("only the beginning", "tk1:"),
        ("in capitals", good.upper()),
        ("spaces around it", f" \t{good}\r\n"),
        ("a space inside", good[:20] + " " + good[20:]),
        ("a line end inside", good[:20] + "\n" + good[20:]),
        ("padding", good + "=="),
        ("the other alphabet", good[:20] + "+" + good[21:]),
        ("a character too many", good[:-1] if len(good) % 4 == 2 else good + "A" * ((4 - (len(good) - 4) % 4 + 1) % 4)),
        ("too long", good + "A" * 2048),
        *((name, text_of(data)) for name, data in parts),
    ]


def make() -> list[Vector]:
    """All of the file; the same each time."""
    randomness = random.Random(SEED)
    good = [vector(name, door.write_line(value)) for name, value in usable()]
    fields = base64.urlsafe_b64decode(good[0]["line"][4:] + "==")
    changed = [vector(f"changed {number}", text_of(mutate(fields, randomness))) for number in range(MUTATIONS)]
    # Whether a URL with other characters is one is for each side's own URLs to say.
    changed = [item for item in changed if item.get("value", ONE)["url"] == ONE["url"]]
    changed = [item for item in changed if item.get("error", {}).get("field") != "url"]
    return good + [vector(name, line) for name, line in broken()] + changed


if __name__ == "__main__":
    body = ",\n".join(json.dumps(item, sort_keys=True) for item in make())
    print(f'{{"note": "See NOTES.md and Tests/InteropTests/Peers/pairing_vectors.py.", "vectors": [\n{body}\n]}}')
