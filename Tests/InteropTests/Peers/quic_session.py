"""A TransportKit session on aioquic: control stream, bulk streams, datagrams and application streams (R5 to R12)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import (
    ConnectionTerminated,
    DatagramFrameReceived,
    HandshakeCompleted,
    QuicEvent,
    StopSendingReceived,
    StreamDataReceived,
    StreamReset,
)

import transportkit_framing as framing
from session import Delivery, Ended, Message

CONTROL_STREAM = 0
DATAGRAM_PAYLOAD = 1_100
"""What surely fits a datagram on any path that QUIC runs on."""


class StreamWasReset(Exception):
    """The peer gave the stream up."""

    def __init__(self, code: int) -> None:
        super().__init__(f"reset with {code}")
        self.code = code


class QuicStream:
    """An application stream: raw bytes in both directions."""

    def __init__(self, session: QuicSession, stream_id: int) -> None:
        self.id = stream_id
        self.stop_code: int | None = None
        self._session = session
        self._chunks: asyncio.Queue[bytes | StreamWasReset | None] = asyncio.Queue()

    def arrived(self, chunk: bytes | StreamWasReset | None) -> None:
        """Takes what the connection delivers; None is the end."""
        self._chunks.put_nowait(chunk)

    async def read(self) -> bytes | None:
        """Some bytes, or None after the last; raises `StreamWasReset`."""
        chunk = await self._chunks.get()
        if isinstance(chunk, StreamWasReset):
            raise chunk
        return chunk

    async def read_all(self) -> bytes:
        """Everything up to the end."""
        data = bytearray()
        while (chunk := await self.read()) is not None:
            data += chunk
        return bytes(data)

    async def read_exactly(self, length: int) -> bytes:
        """That many bytes, which must end where a chunk of the peer's ends."""
        data = bytearray()
        while len(data) < length:
            chunk = await self.read()
            if chunk is None:
                raise EOFError(f"the stream ended after {len(data)} of {length} bytes")
            data += chunk
        return bytes(data)

    def write(self, data: bytes, *, finish: bool = False) -> None:
        """Queues bytes, and the end after them."""
        self._session.write(self.id, data, finish=finish)

    def reset(self, code: int) -> None:
        """Gives both directions up."""
        self._session.reset(self.id, code)


