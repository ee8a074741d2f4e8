package import TransportKit

/// The body of a close frame (RFC 6455 §5.5.1, §7.4).
package struct CloseFrame: Sendable, Equatable {
    /// nil for an empty body.
    package var code: UInt16?
    /// In words.
    package var reason: String

    /// What goes on the wire for a close of ours.
    ///
    /// A code that must not travel, or that RFC 6455 has no room for, would make the peer answer with 1002. 1005, 1006
    /// and 0 become an empty body (R120); any other becomes 1008, which §7.4.1 has for what fits nowhere else, and the
    /// reason names the number.
    package init(_ close: CloseCode, reason: String) {
        if close.isSynthetic || close.rawValue == 0 {
            self.code = nil
            self.reason = ""
        } else if let code = UInt16(exactly: close.rawValue), Self.isAllowed(code) {
            self.code = code
            self.reason = Close(close, reason: reason, origin: .local).wireReason
        } else {
            let words = reason.isEmpty ? "code \(close.rawValue)" : "code \(close.rawValue): \(reason)"
            self.code = UInt16(CloseCode.policy.rawValue)
            self.reason = Close(.policy, reason: words, origin: .local).wireReason
        }
    }

    /// Reads a body that came from the peer.
    package init(reading body: Bytes) throws(WireFailure) {
        guard body.count != 1 else { throw WireFailure(.protocolError, "a close frame with half a code") }
        guard body.count >= 2 else {
            self.code = nil
            self.reason = ""
            return
        }
        let code = UInt16(body[0]) << 8 | UInt16(body[1])
        guard Self.isAllowed(code) else { throw WireFailure(.protocolError, "a close frame with the code \(code)") }
        guard let reason = String(validating: body.dropFirst(2)) else {
            throw WireFailure(.badText, "a close reason that is not UTF-8")
        }
        self.code = code
        self.reason = reason
    }

    /// What the application is told.
    package var received: Close {
        Close(code.map { CloseCode(rawValue: UInt64($0)) } ?? .noneGiven, reason: reason, origin: .remote)
    }

    /// The body on the wire.
    package var body: Bytes {
        guard let code else { return Bytes() }
        var body = Bytes(capacity: 2 + reason.utf8.count)
        body.append(UInt8(code >> 8))
        body.append(UInt8(code & 0xff))
        body.append(contentsOf: Array(reason.utf8))
        return body
    }

    /// RFC 6455 §7.4.1 and the registry it founded, up to 1014; 3000 to 4999 belong to libraries and applications.
    static func isAllowed(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}
