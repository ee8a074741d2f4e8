#!/usr/bin/env python3
"""Measures TransportKit beside other programs in one run and prints ratios.

Every row runs ours and the peer in turn, `--rounds` times, odd rounds in reverse order, so that a wave of foreign load
hits both. A row's score is the median of the ratios within each round. Ping-pong rows pin both ends to one core; the others
leave placement to the kernel. Servers are started once per row, on ports that the kernel chose, and ended by pid.

    bin/compare                     every row, table on standard output
    bin/compare --row ws-ping       one row
    bin/compare --write             also writes the table into docs/performance.md
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build" / "release"
BENCH = str(BUILD / "bench")
HERE = pathlib.Path(__file__).resolve().parent
ONE_CORE = ["taskset", "-c", "0"]


class Unavailable(Exception):
    """A peer is not installed; the row is skipped and says so."""


@dataclass
class Row:
    """One comparison: two measurements, what they measure, and the bar their ratio has to clear."""

    name: str
    what: str
    unit: str
    peer: str
    higher_is_better: bool
    bar: float
    prepare: Callable[[ExitStack, pathlib.Path], tuple[Callable[[], float], Callable[[], float] | None]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def needs(program: str, package: str) -> str:
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if found is None:
        raise Unavailable(f"{program} is missing (Debian package {package})")
    return found


@contextmanager
def running(command: list[str], ready: str | None = None, port: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """Starts a server, waits for its line `ready` or for its TCP port, and ends it by pid."""
    out = subprocess.PIPE if ready else subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL, text=True)
    try:
        if ready:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(ready):
                    break
            else:
                raise RuntimeError(f"{command[0]} ended before it was ready")
        deadline = time.monotonic() + 10
        while port is not None:
            try:
                socket.create_connection(("127.0.0.1", port), 0.5).close()
                break
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise RuntimeError(f"{command} does not listen on {port}") from None
                time.sleep(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def measure(command: list[str]) -> float:
    """Runs one of our measuring commands, which prints one JSON object with the key `value`."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")
    return float(json.loads(done.stdout.strip().splitlines()[-1])["value"])


def serve(stack: ExitStack, work: pathlib.Path, *, plain: bool = False, pinned: bool = False) -> tuple[int, list[str]]:
    """Our listener with the routes /echo and /source; returns its port and the client's flags."""
    return serve_process(stack, work, plain=plain, pinned=pinned)[:2]


def serve_process(
    stack: ExitStack, work: pathlib.Path, *, plain: bool = False, pinned: bool = False
) -> tuple[int, list[str], int]:
    """The same, and its process id."""
    port = free_port()
    scheme = "ws" if plain else "wss"
    command = [BENCH, "serve", f"{scheme}://127.0.0.1:{port}", "--state", str(work)]
    process = stack.enter_context(running((ONE_CORE if pinned else []) + command, ready="ready"))
    return port, [] if plain else ["--trust", str(work / "certificate.pem")], process.pid


# --- rows -------------------------------------------------------------------------------------------------------------


def quic_ping(stack: ExitStack, work: pathlib.Path):
    port, flags = serve(stack, work, pinned=True)
    raw = free_port()
    stack.enter_context(running(ONE_CORE + [BENCH, "raw-echo", "udp", str(raw)], ready="ready"))
    url = f"wss://127.0.0.1:{port}/echo"
    ours = ONE_CORE + [BENCH, "ping", url, *flags, "--transport", "quic"]
    return lambda: measure(ours), lambda: measure(ONE_CORE + [BENCH, "raw-ping", "udp", str(raw)])


def ws_ping(stack: ExitStack, work: pathlib.Path):
    port, flags = serve(stack, work, plain=True, pinned=True)
    raw = free_port()
    stack.enter_context(running(ONE_CORE + [BENCH, "raw-echo", "tcp", str(raw)], ready="ready"))
    url = f"ws://127.0.0.1:{port}/echo"
    ours = ONE_CORE + [BENCH, "ping", url, *flags, "--transport", "websocket-plain"]
    return lambda: measure(ours), lambda: measure(ONE_CORE + [BENCH, "raw-ping", "tcp", str(raw)])


def ws_echo(size: int, tls: bool):
    def prepare(stack: ExitStack, work: pathlib.Path):
        node = needs("node", "nodejs")
        if not pathlib.Path("/usr/share/nodejs/ws").exists():
            raise Unavailable("node-ws is missing (Debian package node-ws)")
        port, flags = serve(stack, work, plain=not tls)
        scheme = "wss" if tls else "ws"
        other = free_port()
        files = [str(work / "certificate.pem"), str(work / "key.pem")] if tls else []
        stack.enter_context(running([node, str(HERE / "node-ws-echo.js"), str(other), *files], ready="ready"))

        def load(to: int) -> list[str]:
            return [
                BENCH, "load", f"{scheme}://127.0.0.1:{to}/echo", *flags, "--transport", "websocket-plain",
                "--size", str(size), "--in-flight", "64",
            ]  # fmt: skip

        return lambda: measure(load(port)), lambda: measure(load(other))

    return prepare


