"""The scenarios. One end drives and judges; the other answers, which is the same for all of them.

The answering end returns every message the way it came and every stream chunk by chunk, then `<end>` after the stream's
end. It reports a stream that was reset as a message `reset CODE`. Client and listener can take either part.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from websockets.typing import Data

import transportkit_framing as framing
from quic_session import QuicSession, QuicStream, StreamWasReset
from session import Delivery, Ended, Message, Session, receive_within
from support import Failure, check, pattern
from websocket_session import WebSocketSession

SIZES = [0, 1, 63, 64, 125, 126, 16_383, 16_384, 65_535, 65_536, framing.MESSAGE_LIMIT]
"""Lengths at which a length field of QUIC or of the WebSocket changes its form."""

DONE = (framing.CLOSE_NORMAL, "done")


# The answering part.


async def answer(session: Session, code: int, reason: str) -> None:
    """Answers until the other end closes, which it must do as told."""
    tasks: list[asyncio.Task[None]] = []
    if isinstance(session, QuicSession):
        tasks.append(asyncio.create_task(_answer_streams(session)))
    try:
        while True:
            await session.send(await session.receive())
    except Ended as end:
        check((end.code, end.reason) == (code, reason), f"ended with {end}, not with {code} {reason!r}")
    finally:
        for task in tasks:
            task.cancel()


async def _answer_streams(session: QuicSession) -> None:
    async with asyncio.TaskGroup() as group:
        while True:
            group.create_task(_answer_stream(session, await session.streams.get()))


async def _answer_stream(session: QuicSession, stream: QuicStream) -> None:
    try:
        while (chunk := await stream.read()) is not None:
            stream.write(chunk)
        stream.write(b"<end>", finish=True)
    except StreamWasReset as reset:
        if not session.ended.is_set():
            await session.send(Message(f"reset {reset.code}".encode()))


# What the driving parts share.


async def expect(session: Session, message: Message) -> None:
    """The next message must be this one."""
    received = await session.receive()
    if received != message:
        what = "another payload" if received.data != message.data else "the payload in another way"
        raise Failure(f"wanted {_outline(message)}, got {what}: {_outline(received)}")


async def expect_end(session: Session, code: int) -> None:
    """The other end must close with this code; messages still under way before it are let through."""
    try:
        while True:
            await session.receive()
    except Ended as end:
        check(end.code == code, f"ended with {end}, not with {code}")


async def still_answers(session: Session) -> None:
    """The session must have survived what was done to it."""
    await session.send(Message(b"still here"))
    await expect(session, Message(b"still here"))


async def finish(session: Session) -> None:
    """Ends a scenario that went well."""
    await session.end(*DONE)


def _outline(message: Message) -> str:
    kind = "text" if message.is_text else "bytes"
    return f"{len(message.data)} {kind} as {message.delivery.value} starting {message.data[:12]!r}"


# Both wires.


async def messages(session: Session) -> None:
    """Every length at which a form changes, whole and in order."""
    for seed, size in enumerate(SIZES):
        await session.send(Message(pattern(size, seed)))
    for seed, size in enumerate(SIZES):
        await expect(session, Message(pattern(size, seed)))
    await finish(session)


async def many(session: Session) -> None:
    """A thousand small messages under way at once."""
    for number in range(1000):
        await session.send(Message(str(number).encode()))
    for number in range(1000):
        await expect(session, Message(str(number).encode()))
    await finish(session)


# QUIC.


async def bulk(session: QuicSession) -> None:
    """Bulk in order among itself, whatever control does (R7)."""
    sizes = [0, 1, 16_384, framing.MESSAGE_LIMIT, 5]
    for seed, size in enumerate(sizes):
        await session.send(Message(pattern(size, seed), Delivery.BULK))
        await session.send(Message(b"between", Delivery.CONTROL))
    expected = [Message(pattern(size, seed), Delivery.BULK) for seed, size in enumerate(sizes)]
    expected_control = len(sizes)
    while expected or expected_control:
        received = await session.receive()
        if received.delivery is Delivery.CONTROL:
            check(received.data == b"between" and expected_control > 0, "an unexpected control message")
            expected_control -= 1
        else:
            check(bool(expected) and received == expected.pop(0), f"bulk out of order: {_outline(received)}")
    await finish(session)


async def datagrams(session: QuicSession) -> None:
    """Unreliable messages as datagrams; one that is too long takes the control stream (R8, R9)."""
    for size in [0, 1, 64, 1_000]:
        message = Message(pattern(size, size), Delivery.UNRELIABLE)
        for _ in range(20):
            # A datagram may be lost, even here: it is sent until it comes back.
            await session.send(message)
            if (received := await receive_within(session, 1)) is not None:
                break
        check(received == message, f"no datagram of {size} bytes came back")
    await still_answers(session)
    await session.send(Message(pattern(5_000), Delivery.UNRELIABLE))
    await expect(session, Message(pattern(5_000), Delivery.CONTROL))
    await finish(session)


async def streams(session: QuicSession) -> None:
    """Streams in both directions with half-close: an answer that starts before the end and ends after it."""
    for seed in range(3):
        stream = session.open_stream()
        stream.write(b"first")
        check(await stream.read_exactly(5) == b"first", "the stream did not answer before its end")
        stream.write(pattern(300_000, seed), finish=True)
        check(await stream.read_all() == pattern(300_000, seed) + b"<end>", "another answer on the stream")
    await finish(session)


async def hundred_streams(session: QuicSession) -> None:
    """A hundred streams at once; each gets its own answer."""
    opened = [session.open_stream() for _ in range(100)]
    for stream in opened:
        stream.write(f"stream {stream.id}".encode(), finish=True)
    for stream in opened:
        check(await stream.read_all() == f"stream {stream.id}<end>".encode(), f"another answer on {stream.id}")
    await finish(session)


async def reset(session: QuicSession) -> None:
    """A reset carries its code and costs one stream, never the session."""
    other = session.open_stream()
    other.write(b"other")
    stream = session.open_stream()
    stream.write(b"some bytes")
    await stream.read_exactly(10)
    stream.reset(77)
    await expect(session, Message(b"reset 77"))
    other.write(b"", finish=True)
    check(await other.read_all() == b"other<end>", "another stream was hurt by the reset")
    await finish(session)


async def long_forms(session: QuicSession) -> None:
    """Lengths in longer forms than they need, which a reader has to take."""
    for size in (2, 4, 8):
        session.write(0, framing.encode_message(b"long", length_size=size))
        await expect(session, Message(b"long"))
    await finish(session)


async def pieces(session: QuicSession) -> None:
    """A message of which every byte comes in a frame of its own."""
    for byte in framing.encode_message(pattern(100)):
        session.write(0, bytes([byte]))
        await asyncio.sleep(0)
    await expect(session, Message(pattern(100)))
    await finish(session)


async def bulk_reset(session: QuicSession) -> None:
    """A bulk stream that is reset half-way through a message costs that message (R7, R12)."""
    broken = session.open_raw(is_unidirectional=True)
    session.write(broken, b"\x00" + framing.encode_message(b"whole") + framing.encode_varint(1000) + bytes(10))
    await expect(session, Message(b"whole", Delivery.BULK))
    session.reset(broken, 5)
    await still_answers(session)
    await session.send(Message(b"on another stream", Delivery.BULK))
    await expect(session, Message(b"on another stream", Delivery.BULK))
    await finish(session)


async def bulk_stopped(session: QuicSession) -> None:
    """An end whose bulk stream is refused opens another one (R7)."""
    await session.send(Message(b"one", Delivery.BULK))
    await expect(session, Message(b"one", Delivery.BULK))
    for stream_id in list(session._bulk_in):
        session._quic.stop_stream(stream_id, 5)
    await still_answers(session)
    await session.send(Message(b"two", Delivery.BULK))
    await expect(session, Message(b"two", Delivery.BULK))
    check(len(session._bulk_in) == 2, f"{len(session._bulk_in)} bulk streams came, not 2")
    await finish(session)


async def unknown_stream(session: QuicSession) -> None:
    """A unidirectional stream of an unknown kind is refused with STOP_SENDING and otherwise ignored."""
    unknown = session.open_raw(is_unidirectional=True)
    session.write(unknown, framing.encode_varint(0x21) + b"from a later version")
    stopped, _ = await session.stops.get()
    check(stopped == unknown, f"stream {stopped} was refused, not {unknown}")
    await still_answers(session)
    await finish(session)


async def over_long(session: QuicSession) -> None:
    """A length of 2^40 ends the session with 1009 before anything of it is sent (R6)."""
    session.write(0, framing.encode_varint(1 << 40))
    await expect_end(session, framing.CLOSE_TOO_BIG)


async def over_long_bulk(session: QuicSession) -> None:
    """The same on a bulk stream, one byte above the limit."""
    stream = session.open_raw(is_unidirectional=True)
    session.write(stream, b"\x00" + framing.encode_varint(framing.MESSAGE_LIMIT + 1))
    await expect_end(session, framing.CLOSE_TOO_BIG)


async def end_of_control(session: QuicSession) -> None:
    """The end of the control stream ends the session (R12)."""
    session.write(0, b"", finish=True)
    await session.ended.wait()


async def key_update(session: QuicSession) -> None:
    """New keys and new connection numbers in the middle of a conversation (RFC 9000, RFC 9001 section 6)."""
    for _ in range(3):
        await still_answers(session)
        session.request_key_update()
        session.change_connection_id()
    await still_answers(session)
    await finish(session)


# WebSocket.


async def text(session: WebSocketSession) -> None:
    """Text stays text, in any script."""
    for words in ["", "plain", "Grüße, 世界, 🦔", "é" * 40_000]:
        message = Message(words.encode(), is_text=True)
        await session.send(message)
        await expect(session, message)
    await finish(session)


async def fragments(session: WebSocketSession) -> None:
    """Fragments are put together, also where a character is cut and a ping comes between."""
    parts: list[bytes] = [b"one ", b"", pattern(70_000), b" end"]

    async def slowly() -> AsyncIterator[bytes]:
        for part in parts:
            yield part
            await session.wire.ping()

    await session.wire.send(slowly())
    await expect(session, Message(b"".join(parts)))
    word = "naïve 🦔".encode()
    cut: list[Data] = [bytes([byte]) for byte in word]
    await session.wire.send(cut, text=True)
    await expect(session, Message(word, is_text=True))
    await finish(session)


async def ping(session: WebSocketSession) -> None:
    """A ping is answered with its own payload (R33); the library matches the answers to the pings."""
    for payload in [b"", b"a", bytes(125)]:
        pong = await session.wire.ping(payload)
        async with asyncio.timeout(10):
            await pong
    await finish(session)


async def quiet(session: WebSocketSession) -> None:
    """Says nothing for longer than the other end's idle limit: only its pings and our pongs keep the path (R28)."""
    await still_answers(session)
    check(await receive_within(session, 2) is None, "a message came in the silence")
    await still_answers(session)
    await finish(session)


