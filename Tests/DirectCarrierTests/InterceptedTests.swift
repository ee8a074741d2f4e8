import MemoryTransport
import Testing
import TransportKit
import TransportKitTesting

@testable import DirectCarrier

/// A portal, or a box that intercepts, answers in the service's place (B34).
@Suite struct InterceptedTests {
    /// What QUIC and the WebSocket met, and whether that is somebody else's answer.
    struct Row: Sendable, CustomTestStringConvertible {
        let quic: TransportError.Code?
        let webSocket: TransportError
        let isIntercepted: Bool

        init(_ quic: TransportError.Code?, _ code: TransportError.Code, _ isIntercepted: Bool, status: UInt64? = nil) {
            self.quic = quic
            webSocket = TransportError(code, "somebody spoke", number: status)
            self.isIntercepted = isIntercepted
        }

        var testDescription: String { "\(quic.map { "\($0)" } ?? "alone"), \(webSocket.code)" }
    }

    @Test(arguments: [
        Row(.timedOut, .certificateUnknownIssuer, true), Row(.timedOut, .certificateWrongHost, true),
        Row(.timedOut, .pinMismatch, true), Row(.refused, .certificateUnknownIssuer, true),
        Row(.unreachable, .pinMismatch, true), Row(.cancelled, .pinMismatch, true),
        // The service itself shows the same on both, or nothing tells the two cases apart.
        Row(.certificateUnknownIssuer, .certificateUnknownIssuer, false), Row(.pinMismatch, .pinMismatch, false),
        Row(.handshakeFailed, .certificateUnknownIssuer, false), Row(nil, .certificateUnknownIssuer, false),
        Row(.timedOut, .certificateExpired, false), Row(.timedOut, .certificateNotYetValid, false),
        Row(.timedOut, .certificateInvalid, false), Row(.timedOut, .timedOut, false),
        Row(.timedOut, .refused, false), Row(.timedOut, .handshakeFailed, false),
    ])
    func `A stranger's certificate where nothing else is heard is a portal's`(row: Row) {
        check(row, isSecured: true)
    }

    @Test(arguments: [
        // Without TLS anybody may send to a sign-in page, or show one.
        (false, 200, true), (false, 302, true), (false, 307, true), (false, 511, true), (true, 511, true),
        // With TLS it is the service that does.
        (true, 200, false), (true, 302, false), (true, 404, false), (false, 403, false), (false, 404, false),
        (false, 503, false),
    ])
    func `An HTTP answer is a portal's where it can be`(isSecured: Bool, status: UInt64, isIntercepted: Bool) {
        check(Row(nil, .upgradeRefused, isIntercepted, status: status), isSecured: isSecured)
        check(Row(.timedOut, .upgradeRefused, isIntercepted, status: status), isSecured: isSecured)
    }

    private func check(_ row: Row, isSecured: Bool) {
        let quic = row.quic.map { (transport: TransportName.quic, error: TransportError($0, "QUIC met this")) }
        let close = RaceFailure.close(
            [quic, (transport: .webSocket, error: row.webSocket)].compactMap(\.self), isSecured: isSecured)
        #expect((close.cause?.code == .intercepted) == row.isIntercepted)
        guard row.isIntercepted else { return }
        #expect(close.code == .pathLost && close.origin == .path)
        #expect(close.reason == "the network needs sign-in or is intercepted: somebody spoke")
        #expect(close.cause?.number == row.webSocket.number)
    }

    @Test(arguments: [true, false])
    func `A portal is told soon, teaches nothing, and is over with the sign-in`(isSilent: Bool) throws {
        let world = try DirectWorld(demotion: EvidenceDemotionPolicy())
        defer { world.end() }
        world.network.change(.quic) {
            $0.isSilent = isSilent
            if !isSilent { $0.refusal = TransportError(.refused, "nobody listens") }
        }
        world.network.change(.webSocket) {
            $0.refusal = TransportError(.certificateUnknownIssuer, "its subject is \"CN=portal.example\"")
        }
        for _ in 0..<3 {
            let begun = world.simulation.time.now()
            let close = try #require(try world.failure())
            #expect(close.cause?.code == .intercepted)
            #expect(close.reason.contains("needs sign-in") && close.reason.contains("CN=portal.example"))
            let took = world.simulation.time.now() - begun
            #expect(took < .seconds(5), "no dial waits for the handshake limit of the other: \(took)")
            #expect(world.record == PathRecord())
            #expect(world.history().isPassing)
        }
        world.network.change(.webSocket) { $0.refusal = nil }
        #expect(try world.connect() == .webSocket)
        // What it met behind the portal is not held against QUIC.
        #expect(world.history()[.quic].strikes.count <= 1 && world.history()[.quic].demotion == nil)
        world.network.change(.quic) {
            $0.isSilent = false
            $0.refusal = nil
        }
    }

    @Test func `A QUIC that answers late carries although a portal answers on TCP`() throws {
        let world = try DirectWorld()
        defer { world.end() }
        world.network.change(.quic) { $0.delay = .milliseconds(1500) }
        world.network.change(.webSocket) { $0.refusal = TransportError(.pinMismatch, "another key") }
        #expect(try world.open().info.transport == .quic)
        #expect(world.simulation.time.now() == .zero + .seconds(3))
    }
}