def quic_bulk(stack: ExitStack, work: pathlib.Path):
    server, client = needs("gtlsserver", "ngtcp2-server"), needs("gtlsclient", "ngtcp2-client")
    port, flags = serve(stack, work)
    size = 400_000_000
    with open(work / "bulk", "wb") as file:
        file.truncate(size)
    other = free_port()
    stack.enter_context(
        running([server, "-q", "--htdocs", str(work), "127.0.0.1", str(other), str(work / "key.pem"),
                 str(work / "certificate.pem")])  # fmt: skip
    )
    time.sleep(0.5)  # it prints nothing when it is bound

    def theirs() -> float:
        start = time.monotonic()
        subprocess.run(
            [client, "-q", "--exit-on-all-streams-close", "127.0.0.1", str(other), f"https://127.0.0.1:{other}/bulk"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120,
        )  # fmt: skip
        return size / (time.monotonic() - start) / 1e6

    url = f"wss://127.0.0.1:{port}/source"
    ours = [BENCH, "bulk", url, *flags, "--transport", "quic", "--bytes", str(size)]
    return lambda: measure(ours), theirs


def stunnel_pair(stack: ExitStack, work: pathlib.Path, source: int) -> int:
    stunnel = needs("stunnel4", "stunnel4")
    inner, outer = free_port(), free_port()
    common = f"foreground = yes\npid =\ndebug = 3\ncert = {work}/certificate.pem\nkey = {work}/key.pem\n"
    for name, client, accept, connect in (("server", "no", inner, source), ("client", "yes", outer, inner)):
        config = work / f"stunnel-{name}.conf"
        config.write_text(
            f"{common}[bench]\nclient = {client}\naccept = 127.0.0.1:{accept}\nconnect = 127.0.0.1:{connect}\n"
            "ciphersuites = TLS_AES_128_GCM_SHA256\n"
        )
        stack.enter_context(running([stunnel, str(config)]))
    time.sleep(0.5)
    return outer


def forward_entry(stack: ExitStack, work: pathlib.Path, transport: str, source: int) -> int:
    """The program itself, with a config file at either end; returns the port that leads to `source`."""
    port, entry = free_port(), free_port()
    (work / "server.yaml").write_text(
        f"""
        listeners:
          public:
            url: "wss://127.0.0.1:{port}"
            tls: {{ selfSigned: ["127.0.0.1"], directory: . }}
            routes: {{ /forward: {{ service: forward, allow: ["tcp://127.0.0.1:{source}"] }} }}
        """
    )
    (work / "client.yaml").write_text(
        f"""
        carriers:
          main:
            kind: direct
            url: "wss://127.0.0.1:{port}/forward"
            transports: [{transport}]
            tls: {{ trust: {{ file: certificate.pem }} }}
        forwards:
          - {{ listen: "tcp://127.0.0.1:{entry}", carrier: main, to: "tcp://127.0.0.1:{source}" }}
        """
    )
    for name in ("server", "client"):
        stack.enter_context(running([str(BUILD / "transportkit"), "run", str(work / f"{name}.yaml")], ready="ready"))
    measure([BENCH, "raw-get", "--bytes", "1", str(entry)])  # the carrier is open from here on
    return entry


def forward(transport: str):
    def prepare(stack: ExitStack, work: pathlib.Path):
        source = free_port()
        stack.enter_context(running([BENCH, "raw-source", str(source)], ready="ready"))
        entry = forward_entry(stack, work, transport, source)
        (work / "pair").mkdir()
        subprocess.run(["cp", work / "certificate.pem", work / "key.pem", work / "pair"], check=True)
        other = stunnel_pair(stack, work / "pair", source)
        get = [BENCH, "raw-get", "--bytes", "800000000"]
        return lambda: measure(get + [str(entry)]), lambda: measure(get + [str(other)])

    return prepare


def forward_connect(stack: ExitStack, work: pathlib.Path):
    ssh, sshd, keygen = needs("ssh", "openssh-client"), needs("sshd", "openssh-server"), needs("ssh-keygen", "openssh-client")
    source = free_port()
    stack.enter_context(running([BENCH, "raw-source", str(source)], ready="ready"))
    entry = forward_entry(stack, work, "quic", source)
    for name in ("host", "user"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(work / name)], check=True)
    shutil.copy(work / "user.pub", work / "authorized")
    os.chmod(work / "authorized", 0o600)
    os.makedirs("/run/sshd", exist_ok=True)
    daemon, other = free_port(), free_port()
    stack.enter_context(
        running([sshd, "-D", "-e", "-p", str(daemon), "-h", str(work / "host"), "-o", "ListenAddress=127.0.0.1",
                 "-o", f"AuthorizedKeysFile={work}/authorized", "-o", "StrictModes=no", "-o", "PidFile=none",
                 "-o", "UsePAM=no", "-o", "PermitRootLogin=yes"], port=daemon)  # fmt: skip
    )
    stack.enter_context(
        running([ssh, "-N", "-p", str(daemon), "-i", str(work / "user"), "-o", "StrictHostKeyChecking=no",
                 "-o", "UserKnownHostsFile=/dev/null", "-L", f"127.0.0.1:{other}:127.0.0.1:{source}", "127.0.0.1"],
                port=other)  # fmt: skip
    )
    connect = [BENCH, "raw-connect", "--count", "500"]
    return lambda: measure(connect + [str(entry)]), lambda: measure(connect + [str(other)])


