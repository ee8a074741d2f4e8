internal import TransportKit

/// How many links each address has, and how many handshakes it has begun in this second. What is not in use takes no room.
struct AddressLimits {
    private let links: Int
    private let handshakesPerSecond: Int
    private var linked: [AddressKey: Int] = [:]
    private var begun: [AddressKey: Int] = [:]
    private var second: UInt64 = 0

    init(links: Int, handshakesPerSecond: Int) {
        self.links = links
        self.handshakesPerSecond = handshakesPerSecond
    }

    /// How many addresses are known.
    var count: Int { linked.count }

    /// Counts a link.
    ///
    /// - Returns: false where the address has as many as it may; then it is not counted.
    mutating func open(_ key: AddressKey?) -> Bool {
        guard let key else { return true }
        let count = linked[key] ?? 0
        guard count < links else { return false }
        linked[key] = count + 1
        return true
    }

    /// A link that was counted has ended.
    mutating func close(_ key: AddressKey?) {
        guard let key, let count = linked[key] else { return }
        linked[key] = count > 1 ? count - 1 : nil
    }

    /// Counts a handshake.
    ///
    /// - Returns: false where the address has begun as many in this second as it may.
    mutating func begin(_ key: AddressKey?, now: Instant) -> Bool {
        guard let key else { return true }
        let current = now.nanoseconds / 1_000_000_000
        if current != second {
            second = current
            begun = [:]
        }
        let count = begun[key] ?? 0
        guard count < handshakesPerSecond else { return false }
        begun[key] = count + 1
        return true
    }
}
