"""A TransportKit session without streams on the `websockets` package."""

from __future__ import annotations

from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed

from session import Ended, Message


class WebSocketSession:
    """One session; `wire` is the package's own connection, for what only it can do."""

    def __init__(self, wire: Connection) -> None:
        self.wire = wire

    async def send(self, message: Message) -> None:
        """Sends a message; the wire has one way for all."""
        try:
            await self.wire.send(message.data, text=message.is_text)
        except ConnectionClosed as closed:
            raise self._ended(closed) from None

    async def receive(self) -> Message:
        """The next message; raises `Ended` when there will be none."""
        try:
            data = await self.wire.recv()
        except ConnectionClosed as closed:
            raise self._ended(closed) from None
        return Message(data.encode(), is_text=True) if isinstance(data, str) else Message(data)

    async def end(self, code: int, reason: str) -> None:
        """Ends the session with the close handshake, whose answer must carry the same code."""
        await self.wire.close(code, reason)
        if self.wire.close_code != code:
            raise Ended(self.wire.close_code or 1006, self.wire.close_reason or "")

    def _ended(self, closed: ConnectionClosed) -> Ended:
        # Without a close frame of the other end it is this end's own verdict that counts, such as 1009.
        frame = closed.rcvd or closed.sent
        return Ended(frame.code, frame.reason) if frame is not None else Ended(1006, str(closed))