class QuicSession(QuicConnectionProtocol):
    """One session; aioquic makes it, the scenarios use it."""

    def __init__(
        self,
        quic: QuicConnection,
        stream_handler: object = None,
        *,
        routes: list[str] | None = None,
        opened: Callable[[QuicSession], None] | None = None,
    ) -> None:
        super().__init__(quic)
        self.target: str | None = None
        self.stops: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        self.streams: asyncio.Queue[QuicStream] = asyncio.Queue()
        self._is_client = quic.configuration.is_client
        self._routes = routes
        self._opened = opened
        self._messages: asyncio.Queue[Message | Ended] = asyncio.Queue()
        self._control = framing.FramedStream.control(is_listener=not self._is_client)
        self._bulk_in: dict[int, framing.FramedStream | None] = {}
        self._bulk_out: int | None = None
        self._application: dict[int, QuicStream] = {}
        self._end: Ended | None = None
        self.ended = asyncio.Event()
        self.handshake_done = asyncio.Event()

    # What the scenarios call.

    @property
    def is_resumed(self) -> bool:
        """Whether TLS resumed an earlier session."""
        return self._quic.tls.session_resumed

    @property
    def took_early_data(self) -> bool:
        """Whether the server took early data."""
        return self._quic.tls.early_data_accepted

    async def start(self, target: str) -> None:
        """Opens the control stream and says what is wanted (R5)."""
        self.write(self.open_raw(is_unidirectional=False), framing.encode_target(target))

    async def send(self, message: Message) -> None:
        """Sends a message in the way it asks for (R6 to R9)."""
        if self._end is not None:
            raise self._end
        if message.delivery is Delivery.UNRELIABLE and len(message.data) <= DATAGRAM_PAYLOAD:
            self._quic.send_datagram_frame(message.data)
            self.transmit()
        elif message.delivery is Delivery.BULK:
            if self._bulk_out is None:
                self._bulk_out = self.open_raw(is_unidirectional=True)
                self.write(self._bulk_out, framing.encode_varint(framing.BULK_KIND))
            self.write(self._bulk_out, framing.encode_message(message.data))
        else:
            self.write(CONTROL_STREAM, framing.encode_message(message.data))

    async def receive(self) -> Message:
        """The next message; raises `Ended` when there will be none."""
        if self._messages.empty() and self._end is not None:
            raise self._end
        item = await self._messages.get()
        if isinstance(item, Ended):
            raise item
        return item

    async def end(self, code: int, reason: str) -> None:
        """Ends the session once the peer has acknowledged what was sent (R11)."""
        if self._end is None:
            while any(not stream.sender.buffer_is_empty for stream in self._quic._streams.values()):
                await self.ping()
            self.close(error_code=code, reason_phrase=reason)

    def open_stream(self) -> QuicStream:
        """Opens an application stream; the peer sees it with its first byte."""
        stream = QuicStream(self, self.open_raw(is_unidirectional=False))
        self._application[stream.id] = stream
        return stream

    # Raw access, for scenarios that break the rules.

    def open_raw(self, *, is_unidirectional: bool) -> int:
        """Takes the next stream number; nothing is sent yet."""
        stream_id = self._quic.get_next_available_stream_id(is_unidirectional=is_unidirectional)
        self._quic.send_stream_data(stream_id, b"")
        return stream_id

    def write(self, stream_id: int, data: bytes, *, finish: bool = False) -> None:
        """Sends bytes on any stream, with what else is sent in this turn of the event loop."""
        self._quic.send_stream_data(stream_id, data, end_stream=finish)
        self._transmit_soon()

    def reset(self, stream_id: int, code: int) -> None:
        """Gives up both directions of a stream, as far as it has them."""
        self._quic.reset_stream(stream_id, code)
        if not stream_id & 2:
            self._quic.stop_stream(stream_id, code)
        self.transmit()

    # What the connection delivers.

    def quic_event_received(self, event: QuicEvent) -> None:
        """Sorts what happened to whom it concerns."""
        match event:
            case StreamDataReceived():
                self._stream_data(event.stream_id, event.data, event.end_stream)
            case StreamReset():
                self._stream_reset(event.stream_id, event.error_code)
            case StopSendingReceived():
                self._stop_sending(event.stream_id, event.error_code)
            case DatagramFrameReceived():
                self._messages.put_nowait(Message(event.data, Delivery.UNRELIABLE))
            case HandshakeCompleted():
                self.handshake_done.set()
            case ConnectionTerminated():
                self._terminated(event)

    def _stream_data(self, stream_id: int, data: bytes, is_end: bool) -> None:
        if stream_id == CONTROL_STREAM:
            self._read_control(data)
            if is_end:
                # R12: the control stream ends the session.
                self.close(error_code=framing.CLOSE_NORMAL, reason_phrase="the control stream ended")
        elif stream_id & 2:
            self._read_bulk(stream_id, data)
        else:
            stream = self._stream(stream_id)
            if data:
                stream.arrived(data)
            if is_end:
                stream.arrived(None)

    def _read_control(self, data: bytes) -> None:
        try:
            for item in self._control.feed(data):
                if isinstance(item, framing.Target):
                    self._open(item.text)
                else:
                    self._messages.put_nowait(Message(item.data))
        except framing.FramingError as error:
            self.close(error_code=error.close_code, reason_phrase=str(error))

    def _read_bulk(self, stream_id: int, data: bytes) -> None:
        reader = self._bulk_in.setdefault(stream_id, framing.FramedStream.unidirectional())
        if reader is None:
            return
        try:
            for item in reader.feed(data):
                assert isinstance(item, framing.Payload)
                self._messages.put_nowait(Message(item.data, Delivery.BULK))
        except framing.UnknownStreamKind:
            self._bulk_in[stream_id] = None
            self._quic.stop_stream(stream_id, 0)
        except framing.FramingError as error:
            self.close(error_code=error.close_code, reason_phrase=str(error))

    def _open(self, target: str) -> None:
        self.target = target
        path = target.split("?", 1)[0]
        if self._routes is not None and path not in self._routes:
            self.close(error_code=framing.CLOSE_NOBODY_THERE, reason_phrase="no such route")
        elif self._opened is not None:
            self._opened(self)

    def _stream(self, stream_id: int) -> QuicStream:
        if stream_id not in self._application:
            self._application[stream_id] = QuicStream(self, stream_id)
            self.streams.put_nowait(self._application[stream_id])
        return self._application[stream_id]

    def _stream_reset(self, stream_id: int, code: int) -> None:
        if stream_id & 2:
            # R7, R12: a reset bulk stream costs what was under way on it.
            self._bulk_in[stream_id] = None
        elif stream_id != CONTROL_STREAM:
            self._stream(stream_id).arrived(StreamWasReset(code))

    def _stop_sending(self, stream_id: int, code: int) -> None:
        self.stops.put_nowait((stream_id, code))
        if stream_id == self._bulk_out:
            self._bulk_out = None
        if stream_id in self._application:
            self._application[stream_id].stop_code = code

    def _terminated(self, event: ConnectionTerminated) -> None:
        # An application close has no frame type; everything else is the path's or the library's doing (R120).
        if event.frame_type is not None:
            self._end = Ended(framing.CLOSE_PATH_LOST, f"{event.error_code:#x} {event.reason_phrase}")
        else:
            self._end = Ended(event.error_code or framing.CLOSE_NONE_GIVEN, event.reason_phrase)
        self._messages.put_nowait(self._end)
        for stream in self._application.values():
            stream.arrived(StreamWasReset(0))
        self.ended.set()
