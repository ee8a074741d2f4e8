"""The vectors in Tests/vectors, replayed here as they are in Swift."""

import json
import unittest
from pathlib import Path
from typing import Any

from transportkit_framing import (
    FramedStream,
    FramingError,
    Payload,
    Target,
    UnknownStreamKind,
    decode_varint,
    encode_varint,
)

VECTORS = Path(__file__).parents[2] / "vectors"


def expand(runs: list[dict[str, Any]]) -> bytes:
    """The bytes that a list of runs stands for."""
    return b"".join(bytes.fromhex(run["hex"]) * run.get("count", 1) for run in runs)


def reader(kind: str) -> FramedStream:
    """The reader that a vector names."""
    if kind == "unidirectional":
        return FramedStream.unidirectional()
    return FramedStream.control(is_listener=kind == "listener")


class VectorTests(unittest.TestCase):
    def test_varints(self) -> None:
        varints = json.loads((VECTORS / "framing.json").read_text())["varints"]
        self.assertEqual(len(varints), 20)
        for vector in varints:
            wire, value = bytes.fromhex(vector["hex"]), int(vector["value"])
            self.assertEqual(decode_varint(wire), (value, len(wire)))
            self.assertEqual(encode_varint(value) == wire, vector["shortest"])

    def test_the_published_varints(self) -> None:
        published = json.loads((VECTORS / "quic-varint-rfc9000.json").read_text())
        for vector in published["samples"] + published["edges"]:
            wire = bytes.fromhex(vector["hex"])
            self.assertEqual(decode_varint(wire), (int(vector["value"]), len(wire)))

    def test_streams_read_alike_in_one_piece_and_in_many(self) -> None:
        streams = json.loads((VECTORS / "framing.json").read_text())["streams"]
        self.assertEqual(len(streams), 22)
        for vector in streams:
            wire = expand(vector["wire"])
            for step in {1, 1_000, max(len(wire), 1)} if len(wire) < 100_000 else {65_537, len(wire)}:
                with self.subTest(name=vector["name"], step=step):
                    self.assertEqual(self.read(vector["kind"], wire, step), self.expected(vector))

    def read(self, kind: str, wire: bytes, step: int) -> tuple[list[object], int | None, int | None]:
        items: list[object] = []
        stream = reader(kind)
        try:
            for start in range(0, len(wire), step):
                for item in stream.feed(wire[start : start + step]):
                    items.append(item)
        except FramingError as error:
            return items, error.close_code, None
        except UnknownStreamKind as error:
            return items, None, error.kind
        self.assertEqual(stream.buffered, 0)
        return items, None, None

    def expected(self, vector: dict[str, Any]) -> tuple[list[object], int | None, int | None]:
        items: list[object] = [Target(vector["target"])] if "target" in vector else []
        items += [Payload(expand([run])) for run in vector["messages"]]
        return items, vector.get("close"), vector.get("unknownKind")


if __name__ == "__main__":
    unittest.main()
