import Testing
import TransportKit

@Suite struct CloseTests {
    @Test func `The table has the codes and names of R120`() {
        let table: [(UInt64, CloseCode, String)] = [
            (1000, .normal, "normal"), (1001, .goingAway, "going away"), (1002, .protocolError, "protocol error"),
            (1003, .unsupported, "unsupported"), (1005, .noneGiven, "none given"), (1006, .pathLost, "path lost"),
            (1007, .badText, "bad text"), (1008, .policy, "policy"), (1009, .tooBig, "too big"),
            (1011, .internalError, "internal error"), (1012, .restarting, "restarting"),
            (1013, .tryAgainLater, "try again later"), (4400, .badTarget, "bad target"),
            (4401, .credentialRejected, "credential rejected"), (4403, .refused, "refused"),
            (4404, .nobodyThere, "nobody there"), (4408, .tooSlow, "too slow"), (4409, .displaced, "displaced"),
            (4410, .epochTurned, "epoch turned over"), (4429, .busy, "busy"),
        ]
        for (number, code, name) in table {
            #expect(code.rawValue == number)
            #expect(code.name == name)
            #expect("\(code)" == "\(number) \(name)")
        }
        #expect(CloseCode.names.count == table.count)
        #expect("\(CloseCode(rawValue: 4999))" == "4999")
    }

    @Test func `Only 1005 and 1006 are synthetic, and they and what is under 1000 count against a path`() {
        // R50, R120
        for number in Array(0...1100) + [3000, 4403, 4999, UInt64.max] {
            let code = CloseCode(rawValue: number)
            #expect(code.isSynthetic == (number == 1005 || number == 1006))
            #expect(code.countsAsPathFailure == (number < 1000 || number == 1005 || number == 1006))
        }
    }

    @Test(arguments: [
        ("", ""), ("short", "short"),
        (String(repeating: "x", count: 123), String(repeating: "x", count: 123)),
        (String(repeating: "x", count: 124), String(repeating: "x", count: 123)),
        (String(repeating: "ä", count: 62), String(repeating: "ä", count: 61)),
        (String(repeating: "x", count: 120) + "👩‍👩‍👧", String(repeating: "x", count: 120)),
    ])
    func `A reason is cut to 123 bytes between two characters`(reason: String, cut: String) {
        let close = Close(.normal, reason: reason, origin: .local)
        #expect(close.wireReason == cut)
        #expect(close.wireReason.utf8.count <= Close.reasonLimit)
    }

    @Test func `A lost path is 1006 with its cause in words`() {
        let cause = TransportError(.idle, "the path was idle for 30 s")
        let close = Close.pathLost(cause)
        #expect(close.code == .pathLost && close.origin == .path && close.cause == cause)
        #expect("\(close)" == "1006 path lost (the path was idle for 30 s)")
        #expect("\(Close(.normal, origin: .remote))" == "1000 normal")
    }

    @Test func `A cancelled call and a misused one say that the socket lives on`() {
        #expect(Close.cancelled.origin == .cancellation)
        #expect(Close.misuse("twice").cause?.code == .misuse)
    }

    @Test func `Stream errors say what they are`() {
        #expect(StreamError.reset(7).resetCode == 7)
        #expect(StreamError.finished.resetCode == nil)
        #expect(StreamError.socketClosed(.cancelled).close == .cancelled)
        #expect(StreamError.misuse("twice").isMisuse && !StreamError.cancelled.isMisuse)
        #expect("\(StreamError.reset(7))" == "the stream was reset with 7")
    }

    // B34
    @Test func `A stranger's certificate is told apart from one that is spoiled`() {
        for code in [TransportError.Code.certificateUnknownIssuer, .certificateWrongHost, .pinMismatch] {
            #expect(TransportError(code, "").isStrangersCertificate)
        }
        for code in [TransportError.Code.certificateExpired, .certificateNotYetValid, .certificateInvalid, .refused] {
            #expect(!TransportError(code, "").isStrangersCertificate)
        }
    }

    @Test func `Certificate failures are told apart from the rest`() {
        let failures: [TransportError.Code] = [
            .certificateExpired, .certificateNotYetValid, .certificateWrongHost, .certificateUnknownIssuer,
            .certificateInvalid, .pinMismatch,
        ]
        for code in failures { #expect(TransportError(code, "").isCertificateFailure) }
        for code in [TransportError.Code.refused, .handshakeFailed, .clientCertificateRejected] {
            #expect(!TransportError(code, "").isCertificateFailure)
        }
        #expect("\(TransportError.Code.pinMismatch)" == "pinMismatch")
    }

    @Test func `Capabilities and protection read as words and compare`() {
        #expect("\(Capabilities([.streams, .earlyData]))" == "streams, early data")
        #expect("\(Capabilities())" == "messages")
        #expect(Protection.none < .transport && Protection.transport < .endToEnd)
    }
}
