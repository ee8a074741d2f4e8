"""The door's wire: the vectors of both sides, random messages, and random changes to them."""

import json
import os
import random
import unittest

import door_vectors
import pairing_vectors
import transportkit_door as door
from door_vectors import judge, make, mutate, unpack


def announced(test: str) -> random.Random:
    """Random numbers with a printed seed; `TRANSPORTKIT_SEED` brings them back."""
    seed = int(os.environ.get("TRANSPORTKIT_SEED", random.SystemRandom().randrange(1 << 64)))
    print(f"{test}: TRANSPORTKIT_SEED={seed}", flush=True)
    return random.Random(seed)


class VectorTests(unittest.TestCase):
    file = json.loads(door_vectors.FILE.read_text())

    def test_python_still_makes_its_half(self) -> None:
        half = make()
        self.assertEqual(self.file["python.identities"], half["identities"])
        self.assertEqual(self.file["python.vectors"], half["vectors"])

    def test_what_either_side_made_reads_alike(self) -> None:  # R164
        for maker, least in (("swift", 300), ("python", 250)):
            vectors = self.file[f"{maker}.vectors"]
            self.assertGreater(len(vectors), least)
            for item in vectors:
                with self.subTest(maker=maker, name=item["name"], hex=item["hex"][:80]):
                    verdict = judge(item["reads"], item["way"], unpack(item["hex"]), item.get("datagram", False))
                    expected = {part: item[part] for part in ("value", "exact", "error") if part in item}
                    self.assertEqual(verdict, expected)

    def test_every_fault_is_among_the_vectors(self) -> None:
        faults = {item["error"]["fault"] for item in self.file["python.vectors"] if "error" in item}
        self.assertEqual(
            faults, {"cutShort", "tooLong", "badLength", "outOfOrder", "missing", "badValue", "misplaced"}
        )

    def test_ids_and_hashes_are_the_same(self) -> None:  # R88, R95
        for item in self.file["swift.identities"] + self.file["python.identities"]:
            key, code = bytes.fromhex(item["key"]), bytes.fromhex(item["code"])
            home = door.home_id(key)
            self.assertEqual(home.hex(), item["homeBytes"])
            self.assertEqual(door.id_text(home), item["home"])
            self.assertEqual(door.id_text(door.device_id(key)), item["device"])
            self.assertEqual(door.pairing_hash(home, code).hex(), item["pair"])


class PairingLineTests(unittest.TestCase):
    def test_python_still_makes_its_vectors(self) -> None:  # R95
        self.assertEqual(json.loads(pairing_vectors.FILE.read_text())["vectors"], pairing_vectors.make())

    def test_every_line_is_written_as_it_was_read(self) -> None:
        for name, value in pairing_vectors.usable():
            with self.subTest(name=name):
                line = door.write_line(value)
                self.assertEqual(door.write_line(door.read_line(line)), line)


class RandomTests(unittest.TestCase):
    def test_random_messages_come_back(self) -> None:
        randomness = announced("test_random_messages_come_back")
        for _ in range(3_000):
            reads, way, value = random_value(randomness)
            data = door.encode(reads, value, way)
            self.assertEqual(door.decode(reads, data, way), value)

    def test_changed_messages_are_read_or_refused_and_no_more(self) -> None:
        randomness = announced("test_changed_messages_are_read_or_refused_and_no_more")
        refused = 0
        for _ in range(3_000):
            reads, way, value = random_value(randomness)
            data = door.encode(reads, value, way)
            for _ in range(randomness.randint(1, 4)):
                data = mutate(data, randomness)
            try:
                door.decode(reads, data, way)
            except door.WireError as error:
                self.assertTrue(0 <= error.offset <= len(data))
                refused += 1
        self.assertGreater(refused, 300)


def random_value(randomness: random.Random) -> tuple[str, str, door.Value]:
    """Any message that may be said."""
    reads = randomness.choice(["message", "control", *door.GREETINGS])
    way = randomness.choice(door.WAYS)

    def digits(count: int) -> str:
        return randomness.randbytes(count).hex()

    if reads == "message":
        kind = randomness.choice(["handshake", "sealed", *door.FRAME_NUMBERS])
        if kind in ("handshake", "sealed"):
            return reads, way, {"kind": kind, "body": digits(randomness.randint(25, 500))}
        if kind == "begin":
            way = randomness.choice(["clientToDoor", "doorToBox"])
        device = {"device": digits(16)} if way in door.BOX_LEG else {}
        length = randomness.randint(0 if kind == "tun" else 1, 300)
        return reads, way, {"kind": kind, **device, "sid": digits(8), "d": digits(length)}
    value: door.Value = {}
    if reads == "control":
        value["type"] = randomness.choice(list(door.CONTROLS))
        way = randomness.choice(door.CONTROLS[value["type"]].ways)
        names = door.names_of(value["type"], way)
    else:
        names = door.GREETINGS[reads].fields
    names_of_caps = randomness.sample(["tun", "mux.1", "a", "b-c", "0"], randomness.randint(0, 5))
    keys = sorted({digits(32) for _ in range(randomness.randint(0, 20))})
    values = {
        "home": digits(16), "pair": digits(32), "tun": digits(8 + randomness.randint(1, 200)), "device": digits(16),
        "window": str(randomness.randint(door.WINDOW_MIN, door.WINDOW_MAX)), "caps": ",".join(sorted(names_of_caps)),
        "sid": digits(8), "total": str(randomness.getrandbits(62)), "keys": "".join(keys), "nonce": digits(8),
        "more": str(randomness.randint(0, 1)), "seconds": str(randomness.randint(1, door.SECONDS_MAX)),
    }  # fmt: skip
    for name in names:
        if not name.endswith("?") or randomness.random() < 0.5:
            value[name.rstrip("?")] = values[name.rstrip("?")]
    return reads, way, value


if __name__ == "__main__":
    unittest.main()
