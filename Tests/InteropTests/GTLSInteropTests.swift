import Foundation
import QUICTransport
import Testing
import TransportIO
import TransportKit

/// QUIC against the programs of ngtcp2's authors, `gtlsserver` and `gtlsclient` of Debian. They speak HTTP/3, so it goes
/// as far as the wire does: versions, TLS, transport parameters, address validation, lost packets, and the end.
@Suite(.enabled(if: GTLS.isInstalled, "no gtlsserver and gtlsclient; bin/setup test installs them"), .serialized)
struct GTLSInteropTests {
    @Test(.timeLimit(.minutes(1)), arguments: [[], ["--validate-addr"], ["--tx-loss=0.1", "--rx-loss=0.1"]])
    func `The dialer gets through the handshake, and refuses what is no message`(flags: [String]) async throws {
        try await Rig.with(.quic) { rig in
            let files = try Rig.certificate.get()
            let port = try await GTLS.freePort(rig)
            rig.dialOptions.applicationProtocol = "h3"
            let words = flags + ["127.0.0.1", "\(port)", files.key, files.certificate]
            try await Peer.with(GTLS.server, words) { peer in
                // HTTP/3 opens a stream of the type that carries bulk here, and what it says there is no length (R6).
                // Where that is lost on the way it may be first to complain, with H3_FRAME_UNEXPECTED (RFC 9114 §8.1).
                let isLossy = flags.contains { $0.contains("loss") }
                await #expect { try await GTLS.useWhenBound(rig, port: port) } throws: { error in
                    "\(error)".contains("1009 too big") || isLossy && (error as? Close)?.code.rawValue == 0x105
                }
                // A close is sent again only where more comes from the peer, so it may be lost for good.
                if !isLossy { #expect(await peer.said("CONNECTION_CLOSE(0x1")) }
            }
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: [[], ["--tx-loss=0.1", "--rx-loss=0.1"]])
    func `The listener gets through the handshake, and refuses what is no message`(flags: [String]) async throws {
        try await Rig.with(.quic) { rig in
            rig.listenOptions.applicationProtocols = ["h3"]
            let listener = try await rig.listen()
            let port = "\(listener.endpoint.port)"
            let words = flags + ["--timeout=10s", "127.0.0.1", port, "https://127.0.0.1:\(port)/"]
            try await Peer.with(GTLS.client, words) { peer in
                #expect(await peer.said("Negotiated ALPN is h3"))
                #expect(await peer.said("QUIC handshake has completed"))
                // The close, or the answer of a listener that no longer knows the connection where the close was lost.
                #expect(await peer.said("ERR_DRAINING"), "\(peer.text.suffix(2000))")
            }
            await listener.close()
        }
    }
}

private enum GTLS {
    static let server = "/usr/sbin/gtlsserver"
    static let client = "/usr/bin/gtlsclient"

    static var isInstalled: Bool {
        [server, client].allSatisfy { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// A port that was free a moment ago: it does not choose its own.
    static func freePort(_ rig: Rig) async throws -> UInt16 {
        let listener = try await rig.listen()
        await listener.close()
        return listener.endpoint.port
    }

    /// Dials, and receives until the end. The program does not say when it is bound; until then the kernel refuses for it.
    static func useWhenBound(_ rig: Rig, port: UInt16) async throws {
        while true {
            do {
                let socket = try await rig.transport.dial(rig.url(port: port), options: rig.dialOptions)
                while true { _ = try await socket.receive() }
            } catch let error as TransportError where error.number == UInt64(ECONNREFUSED) {
                try Task.checkCancellation()
                await Task.yield()
            }
        }
    }
}
