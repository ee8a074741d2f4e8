internal import TransportKit

extension Bytes {
    /// The eight bytes at `offset`; the caller has made sure that they are there.
    func bigEndian(at offset: Int) -> UInt64 {
        unsafe withUnsafeBytes { unsafe UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
    }

    mutating func append(bigEndian value: UInt64) {
        unsafe append(unsafeUninitializedCapacity: 8) { room in
            unsafe room.storeBytes(of: value.bigEndian, as: UInt64.self)
            return 8
        }
    }

    mutating func append(bigEndian value: UInt32) {
        unsafe append(unsafeUninitializedCapacity: 4) { room in
            unsafe room.storeBytes(of: value.bigEndian, as: UInt32.self)
            return 4
        }
    }
}
