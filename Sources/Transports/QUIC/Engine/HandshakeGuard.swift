/// Follows the boundaries of the peer's TLS messages and refuses those that have no place in QUIC.
///
/// ngtcp2 0.12 over GnuTLS runs into an assertion, and so ends the process, when a TLS KeyUpdate arrives: GnuTLS installs
/// new keys and the library expects none. RFC 9001 §6 forbids the message anyway. Here every message is looked at before
/// GnuTLS sees it, wherever it is split: after the handshake a client takes tickets and a server takes nothing.
///
/// A HelloRetryRequest to a client that has sent early data ends in the same way, since GnuTLS 3.7 then makes the keys of
/// early data once more. Anybody on the path can send one.
struct HandshakeGuard {
    /// The level at which bytes came.
    enum Level: Int, CaseIterable {
        case initial, handshake, application, early
    }

    /// `unexpected_message` (RFC 8446 §6.2); in QUIC CRYPTO_ERROR 0x10a.
    static let unexpectedMessage: UInt8 = 10
    /// The longest message that is let in: no certificate chain in use comes near.
    private static let longestMessage = 1 << 18

    private struct Position {
        /// The bytes of the current message's header so far: its type and three bytes of length.
        var header: UInt32 = 0
        var headerBytes = 0
        var bodyLeft = 0
        var isFinished = false
    }

    private let isServer: Bool
    /// Whether a HelloRetryRequest is refused.
    var refusesRetry = false
    /// Whether one has come.
    private(set) var hasRetried = false
    /// How many bytes of a ServerHello at its beginning are those of a HelloRetryRequest; nil once one was not.
    private var retryBytes: Int? = 0
    private var positions = Array(repeating: Position(), count: Level.allCases.count)

    /// Makes a guard for the end that is a server or not.
    init(isServer: Bool) {
        self.isServer = isServer
    }

    /// Looks at bytes that came, in order, at a level.
    ///
    /// - Returns: the TLS alert to refuse them with, or nil.
    mutating func check(_ bytes: UnsafeRawBufferPointer, at level: Level) -> UInt8? {
        var position = positions[level.rawValue]
        defer { positions[level.rawValue] = position }
        var offset = 0
        while offset < bytes.count {
            // Nothing follows the message that ends a level.
            if position.isFinished { return Self.unexpectedMessage }
            if position.headerBytes < 4 {
                position.header = unsafe position.header << 8 | UInt32(bytes[offset])
                position.headerBytes += 1
                offset += 1
                if position.headerBytes == 1, !allows(type: UInt8(position.header & 0xff), at: level) {
                    return Self.unexpectedMessage
                }
                guard position.headerBytes == 4 else { continue }
                position.bodyLeft = Int(position.header & 0xff_ffff)
                if position.bodyLeft > Self.longestMessage { return Self.unexpectedMessage }
            }
            let step = min(position.bodyLeft, bytes.count - offset)
            if level == .initial, !isServer {
                unsafe lookForRetry(UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + step]))
                if hasRetried, refusesRetry { return Self.unexpectedMessage }
            }
            position.bodyLeft -= step
            offset += step
            if position.bodyLeft == 0 {
                position.isFinished = position.header >> 24 == 20
                position.header = 0
                position.headerBytes = 0
            }
        }
        return nil
    }

    /// Compares the body of the service's first message with how a HelloRetryRequest begins.
    private mutating func lookForRetry(_ body: UnsafeRawBufferPointer) {
        for index in body.indices {
            guard let seen = retryBytes, seen < Self.retryBeginning.count else { return }
            retryBytes = unsafe body[index] == Self.retryBeginning[seen] ? seen + 1 : nil
            if retryBytes == Self.retryBeginning.count { hasRetried = true }
        }
    }

    /// The version, and the number that stands in the place of the random one (RFC 8446 §4.1.3).
    static let retryBeginning: [UInt8] = [
        0x03, 0x03, 0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
        0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
    ]

    private func allows(type: UInt8, at level: Level) -> Bool {
        switch level {
        case .initial: type == (isServer ? 1 : 2)  // ClientHello; ServerHello and HelloRetryRequest.
        case .handshake:
            // The client answers with Certificate, CertificateVerify and Finished; the server says more.
            (isServer ? [11, 15, 20] : [8, 11, 13, 15, 20, 25]).contains(type)
        case .application: !isServer && type == 4  // NewSessionTicket.
        case .early: false
        }
    }
}
