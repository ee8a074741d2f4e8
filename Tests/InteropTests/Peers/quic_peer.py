"""A QUIC client or server that speaks TransportKit's framing, on aioquic.

    quic_peer.py server --scenario NAME --certificate FILE --key FILE
    quic_peer.py client --scenario NAME --port PORT --trust FILE

A server prints `listening PORT` and plays its scenario with the first session that opens. Either ends with 0 and `ok`, or
with 1 and what went wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import ssl
from collections.abc import Callable

from aioquic.asyncio.client import connect
from aioquic.asyncio.server import serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.tls import SessionTicket

import transportkit_framing as framing
from quic_session import QuicSession
from scenarios import QUIC, answer, expect, expect_end, finish, play
from session import Ended, Message
from support import Failure, announce, check, run

BAD_TARGETS: dict[str, bytes] = {
    "empty-target": framing.encode_varint(0),
    "long-target": framing.encode_varint(framing.TARGET_LIMIT + 1),
    "slashless-target": framing.encode_message(b"echo"),
    "latin-target": framing.encode_message(b"/\xff"),
    "spaced-target": framing.encode_message(b"/a b"),
    "fragment-target": framing.encode_message(b"/a#b"),
}
"""First bytes of a control stream that a listener answers with 4400 (R5)."""


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The command line, the process's own unless `words` are given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=["client", "server"])
    parser.add_argument("--scenario", required=True, help="answer, close, or a scenario's name")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--target", default="/echo")
    parser.add_argument("--alpn", default=framing.ALPN_PEER)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--trust", help="the PEM file whose certificates count; without it the machine's own")
    parser.add_argument("--code", type=int, default=framing.CLOSE_NORMAL, help="of `close`, or that `answer` awaits")
    parser.add_argument("--reason", default="done", help="the same for the reason")
    return parser.parse_args(words)


async def client(options: argparse.Namespace) -> None:
    """Dials, and plays a scenario."""
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=[options.alpn], max_datagram_frame_size=65_536, server_name="127.0.0.1"
    )
    if options.trust:
        configuration.load_verify_locations(options.trust)
    configuration.verify_mode = ssl.CERT_REQUIRED
    if options.scenario == "refused-handshake":
        await _refused_handshake(options, configuration)
        return
    if options.scenario == "early-data":
        await _early_data(options, configuration)
        return
    async with connect("127.0.0.1", options.port, configuration=configuration, create_protocol=QuicSession) as session:
        assert isinstance(session, QuicSession)
        if options.scenario == "probe":
            # R41: the handshake was all that was wanted.
            await session.end(framing.CLOSE_NORMAL, "")
        elif options.scenario in BAD_TARGETS:
            session.write(session.open_raw(is_unidirectional=False), BAD_TARGETS[options.scenario])
            await expect_end(session, framing.CLOSE_BAD_TARGET)
        elif options.scenario == "no-route":
            await session.start("/nowhere")
            await expect_end(session, framing.CLOSE_NOBODY_THERE)
        else:
            await session.start(options.target)
            await play(session, QUIC, options.scenario, options.code, options.reason)


async def _early_data(options: argparse.Namespace, configuration: QuicConfiguration) -> None:
    """Comes back with a ticket, and says target and first message before the handshake is done (R14)."""
    tickets: list[SessionTicket] = []
    for is_early in (False, True):
        configuration.session_ticket = tickets[-1] if is_early else None
        async with connect(
            "127.0.0.1",
            options.port,
            configuration=configuration,
            create_protocol=QuicSession,
            session_ticket_handler=tickets.append,
            wait_connected=not is_early,
        ) as session:
            assert isinstance(session, QuicSession)
            await session.start(options.target)
            await session.send(Message(b"first"))
            await expect(session, Message(b"first"))
            await session.handshake_done.wait()
            check(session.is_resumed == is_early, "the session was not resumed as it should be")
            check(session.took_early_data == is_early, "early data was not taken as it should be")
            await finish(session)
        check(bool(tickets), "no ticket came")
        # RFC 9001 §4.6.1: no other bound is allowed.
        check(tickets[-1].max_early_data_size == 0xFFFF_FFFF, "the ticket allows no early data")


async def _refused_handshake(options: argparse.Namespace, configuration: QuicConfiguration) -> None:
    """The handshake must fail: nobody is trusted, or there is no common protocol."""
    session: QuicSession | None = None

    def remember(quic: QuicConnection, stream_handler: object = None) -> QuicSession:
        nonlocal session
        session = QuicSession(quic)
        return session

    try:
        async with connect("127.0.0.1", options.port, configuration=configuration, create_protocol=remember):
            raise Failure("the handshake was done")
    except ConnectionError:
        assert session is not None
        try:
            await session.receive()
        except Ended as end:
            print(f"refused: {end.reason}", flush=True)


async def server(options: argparse.Namespace, ready: Callable[[int], None] = announce) -> None:
    """Listens, and plays a scenario with the first session that opens."""
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=[options.alpn], max_datagram_frame_size=65_536
    )
    configuration.load_cert_chain(options.certificate, options.key)
    sessions: asyncio.Queue[QuicSession] = asyncio.Queue()

    def make(quic: QuicConnection, stream_handler: object = None) -> QuicSession:
        session = QuicSession(quic, routes=["/echo"], opened=sessions.put_nowait)
        made.append(session)
        return session

    made: list[QuicSession] = []
    tickets: dict[bytes, SessionTicket] = {}
    listener = await serve(
        "127.0.0.1",
        0,
        configuration=configuration,
        create_protocol=make,
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
        session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
    )
    assert listener._transport is not None
    ready(listener._transport.get_extra_info("sockname")[1])
    if options.scenario == "refuse":
        # Somebody dials who is not let in, or who only looks; that must be its end.
        while not made:
            await asyncio.sleep(0.01)
        await made[0].ended.wait()
        check(sessions.empty(), "a session was opened")
    elif options.scenario == "early-data":
        for is_early in (False, True):
            session = await sessions.get()
            check(session.target == options.target, f"the target was {session.target!r}")
            await answer(session, options.code, options.reason)
            check(session.is_resumed == is_early, "the session was not resumed as it should be")
            check(session.took_early_data == is_early, "early data was not taken as it should be")
    else:
        session = await sessions.get()
        check(session.target == options.target, f"the target was {session.target!r}")
        await play(session, QUIC, options.scenario, options.code, options.reason)
        await session.wait_closed()
    listener.close()


def main() -> None:
    """Runs the role that the command line names."""
    options = arguments()
    run(client(options) if options.role == "client" else server(options))


if __name__ == "__main__":
    main()
