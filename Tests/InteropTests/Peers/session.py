"""The conversation as the scenarios see it, whatever carries it."""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass
from typing import Protocol


class Delivery(enum.Enum):
    """How a message travels."""

    CONTROL = "control"
    BULK = "bulk"
    UNRELIABLE = "unreliable"


@dataclass(frozen=True)
class Message:
    """One message, as it was sent or as it came."""

    data: bytes
    delivery: Delivery = Delivery.CONTROL
    is_text: bool = False


class Ended(Exception):
    """The conversation is over, with the close code and reason that this end saw."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"closed with {code} {reason!r}")
        self.code = code
        self.reason = reason


class Session(Protocol):
    """A conversation. `receive` raises `Ended` when it is over."""

    async def send(self, message: Message) -> None: ...

    async def receive(self) -> Message: ...

    async def end(self, code: int, reason: str) -> None: ...


async def receive_within(session: Session, seconds: float) -> Message | None:
    """The next message, or None if none comes in time."""
    try:
        async with asyncio.timeout(seconds):
            return await session.receive()
    except TimeoutError:
        return None
