"""The peers against each other, before anything of TransportKit is tested with them."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import unittest
from collections.abc import Awaitable
from pathlib import Path
from types import ModuleType

import quic_peer
import websocket_peer
from scenarios import QUIC, WEBSOCKET
from support import make_certificate

TIME_LIMIT_SECONDS = 30

OVER_LONG = {
    "over-long": f"a message of {1 << 40} bytes, where 1048576 are allowed",
    "over-long-bulk": "a message of 1048577 bytes, where 1048576 are allowed",
}
"""Scenarios that the answering end closes, and the words with which the Python one does."""


class PeerTests(unittest.IsolatedAsyncioTestCase):
    certificate: str
    key: str

    @classmethod
    def setUpClass(cls) -> None:
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        certificate, key = make_certificate(Path(directory.name), ["127.0.0.1"])
        cls.certificate, cls.key = str(certificate), str(key)

    async def asyncSetUp(self) -> None:
        # unittest turns asyncio's debug mode on, which reports every step above 100 ms; aioquic logs every refusal.
        asyncio.get_running_loop().set_debug(False)
        logging.getLogger("quic").setLevel(logging.CRITICAL)

    async def all(self, cases: dict[str, Awaitable[None]]) -> None:
        """Runs a few cases at a time: most of their time is waiting for connections to drain."""
        room = asyncio.Semaphore(4)

        async def one(case: Awaitable[None]) -> None:
            async with room:
                await case

        results = await asyncio.gather(*(one(case) for case in cases.values()), return_exceptions=True)
        for name, result in zip(cases, results):
            with self.subTest(name=name):
                if result is not None:
                    raise result

    async def play(self, program: ModuleType, server: list[str], client: list[str]) -> None:
        """Runs both ends of one program; each judges the other."""
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(TIME_LIMIT_SECONDS), asyncio.TaskGroup() as group:
            group.create_task(program.server(program.arguments(["server", *server]), port.set_result))
            words = ["client", "--port", str(await port), *client]
            group.create_task(program.client(program.arguments(words)))

    async def quic(self, server: list[str], client: list[str]) -> None:
        own = ["--certificate", self.certificate, "--key", self.key]
        await self.play(quic_peer, [*own, *server], ["--trust", self.certificate, *client])

    async def websocket(self, server: list[str], client: list[str], *, tls: bool = False) -> None:
        own = ["--certificate", self.certificate, "--key", self.key] if tls else []
        trust = ["--trust", self.certificate] if tls else []
        await self.play(websocket_peer, [*own, *server], [*trust, *client])

    async def test_quic_scenarios_driven_by_either_end(self) -> None:
        cases: dict[str, Awaitable[None]] = {}
        for name in QUIC:
            words: list[str] = []
            if name in OVER_LONG:
                words = ["--code", "1009", "--reason", OVER_LONG[name]]
            if name == "end-of-control":
                words = ["--reason", "the control stream ended"]
            cases[f"{name} by client"] = self.quic(["--scenario", "answer", *words], ["--scenario", name])
            cases[f"{name} by server"] = self.quic(["--scenario", name], ["--scenario", "answer", *words])
        await self.all(cases)

    async def test_quic_close_codes_from_either_end(self) -> None:
        cases: dict[str, Awaitable[None]] = {}
        for code in ["1000", "1009", "4403", "4410"]:
            words = ["--code", code, "--reason", "Grüße"]
            cases[f"{code} by client"] = self.quic(["--scenario", "answer", *words], ["--scenario", "close", *words])
            cases[f"{code} by server"] = self.quic(["--scenario", "close", *words], ["--scenario", "answer", *words])
        await self.all(cases)

    async def test_quic_targets_that_are_refused_and_probes(self) -> None:
        names = [*quic_peer.BAD_TARGETS, "no-route", "probe"]
        await self.all({name: self.quic(["--scenario", "refuse"], ["--scenario", name]) for name in names})

    async def test_quic_without_a_common_protocol(self) -> None:
        await self.quic(["--scenario", "refuse", "--alpn", "h3"], ["--scenario", "refused-handshake"])

    async def test_quic_early_data(self) -> None:
        await self.quic(["--scenario", "early-data"], ["--scenario", "early-data"])

    async def test_websocket_scenarios_driven_by_either_end(self) -> None:
        cases: dict[str, Awaitable[None]] = {}
        for name in WEBSOCKET:
            # The package words its own refusals; TransportKit's are tested from Swift.
            if name in ("too-big", "bad-text", "over-limit"):
                continue
            for tls in (False, True):
                answer, drive = ["--scenario", "answer"], ["--scenario", name]
                cases[f"{name} by client, tls {tls}"] = self.websocket(answer, drive, tls=tls)
                cases[f"{name} by server, tls {tls}"] = self.websocket(drive, answer, tls=tls)
        await self.all(cases)

    async def test_websocket_close_codes_from_either_end(self) -> None:
        cases: dict[str, Awaitable[None]] = {}
        for code in ["1000", "1008", "4403", "4410"]:
            words = ["--code", code, "--reason", "Grüße"]
            answer, close = ["--scenario", "answer", *words], ["--scenario", "close", *words]
            cases[f"{code} by client"] = self.websocket(answer, close)
            cases[f"{code} by server"] = self.websocket(close, answer)
        await self.all(cases)

    async def test_websocket_refusals(self) -> None:
        for status in ["403", "404", "503"]:
            words = ["--status", status]
            await self.websocket(["--scenario", "answer", *words], ["--scenario", "refused", *words])


if __name__ == "__main__":
    unittest.main()
