"""The framing's own tests."""

import random
import unittest

from transportkit_framing import (
    CLOSE_BAD_TARGET,
    CLOSE_TOO_BIG,
    VARINT_MAX,
    FramedStream,
    FramingError,
    Item,
    Payload,
    Target,
    UnknownStreamKind,
    decode_varint,
    encode_message,
    encode_target,
    encode_varint,
)


class VarintTests(unittest.TestCase):
    def test_the_samples_of_rfc_9000_appendix_a_1(self) -> None:
        samples = {
            "c2197c5eff14e88c": 151_288_809_941_952_652,
            "9d7f3e7d": 494_878_333,
            "7bbd": 15_293,
            "25": 37,
            "4025": 37,
        }
        for text, value in samples.items():
            wire = bytes.fromhex(text)
            self.assertEqual(decode_varint(wire), (value, len(wire)))
            self.assertEqual(encode_varint(value, size=len(wire)), wire)

    def test_the_edges_change_the_size(self) -> None:
        edges = {0: 1, 63: 1, 64: 2, 16_383: 2, 16_384: 4, (1 << 30) - 1: 4, 1 << 30: 8, VARINT_MAX: 8}
        for value, size in edges.items():
            self.assertEqual(len(encode_varint(value)), size)
            self.assertEqual(decode_varint(encode_varint(value)), (value, size))

    def test_a_varint_that_is_cut_short_is_not_read(self) -> None:
        wire = encode_varint(VARINT_MAX)
        for length in range(len(wire)):
            self.assertIsNone(decode_varint(wire[:length]))

    def test_what_does_not_fit_is_refused(self) -> None:
        for value, size in [(-1, None), (VARINT_MAX + 1, None), (64, 1), (1, 3)]:
            with self.assertRaises(ValueError):
                encode_varint(value, size=size)


class FramedStreamTests(unittest.TestCase):
    def test_a_control_stream_reads_alike_however_it_is_cut(self) -> None:
        messages = [b"", b"a", bytes(63), bytes(64), bytes(16_384)]
        wire = encode_target("/echo?a=1") + b"".join(encode_message(message) for message in messages)
        expected = [Target("/echo?a=1"), *(Payload(message) for message in messages)]
        randomness = random.Random(20)
        for _ in range(50):
            stream = FramedStream.control(is_listener=True)
            items: list[Item] = []
            rest = wire
            while rest:
                length = randomness.choice([1, 2, 7, 1000, len(rest)])
                items += stream.feed(rest[:length])
                rest = rest[length:]
            self.assertEqual(items, expected)
            self.assertEqual(stream.buffered, 0)

    def test_a_dialer_reads_messages_without_a_target(self) -> None:
        stream = FramedStream.control(is_listener=False)
        self.assertEqual(list(stream.feed(encode_message(b"hello"))), [Payload(b"hello")])

    def test_lengths_in_longer_forms_are_read(self) -> None:
        stream = FramedStream.control(is_listener=True)
        wire = encode_target("/", length_size=8) + encode_message(b"x", length_size=4)
        self.assertEqual(list(stream.feed(wire)), [Target("/"), Payload(b"x")])

    def test_a_long_message_is_refused_at_its_length(self) -> None:
        stream = FramedStream.control(is_listener=False, limit=10)
        self.assertEqual(list(stream.feed(encode_message(bytes(10)))), [Payload(bytes(10))])
        with self.assertRaises(FramingError) as caught:
            list(stream.feed(encode_varint(11)))
        self.assertEqual(caught.exception.close_code, CLOSE_TOO_BIG)

    def test_unusable_targets_are_refused(self) -> None:
        unusable = [b"", b"echo", b"/a b", b"/a#b", b"/\x7f", b"/\xff\xfe", b"/" + bytes(1), b"/" * 4097]
        for target in unusable:
            with self.assertRaises(FramingError, msg=repr(target[:10])) as caught:
                list(FramedStream.control(is_listener=True).feed(encode_message(target)))
            self.assertEqual(caught.exception.close_code, CLOSE_BAD_TARGET)
        longest = b"/" * 4096
        read = list(FramedStream.control(is_listener=True).feed(encode_message(longest)))
        self.assertEqual(read, [Target(longest.decode())])

    def test_a_bulk_stream_starts_with_its_kind(self) -> None:
        stream = FramedStream.unidirectional()
        self.assertEqual(list(stream.feed(b"\x00" + encode_message(b"bulk"))), [Payload(b"bulk")])

    def test_another_kind_is_told_apart(self) -> None:
        with self.assertRaises(UnknownStreamKind) as caught:
            list(FramedStream.unidirectional().feed(encode_varint(0x21) + b"anything"))
        self.assertEqual(caught.exception.kind, 0x21)


if __name__ == "__main__":
    unittest.main()
