"""Writes Tests/vectors/framing.json from this directory's framing.

    python make_vectors.py > ../../vectors/framing.json

A run of bytes is written as `{"hex": …}`, repeated `count` times where that is given, so that long messages stay short.
"""

from __future__ import annotations

import json
import sys

import transportkit_framing as framing

Run = dict[str, str | int]
Stream = dict[str, object]


def run(data: bytes, count: int = 1) -> Run:
    """Bytes as they stand in the file."""
    return {"hex": data.hex()} if count == 1 else {"hex": data.hex(), "count": count}


def varints() -> list[dict[str, object]]:
    """Every size at its edges, and longer forms, which may be read but are never written."""
    values = [0, 1, 37, 63, 64, 15_293, 16_383, 16_384, 494_878_333, (1 << 30) - 1, 1 << 30, 1 << 40, framing.VARINT_MAX]
    shortest: list[dict[str, object]] = [
        {"value": str(value), "hex": framing.encode_varint(value).hex(), "shortest": True} for value in values
    ]
    longer: list[dict[str, object]] = [
        {"value": str(value), "hex": framing.encode_varint(value, size=size).hex(), "shortest": False}
        for value, size in [(0, 2), (0, 8), (37, 2), (37, 4), (63, 8), (16_383, 4), ((1 << 30) - 1, 8)]
    ]
    return shortest + longer


def messages(*lengths: int, size: int | None = None) -> tuple[list[Run], list[Run]]:
    """A part of a stream with a message of each length, and the messages in it."""
    wire: list[Run] = []
    expected: list[Run] = []
    for number, length in enumerate(lengths):
        payload = run(bytes([number + 1]), length) if length else run(b"")
        wire += [run(framing.encode_varint(length, size=size)), payload]
        expected.append(payload)
    return wire, expected


def stream(kind: str, name: str, head: bytes, body: tuple[list[Run], list[Run]] = ([], []), **more: object) -> Stream:
    """One stream: its bytes, and what a reader with a limit of 1 MiB makes of them."""
    wire, expected = body
    return {"kind": kind, "name": name, "wire": [run(head), *wire], "messages": expected, **more}


def streams() -> list[Stream]:
    """Streams of each kind, whole and broken."""
    target = "/v1/app?token=a%20b"
    encoded = framing.encode_target(target)
    longest = "/" + "x" * (framing.TARGET_LIMIT - 1)
    over = framing.MESSAGE_LIMIT + 1
    usable = [
        stream("listener", "a target alone", framing.encode_target("/"), target="/"),
        stream("listener", "the longest target", framing.encode_target(longest), target=longest),
        stream("listener", "a target in UTF-8", framing.encode_target("/größe"), target="/größe"),
        stream("listener", "a target and messages", encoded, messages(0, 1, 63, 64), target=target),
        stream(
            "listener", "lengths in longer forms", framing.encode_target("/", length_size=8), messages(3, 3, size=4),
            target="/",
        ),
        stream("dialer", "messages at the edges", b"", messages(0, 63, 64, 16_383, 16_384, 0)),
        stream("dialer", "the longest message", b"", messages(framing.MESSAGE_LIMIT)),
        stream("unidirectional", "bulk", b"\x00", messages(1, 0, 16_384)),
        stream("unidirectional", "bulk with a kind in a longer form", b"\x40\x00", messages(5)),
    ]
    broken = [
        stream("listener", "no bytes of target", framing.encode_varint(0), close=framing.CLOSE_BAD_TARGET),
        stream(
            "listener", "a target one byte too long", framing.encode_varint(framing.TARGET_LIMIT + 1),
            close=framing.CLOSE_BAD_TARGET,
        ),
        *(
            stream("listener", name, framing.encode_message(data), close=framing.CLOSE_BAD_TARGET)
            for name, data in {
                "a target without its slash": b"echo",
                "a target that is not UTF-8": b"/\xc3\x28",
                "a target with a space": b"/a b",
                "a target with a fragment": b"/a#b",
                "a target with a control character": b"/a\x7f",
            }.items()
        ),
        stream("dialer", "a message one byte too long", framing.encode_varint(over), close=framing.CLOSE_TOO_BIG),
        stream("dialer", "a message of 2^40 bytes", framing.encode_varint(1 << 40), close=framing.CLOSE_TOO_BIG),
        stream(
            "listener", "a message too long after one that is not", encoded,
            (messages(2)[0] + [run(framing.encode_varint(over))], messages(2)[1]),
            target=target, close=framing.CLOSE_TOO_BIG,
        ),
        stream(
            "unidirectional", "bulk one byte too long", b"\x00" + framing.encode_varint(over),
            close=framing.CLOSE_TOO_BIG,
        ),
        stream("unidirectional", "an unknown kind", framing.encode_varint(0x21), unknownKind=0x21),
        stream("unidirectional", "a large unknown kind", framing.encode_varint(1 << 40), unknownKind=1 << 40),
    ]
    return usable + broken


def main() -> None:
    """Writes the file to standard output."""
    note = (
        "Made by Tests/InteropTests/Peers/make_vectors.py. `kind` says who reads: the listener or the dialer of a control "
        "stream, or either of a unidirectional one; the limit is 1 MiB. `close` is the code with which the reader ends."
    )
    json.dump({"note": note, "varints": varints(), "streams": streams()}, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
