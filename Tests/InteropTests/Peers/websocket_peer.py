"""A WebSocket client or server on the `websockets` package.

    websocket_peer.py server --scenario NAME [--certificate FILE --key FILE]
    websocket_peer.py client --scenario NAME --port PORT [--trust FILE | --tls]

A server prints `listening PORT` and plays its scenario with the first session that opens. Either ends with 0 and `ok`, or
with 1 and what went wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import http
import ssl
from collections.abc import Callable

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import InvalidStatus
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

import transportkit_framing as framing
from scenarios import WEBSOCKET, play
from support import Failure, announce, check, run
from websocket_session import WebSocketSession


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The command line, the process's own unless `words` are given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=["client", "server"])
    parser.add_argument("--scenario", required=True, help="answer, close, or a scenario's name")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--target", default="/echo")
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--trust", help="the PEM file whose certificates count; implies TLS")
    parser.add_argument("--tls", action="store_true", help="TLS with the machine's own trust")
    parser.add_argument("--subprotocol", action="append", default=[], help="offered; none is selected by the server")
    parser.add_argument("--offer-compression", action="store_true")
    parser.add_argument("--status", type=int, help="the HTTP status of a refusal, to give or to expect")
    parser.add_argument("--code", type=int, default=framing.CLOSE_NORMAL, help="of `close`, or that `answer` awaits")
    parser.add_argument("--reason", default="done", help="the same for the reason")
    return parser.parse_args(words)


async def client(options: argparse.Namespace) -> None:
    """Dials, and plays a scenario."""
    context = ssl.create_default_context(cafile=options.trust) if options.tls or options.trust else None
    scheme = "wss" if context else "ws"
    dial = connect(
        f"{scheme}://127.0.0.1:{options.port}{options.target}",
        ssl=context,
        # The package offers compression by default; it must be declined (R29).
        compression="deflate" if options.offer_compression else None,
        subprotocols=[Subprotocol(name) for name in options.subprotocol] or None,
        max_size=framing.MESSAGE_LIMIT,
        ping_interval=None,
        proxy=None,
    )
    match options.scenario:
        case "untrusted":
            try:
                await dial
            except ssl.SSLCertVerificationError as error:
                print(f"refused: {error.verify_message}", flush=True)
                return
            raise Failure("a certificate that nobody vouches for was taken")
        case "refused":
            try:
                await dial
            except InvalidStatus as error:
                status = error.response.status_code
                check(status == options.status, f"refused with {status}, not with {options.status}")
                return
            raise Failure("the upgrade was not refused")
        case scenario:
            async with dial as wire:
                check(not wire.protocol.extensions, "an extension was accepted")
                check(wire.subprotocol is None, f"the sub-protocol {wire.subprotocol!r} was selected")
                await play(WebSocketSession(wire), WEBSOCKET, scenario, options.code, options.reason)


async def server(options: argparse.Namespace, ready: Callable[[int], None] = announce) -> None:
    """Listens, and plays a scenario with the first session that opens."""
    context: ssl.SSLContext | None = None
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(options.certificate, options.key)
    outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(error: Exception | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(None)
        else:
            outcome.set_exception(error)

    def upgrade(wire: ServerConnection, request: Request) -> Response | None:
        try:
            check(request.path == options.target, f"the target was {request.path!r}")
            check("Sec-WebSocket-Extensions" not in request.headers, "an extension was offered")
            offered = request.headers.get("Sec-WebSocket-Protocol")
            check(offered == (",".join(options.subprotocol) or None), f"the offered sub-protocol was {offered!r}")
        except Failure as failure:
            settle(failure)
            raise
        if options.status is None:
            return None
        settle(None)
        return wire.respond(http.HTTPStatus(options.status), "not here\n")

    async def opened(wire: ServerConnection) -> None:
        try:
            await play(WebSocketSession(wire), WEBSOCKET, options.scenario, options.code, options.reason)
            await wire.wait_closed()
            settle(None)
        except Exception as error:  # noqa: BLE001: it is the program's verdict
            settle(error)

    async with serve(
        opened,
        "127.0.0.1",
        0,
        ssl=context,
        process_request=upgrade,
        # A server that selects no sub-protocol, whatever was offered.
        select_subprotocol=lambda wire, offered: None,
        compression="deflate",
        max_size=framing.MESSAGE_LIMIT,
        ping_interval=None,
    ) as listener:
        ready(next(iter(listener.sockets)).getsockname()[1])
        if options.scenario == "refuse":
            # A client that does not trust the certificate gives up in the TLS handshake; it ends this program.
            await asyncio.Event().wait()
        await outcome


def main() -> None:
    """Runs the role that the command line names."""
    options = arguments()
    run(client(options) if options.role == "client" else server(options))


if __name__ == "__main__":
    main()
