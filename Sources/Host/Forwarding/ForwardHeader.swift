package import TransportKit

/// What stands at the head of the stream of a forwarded connection, in both directions (`docs/protocol.md` §7).
///
/// No I/O: readers are fed what arrived, say when the head is whole, and hand out what came after it.
package enum ForwardHeader {
    /// The longest address, in bytes.
    package static let addressLimit = 4096
    /// The longest reason, in bytes.
    package static let reasonLimit = 1024

    /// What the opener writes: the address to reach.
    package static func request(_ address: TCPEndpoint) -> Bytes { request(.address(address)) }

    /// What the opener writes: what to reach.
    package static func request(_ target: ForwardTarget) -> Bytes {
        let text = target.wireForm
        var bytes = Bytes(capacity: text.utf8.count + 4)
        Varint.append(UInt64(text.utf8.count), to: &bytes)
        bytes.append(contentsOf: Bytes(text))
        return bytes
    }

    /// What the service answers: nil for "the connection stands", or why it does not.
    package static func answer(_ refusal: Refusal?) -> Bytes {
        var bytes = Bytes(capacity: 64)
        Varint.append(refusal?.code.rawValue ?? 0, to: &bytes)
        let reason = Bytes(refusal?.reason.prefix(utf8Bytes: reasonLimit) ?? "")
        Varint.append(UInt64(reason.count), to: &bytes)
        bytes.append(contentsOf: reason)
        return bytes
    }

    /// Why a service did not connect.
    package struct Refusal: Error, Sendable, Hashable, CustomStringConvertible {
        /// A close code.
        package var code: CloseCode
        /// In words; a peer's words where it comes from one.
        package var reason: String

        package init(_ code: CloseCode, _ reason: String) {
            self.code = code
            self.reason = reason
        }

        package var description: String { reason.isEmpty ? "\(code)" : "\(code) (\(reason))" }
    }

    /// The head breaks the rules.
    package struct Malformed: Error, Sendable, Hashable, CustomStringConvertible {
        package var description: String
    }

    /// Reads what an opener writes.
    package struct RequestReader {
        private var head = HeadReader()

        package init() {}

        /// Adds bytes that arrived.
        package mutating func feed(_ bytes: Bytes) { head.feed(bytes) }

        /// What came after the address.
        package var rest: Bytes { head.bytes }

        /// The address, or nil while it is not whole.
        package mutating func next() throws(Malformed) -> String? {
            guard let text = try head.text(limit: ForwardHeader.addressLimit, what: "address") else { return nil }
            guard let address = String(validating: text) else {
                throw Malformed(description: "the address is not UTF-8")
            }
            return address
        }
    }

    /// Reads what a service answers.
    package struct AnswerReader {
        /// What the service said.
        package enum Answer: Sendable, Hashable {
            case open
            case refused(Refusal)
        }

        private var head = HeadReader()
        private var code: UInt64?

        package init() {}

        /// Adds bytes that arrived.
        package mutating func feed(_ bytes: Bytes) { head.feed(bytes) }

        /// What came after the answer.
        package var rest: Bytes { head.bytes }

        /// The answer, or nil while it is not whole.
        package mutating func next() throws(Malformed) -> Answer? {
            if code == nil { code = head.number() }
            guard let code, let reason = try head.text(limit: ForwardHeader.reasonLimit, what: "reason") else {
                return nil
            }
            guard code != 0 else { return .open }
            let words = String(decoding: Array(reason), as: UTF8.self)
            return .refused(Refusal(CloseCode(rawValue: code), words))
        }
    }

    /// Takes numbers and texts off the front of what arrived.
    private struct HeadReader {
        private(set) var bytes = Bytes()

        mutating func feed(_ more: Bytes) {
            if bytes.isEmpty {
                bytes = more
            } else {
                bytes.append(contentsOf: more)
            }
        }

        mutating func number() -> UInt64? {
            guard let (value, length) = Varint.read(from: bytes) else { return nil }
            bytes.removeFirst(length)
            return value
        }

        mutating func text(limit: Int, what: String) throws(Malformed) -> Bytes? {
            guard let (length, size) = Varint.read(from: bytes) else { return nil }
            guard length <= UInt64(limit) else {
                throw Malformed(description: "the \(what) is announced with \(length) bytes; \(limit) are allowed")
            }
            guard bytes.count - size >= Int(length) else { return nil }
            bytes.removeFirst(size)
            return bytes.takeFirst(Int(length))
        }
    }
}
