"""The relay peers against each other and against the vectors, before anything of TransportKit is tested with them."""

from __future__ import annotations

import asyncio
import json
import unittest
from pathlib import Path

import relay_peer
import transportkit_relay as wire

VECTORS = Path(__file__).resolve().parents[2] / "vectors"


class RelayTests(unittest.IsolatedAsyncioTestCase):
    def test_handles(self) -> None:
        vectors = json.loads((VECTORS / "rendezvous-handles.json").read_text())
        secret = bytes.fromhex(vectors["secret"])
        for vector in vectors["handles"]:
            self.assertEqual(wire.handle(secret, vector["epoch"], vectors["infoPrefix"]), vector["handle"])
        for vector in vectors["currentEpoch"]:
            self.assertEqual(wire.epoch_of(vector["nowMs"] / 1000), vector["epoch"])

    def test_joins(self) -> None:
        contract = json.loads((VECTORS / "relay-contract.json").read_text())
        for vector in contract["joinAccept"]:
            join = wire.Join.read(vector["path"])
            assert join is not None
            self.assertEqual((join.epoch, join.role), (vector["epoch"], vector["role"]))
        for path in contract["joinRefuse"]:
            self.assertIsNone(wire.Join.read(path))

    async def test_both_roles_through_the_relay(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_debug(False)
        port: asyncio.Future[int] = loop.create_future()
        key: asyncio.Future[str] = loop.create_future()
        secret = "01" * 32
        async with asyncio.timeout(30):
            relay = asyncio.create_task(relay_peer.relay(relay_peer.arguments(["relay"]), port.set_result))
            words = ["--port", str(await port), "--secret", secret, "--messages", "20"]
            box = asyncio.create_task(relay_peer.box(relay_peer.arguments(["box", *words]), key.set_result))
            await relay_peer.app(relay_peer.arguments(["app", *words, "--box", await key]))
            await box
            relay.cancel()


if __name__ == "__main__":
    unittest.main()
