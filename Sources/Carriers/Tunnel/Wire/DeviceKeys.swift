package import NoiseCarrier
internal import TransportKit

/// The keys of devices, each once and in ascending order, as many as one message may have.
package struct DeviceKeys: Sendable, Hashable {
    package let keys: [StaticPublicKey]

    /// Sorts keys.
    ///
    /// - Precondition: at most ``DoorLimits/keys``.
    package init(_ keys: some Sequence<StaticPublicKey>) {
        self.keys = Set(keys).sorted { Self.precedes($0.bytes, $1.bytes) }
        precondition(self.keys.count <= DoorLimits.keys, "more keys than one message may have")
    }

    /// Reads keys of 32 bytes each; nil unless they are strictly ascending.
    init?(ascending bytes: Bytes) {
        var keys: [StaticPublicKey] = []
        keys.reserveCapacity(bytes.count / 32)
        for start in stride(from: 0, to: bytes.count, by: 32) {
            guard let key = StaticPublicKey(bytes[start..<start + 32]) else { return nil }
            if let last = keys.last, !Self.precedes(last.bytes, key.bytes) { return nil }
            keys.append(key)
        }
        self.keys = keys
    }

    var wireForm: Bytes {
        keys.reduce(into: Bytes(capacity: 32 * keys.count)) { $0.append(contentsOf: $1.bytes) }
    }

    private static func precedes(_ left: Bytes, _ right: Bytes) -> Bool {
        unsafe left.withUnsafeBytes { left in unsafe right.withUnsafeBytes { unsafe left.lexicographicallyPrecedes($0) }
        }
    }
}
