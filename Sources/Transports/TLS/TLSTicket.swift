internal import TransportKit

/// A ticket that has come and waits to be kept.
struct TLSTicket {
    let data: Bytes
    let notBefore: WallTime
    let notAfter: WallTime
    let allowsEarlyData: Bool

    /// What a NewSessionTicket message says of its ticket (RFC 8446 §4.6.1).
    struct Terms: Equatable {
        let lifetimeSeconds: UInt32
        /// How much early data may come with it; nil for none.
        let earlyDataBytes: UInt32?

        /// The only bound that QUIC allows, since it has its own (RFC 9001 §4.6.1).
        static let earlyDataOfQUIC = UInt32.max
        private static let earlyDataExtension = 42

        /// Reads the body of a message; nil where it is none.
        init?(_ message: [UInt8]) {
            var rest = message[...]
            func number(_ bytes: Int) -> Int? {
                guard rest.count >= bytes else { return nil }
                defer { rest = rest.dropFirst(bytes) }
                return rest.prefix(bytes).reduce(0) { $0 << 8 | Int($1) }
            }
            func skip(_ lengthBytes: Int) -> Bool {
                guard let length = number(lengthBytes), rest.count >= length else { return false }
                rest = rest.dropFirst(length)
                return true
            }
            guard let lifetime = number(4), number(4) != nil, skip(1), skip(2), let extensions = number(2),
                rest.count == extensions
            else { return nil }
            var bound: UInt32?
            while !rest.isEmpty {
                guard let kind = number(2), let length = number(2), rest.count >= length else { return nil }
                if kind == Self.earlyDataExtension {
                    guard length == 4, let bytes = number(4) else { return nil }
                    bound = UInt32(bytes)
                } else {
                    rest = rest.dropFirst(length)
                }
            }
            lifetimeSeconds = UInt32(lifetime)
            earlyDataBytes = bound
        }
    }
}
