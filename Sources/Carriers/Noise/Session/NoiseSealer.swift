internal import TransportKit

/// Seals the messages of one direction, each with the next number.
struct NoiseSealer: ~Copyable, Sendable {
    let key: Secret
    private var isClosed = false
    private var next: UInt64

    init(key: consuming Secret, next: UInt64 = 0) {
        self.key = key
        self.next = next
    }

    /// Seals a message: the one copy that it takes on its way out is made as it is sealed.
    ///
    /// - Parameters:
    ///   - plaintext: the message.
    ///   - headroom: how many bytes to leave free in front of the sealed one.
    /// - Throws: ``NoiseError/closed`` once the key is destroyed; ``NoiseError/nonceExhausted`` where no number is left.
    mutating func seal(_ plaintext: Bytes, headroom: Int = 0) throws(NoiseError) -> Bytes {
        guard !isClosed else { throw .closed }
        guard next != TransportMessage.reservedNumber else { throw .nonceExhausted }
        let number = next
        next += 1
        return unsafe Bytes(
            unsafeUninitializedCapacity: plaintext.count + TransportMessage.overhead, headroom: headroom
        ) { room in
            unsafe room.storeBytes(of: number.bigEndian, as: UInt64.self)
            let (data, text) = unsafe (
                UnsafeRawBufferPointer(rebasing: room.prefix(TransportMessage.numberLength)),
                UnsafeMutableRawBufferPointer(rebasing: room.dropFirst(TransportMessage.numberLength))
            )
            unsafe plaintext.withUnsafeBytes { plaintext in
                unsafe Sodium.seal(plaintext, into: text, associatedData: data, number: number, key: key)
            }
            return room.count
        }
    }

    /// Destroys the key. Nothing is sealed from now on.
    mutating func close() {
        key.wipe()
        isClosed = true
    }
}
