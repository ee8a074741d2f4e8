internal import TransportKit

/// Opens the messages of one direction, each once, in any order inside the replay window.
struct NoiseOpener: ~Copyable, Sendable {
    private let key: Secret
    private var isClosed = false
    private var window = ReplayWindow()

    init(key: consuming Secret) {
        self.key = key
    }

    /// Opens a message in place where nobody else holds it, else in a copy.
    ///
    /// What is refused changes nothing (R67): only a message of the peer's moves the window.
    ///
    /// - Throws: ``NoiseError/messageTooShort``, ``NoiseError/nonceExhausted`` for the reserved number,
    ///   ``NoiseError/replay``, ``NoiseError/authentication``, or ``NoiseError/closed`` once the key is destroyed.
    mutating func open(_ message: consuming Bytes) throws(NoiseError) -> Bytes {
        guard !isClosed else { throw .closed }
        guard message.count >= TransportMessage.overhead else { throw .messageTooShort }
        let number = TransportMessage.number(of: message)
        // R67: the check comes before the decryption, the mark after it.
        switch window.check(number) {
        case .fresh: break
        case .replayed, .tooOld: throw .replay
        case .reserved: throw .nonceExhausted
        }
        let isAuthentic = unsafe message.withUnsafeMutableBytes { message in
            let (data, sealed) = unsafe (
                UnsafeRawBufferPointer(rebasing: message.prefix(TransportMessage.numberLength)),
                UnsafeMutableRawBufferPointer(rebasing: message.dropFirst(TransportMessage.numberLength))
            )
            let room = unsafe UnsafeMutableRawBufferPointer(rebasing: sealed.dropLast(Sodium.tagLength))
            return unsafe Sodium.open(
                UnsafeRawBufferPointer(sealed), into: room, associatedData: data, number: number, key: key)
        }
        guard isAuthentic else { throw .authentication }
        window.mark(number)
        return message[TransportMessage.numberLength..<message.count - Sodium.tagLength]
    }

    /// Destroys the key. Nothing is opened from now on.
    mutating func close() {
        key.wipe()
        isClosed = true
    }
}