async def too_big(session: WebSocketSession) -> None:
    """A message above the limit ends the session with 1009."""
    await session.wire.send(bytes(framing.MESSAGE_LIMIT + 1))
    await expect_end(session, framing.CLOSE_TOO_BIG)


async def over_limit(session: WebSocketSession) -> None:
    """The other end sends a message above this end's limit; the package must end the session with 1009."""
    try:
        await session.receive()
    except Ended as end:
        check(end.code == framing.CLOSE_TOO_BIG, f"ended with {end}")
        return
    raise Failure("a message above the limit came through")


async def bad_text(session: WebSocketSession) -> None:
    """Text that is not UTF-8 ends the session with 1007."""
    await session.wire.send(b"\xc3\x28", text=True)
    await expect_end(session, 1007)


Drive = Callable[..., Awaitable[None]]

BOTH: dict[str, Drive] = {"messages": messages, "many": many}

QUIC: dict[str, Drive] = BOTH | {
    "bulk": bulk,
    "datagrams": datagrams,
    "streams": streams,
    "hundred-streams": hundred_streams,
    "reset": reset,
    "long-forms": long_forms,
    "pieces": pieces,
    "bulk-reset": bulk_reset,
    "bulk-stopped": bulk_stopped,
    "unknown-stream": unknown_stream,
    "over-long": over_long,
    "over-long-bulk": over_long_bulk,
    "end-of-control": end_of_control,
    "key-update": key_update,
}

WEBSOCKET: dict[str, Drive] = BOTH | {
    "text": text,
    "fragments": fragments,
    "ping": ping,
    "quiet": quiet,
    "too-big": too_big,
    "over-limit": over_limit,
    "bad-text": bad_text,
}


async def play(session: Session, table: dict[str, Drive], name: str, code: int, reason: str) -> None:
    """Plays a part: `answer` and `close` go by code and reason, every other name is a scenario of the table."""
    if name == "answer":
        await answer(session, code, reason)
    elif name == "close":
        await still_answers(session)
        await session.end(code, reason)
    else:
        await table[name](session)
