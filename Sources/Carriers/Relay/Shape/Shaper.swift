internal import CSodium
internal import TransportKit

/// Turns messages into frames of one size, and frames back into messages. No socket, no clock.
///
/// A frame is a random nonce of 24 bytes and what XChaCha20-Poly1305 makes of: 8 bytes that name the sender's connection, then
/// pieces, then zeros. A piece is a byte (1 where more of its message follows, 2 for its last), a length of 16 bits in
/// big-endian order, and so many bytes. The key follows from the room's secret, so the relay cannot tell a frame without a
/// piece from any other.
struct Shaper: Sendable {
    private static let info = "transportkit.relay.shape.v1"
    private static let nonceLength = 24
    private static let tagLength = 16
    private static let nameLength = 8
    private static let headLength = 3
    /// Beyond so many senders, what the oldest has begun is forgotten.
    private static let senderLimit = 16
    /// The smallest frame that carries anything to speak of.
    static let leastFrame = 128

    private let key: RelaySecret
    private let frameBytes: Int
    private let messageLimit: Int
    private let name: Bytes
    private var queue: [Bytes] = []
    private var begun: [(name: Bytes, message: Bytes)] = []

    /// - Parameter name: 8 random bytes.
    init(_ shape: RelayShape, secret: RelaySecret, messageLimit: Int, name: Bytes) {
        key = secret.derived(Self.info)
        frameBytes = max(shape.frameBytes, Self.leastFrame)
        self.messageLimit = messageLimit
        self.name = name
    }

    /// Draws the name of a connection.
    static func drawName() -> Bytes { Bytes((0..<nameLength).map { _ in UInt8.random(in: 0...255) }) }

    /// How many bytes wait to be sent.
    private(set) var backlog = 0

    mutating func put(_ message: Bytes) {
        queue.append(message)
        backlog += message.count + Self.headLength
    }

    /// The next frame; one without a piece where nothing waits.
    mutating func next() -> Bytes {
        let room = frameBytes - Self.nonceLength - Self.tagLength
        var text = Bytes(capacity: room)
        text.append(contentsOf: name)
        while let message = queue.first, room - text.count > Self.headLength {
            let count = min(message.count, room - text.count - Self.headLength, 0xffff)
            let isLast = count == message.count
            text.append(contentsOf: [isLast ? 2 : 1, UInt8(count >> 8), UInt8(count & 0xff)])
            text.append(contentsOf: message.prefix(count))
            backlog -= count
            if isLast {
                queue.removeFirst()
                backlog -= Self.headLength
            } else {
                queue[0] = message.dropFirst(count)
            }
        }
        text.append(contentsOf: Bytes(repeating: 0, count: room - text.count))
        return seal(text)
    }

    /// Reads a frame: the messages that it completes; none where it is nobody's.
    mutating func read(_ frame: Bytes) -> [Bytes] {
        guard frame.count == frameBytes, var rest = open(frame) else { return [] }
        let sender = rest.takeFirst(Self.nameLength)
        var message = Bytes()
        if let index = begun.firstIndex(where: { $0.name == sender }) { message = begun.remove(at: index).message }
        var messages: [Bytes] = []
        var isOpen = !message.isEmpty
        while rest.count > Self.headLength, let kind = Optional(rest[0]), kind == 1 || kind == 2 {
            let count = Int(rest[1]) << 8 | Int(rest[2])
            rest.removeFirst(Self.headLength)
            guard count <= rest.count, message.count + count <= messageLimit else { return messages }
            message.append(contentsOf: rest.takeFirst(count))
            isOpen = kind == 1
            if kind == 2 {
                messages.append(message)
                message = Bytes()
            }
        }
        if isOpen {
            if begun.count == Self.senderLimit { begun.removeFirst() }
            begun.append((sender, message))
        }
        return messages
    }

    // MARK: - The seal

    private func seal(_ text: Bytes) -> Bytes {
        unsafe Bytes(unsafeUninitializedCapacity: frameBytes) { frame in
            unsafe text.withUnsafeBytes { text in
                unsafe key.withBytes { key in
                    let bytes = unsafe frame.assumingMemoryBound(to: UInt8.self)
                    guard let start = bytes.baseAddress else { return }
                    unsafe randombytes_buf(start, Self.nonceLength)
                    _ = unsafe crypto_aead_xchacha20poly1305_ietf_encrypt(
                        start + Self.nonceLength, nil, text.assumingMemoryBound(to: UInt8.self).baseAddress,
                        UInt64(text.count), nil, 0, nil, start, key)
                }
            }
            return frameBytes
        }
    }

    private func open(_ frame: Bytes) -> Bytes? {
        var isAuthentic = false
        let text = unsafe Bytes(unsafeUninitializedCapacity: frameBytes - Self.nonceLength - Self.tagLength) { room in
            unsafe frame.withUnsafeBytes { frame in
                unsafe key.withBytes { key in
                    let bytes = unsafe frame.assumingMemoryBound(to: UInt8.self)
                    guard let start = bytes.baseAddress else { return }
                    isAuthentic =
                        unsafe crypto_aead_xchacha20poly1305_ietf_decrypt(
                            room.assumingMemoryBound(to: UInt8.self).baseAddress, nil, nil, start + Self.nonceLength,
                            UInt64(frame.count - Self.nonceLength), nil, 0, start, key) == 0
                }
            }
            return isAuthentic ? room.count : 0
        }
        return isAuthentic ? text : nil
    }
}
