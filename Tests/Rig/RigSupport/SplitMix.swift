/// Numbers of chance that begin where a seed says.
package struct SplitMix: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// The next `count` bytes, which is a multiple of 8.
    package mutating func next(_ count: Int) -> [UInt8] {
        precondition(count % 8 == 0, "numbers have 8 bytes")
        return [UInt8](unsafeUninitializedCapacity: count) { room, filled in
            for offset in stride(from: 0, to: count, by: 8) {
                UnsafeMutableRawBufferPointer(room).storeBytes(of: next(), toByteOffset: offset, as: UInt64.self)
            }
            filled = count
        }
    }
}
