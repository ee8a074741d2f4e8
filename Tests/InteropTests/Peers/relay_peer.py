"""A relay, a box or a client of one, on the `websockets` package.

    relay_peer.py relay [--epochs N]
    relay_peer.py box --port PORT --secret HEX [--messages N]
    relay_peer.py app --port PORT --secret HEX --box HEX [--messages N]

A relay prints `listening PORT`, a line for each peer that joins or leaves, and runs until it is killed; its clock may be some
epochs ahead. A box prints `key HEX`, echoes so many messages of its clients, and waits for the room to be empty. A client sends
so many and checks their echoes. Both end with 0 and `ok`, or with 1 and what went wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

import transportkit_relay as wire
from support import Failure, announce, check, pattern, run


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The command line, the process's own unless `words` are given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=["relay", "box", "app"])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--secret", type=bytes.fromhex, default=b"")
    parser.add_argument("--box", type=bytes.fromhex, default=b"")
    parser.add_argument("--messages", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=0)
    return parser.parse_args(words)


class Relay:
    """The rooms, as the contract has them, without the limits that only time shows."""

    def __init__(self, epochs: int) -> None:
        self._epochs = epochs
        self._rooms: dict[tuple[int, str], list[tuple[str, ServerConnection]]] = {}

    async def serve(self, peer: ServerConnection) -> None:
        assert peer.request is not None
        join = wire.Join.read(peer.request.path)
        if join is None:
            return await peer.close(4400, "join")
        epoch = wire.epoch_of(time.time()) + self._epochs
        if join.epoch != epoch:
            print(f"wrong epoch {join.epoch - epoch:+}", flush=True)
            return await peer.close(4409, str(epoch))
        key = (join.epoch, join.handle)
        room = self._rooms.setdefault(key, [])
        count = sum(role == join.role for role, _ in room)
        if join.role == "box" and count == 1:
            return await peer.close(4429, "uplink")
        if join.role == "app" and count == 4:
            return await peer.close(4429, "streams")
        others = [other for role, other in room if role != join.role]
        room.append((join.role, peer))
        print(f"joined {join.role}", flush=True)
        try:
            if others:
                await self._say(peer, "ready")
                if count == 0:
                    for other in others:
                        await self._say(other, "ready")
            async for message in peer:
                if isinstance(message, str):
                    if join.role == "box" and wire.CLAIM.fullmatch(message):
                        print("claim", flush=True)
                        continue
                    return await peer.close(4400, "text")
                if len(message) > wire.FRAME_LIMIT:
                    return await peer.close(4400, "frame")
                for role, other in list(room):
                    if role != join.role:
                        await self._say(other, message)
        except ConnectionClosed:
            pass
        finally:
            room.remove((join.role, peer))
            print(f"left {join.role}", flush=True)
            if not any(role == join.role for role, _ in room):
                for _, other in list(room):
                    await self._say(other, "gone")
            if not room:
                self._rooms.pop(key, None)

    async def _say(self, peer: ServerConnection, message: str | bytes) -> None:
        try:
            await peer.send(message)
        except ConnectionClosed:
            pass


async def relay(options: argparse.Namespace, ready: Callable[[int], None] = announce) -> None:
    """Runs a relay until it is cancelled."""
    rooms = Relay(options.epochs)
    listener = serve(rooms.serve, "127.0.0.1", 0, compression=None, max_size=1 << 20, ping_interval=None)
    async with listener as server:
        ready(next(iter(server.sockets)).getsockname()[1])
        await asyncio.Event().wait()


def dial(options: argparse.Namespace) -> connect:
    """Dials the room of this hour."""
    url = f"ws://127.0.0.1:{options.port}{wire.path(options.secret, options.role)}"
    return connect(url, compression=None, max_size=wire.FRAME_LIMIT, ping_interval=None, proxy=None)


async def word(peer: ClientConnection) -> str:
    """The next message, which must be a word."""
    said = await peer.recv()
    check(isinstance(said, str), f"a frame of {len(said)} bytes came before the word")
    assert isinstance(said, str)
    return said


async def box(options: argparse.Namespace, told: Callable[[str], None] | None = None) -> None:
    """Echoes what its clients say."""
    key = X25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw().hex()
    async with dial(options) as peer:
        await peer.send(f"deadman {'0' * 32}")
        if told:
            told(public)
        else:
            print(f"key {public}", flush=True)
        sessions: list[wire.Session] = []
        echoed = 0
        async for message in peer:
            if isinstance(message, str):
                check(message in ("ready", "gone"), f"the word {message!r}")
                if message == "gone" and echoed >= options.messages:
                    return
                continue
            for session in sessions:
                try:
                    text = session.open(message)
                except wire.Rejected:
                    continue
                await peer.send(session.seal(text))
                echoed += 1
                break
            else:
                try:
                    message2, _, session = wire.respond(key, message)
                except wire.Rejected:
                    continue
                sessions.append(session)
                await peer.send(message2)
        raise Failure(f"the relay closed with {peer.close_code} {peer.close_reason!r}")


async def app(options: argparse.Namespace) -> None:
    """Sends messages and checks their echoes."""
    async with dial(options) as peer:
        said = await word(peer)
        check(said == "ready", f"the word {said!r} came first")
        attempt = wire.Initiator(X25519PrivateKey.generate(), options.box)
        await peer.send(attempt.message1)
        session: wire.Session | None = None
        while session is None:
            message = await peer.recv()
            if isinstance(message, bytes) and len(message) == wire.MESSAGE_2:
                session = attempt.finish(message)
        for index in range(options.messages):
            text = pattern(index * 997 % (wire.FRAME_LIMIT - 24), index)
            await peer.send(session.seal(text))
            while True:
                message = await peer.recv()
                check(isinstance(message, bytes), f"the word {message!r} came in between")
                assert isinstance(message, bytes)
                try:
                    check(session.open(message) == text, f"message {index} came back changed")
                    break
                except wire.Rejected:
                    continue


def main() -> None:
    """Runs the role that the command line names."""
    options = arguments()
    run({"relay": relay, "box": box, "app": app}[options.role](options))


if __name__ == "__main__":
    main()