def idle(transport: str):
    def prepare(stack: ExitStack, work: pathlib.Path):
        port, flags, pid = serve_process(stack, work)
        url = f"wss://127.0.0.1:{port}/echo"
        # A number of its own: resident KiB the listener grew by, per connection.
        return lambda: measure(
            [BENCH, "idle", url, *flags, "--transport", transport, "--server", str(pid), "--count", "1000"]
        ), None

    return prepare


ROWS = [
    Row("quic-bulk", "one QUIC stream, bulk", "MB/s", "gtlsserver → gtlsclient", True, 1.3, quic_bulk),
    Row("quic-ping", "64 B over QUIC, p50, one core", "µs", "plain UDP", False, 4.0, quic_ping),
    Row("ws-ping", "64 B over a plain WebSocket, p50, one core", "µs", "plain TCP", False, 1.7, ws_ping),
    Row("ws-echo-64", "echo of 64 B, plain, 64 in flight", "messages/s", "node-ws", True, 3.0, ws_echo(64, False)),
    Row("ws-echo-16k-tls", "echo of 16 KiB, TLS, 64 in flight", "messages/s", "node-ws", True, 1.1, ws_echo(16384, True)),
    Row("forward-ws", "a forwarded flow over the WebSocket", "MB/s", "stunnel4 pair", True, 0.6, forward("websocket")),
    Row("forward-quic", "a forwarded flow over QUIC", "MB/s", "stunnel4 pair", True, 0.45, forward("quic")),
    Row("connect", "connect and one byte through an open carrier, p50", "µs", "ssh -L", False, 1.0, forward_connect),
    Row("idle-ws", "an idle connection over WebSocket and TLS", "KiB", "", False, 30, idle("websocket")),
    Row("idle-quic", "an idle connection over QUIC", "KiB", "", False, 64, idle("quic")),
]


def run(row: Row, rounds: int) -> str:
    with ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="transportkit-bench-")))
        ours_run, peer_run = row.prepare(stack, work)
        ours, peers, ratios = [], [], []
        for number in range(rounds if peer_run else 1):
            pair = [("ours", ours_run), ("peer", peer_run)]
            results: dict[str, float] = {}
            for name, call in pair if number % 2 == 0 else reversed(pair):
                if call is not None:
                    results[name] = call()
            ours.append(results["ours"])
            if "peer" in results:
                peers.append(results["peer"])
                ratios.append(results["ours"] / results["peer"])
    value = statistics.median(ours)
    if not ratios:
        met = value <= row.bar
        return f"| {row.what} | {value:,.1f} {row.unit} | | | ≤ {row.bar:g} | {'yes' if met else 'NO'} |"
    ratio = statistics.median(ratios)
    met = ratio >= row.bar if row.higher_is_better else ratio <= row.bar
    sign = "≥" if row.higher_is_better else "≤"
    spread = f"{min(ratios):.2f}–{max(ratios):.2f}"
    return (
        f"| {row.what} | {value:,.1f} {row.unit} | {row.peer}: {statistics.median(peers):,.1f} "
        f"| {ratio:.2f} ({spread}) | {sign} {row.bar:g} | {'yes' if met else 'NO'} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", action="append", choices=[row.name for row in ROWS], help="only this row")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the table into docs/performance.md")
    arguments = parser.parse_args()
    lines = ["| what | ours | peer | ratio (range) | bar | met |", "|---|---|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    failed = False
    for row in ROWS:
        if arguments.row and row.name not in arguments.row:
            continue
        try:
            line = run(row, arguments.rounds)
        except Unavailable as reason:
            line = f"| {row.what} | not measured: {reason} | | | | |"
        except (RuntimeError, subprocess.SubprocessError) as error:
            failed = True
            line = f"| {row.what} | failed: {error} | | | | |"
        lines.append(line)
        print(line, flush=True)
    if arguments.write:
        page = ROOT / "docs" / "performance.md"
        text = page.read_text()
        begin, end = "<!-- table: begin -->\n", "<!-- table: end -->"
        head, rest = text.split(begin)
        page.write_text(head + begin + "\n".join(lines) + "\n" + end + rest.split(end)[1])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
