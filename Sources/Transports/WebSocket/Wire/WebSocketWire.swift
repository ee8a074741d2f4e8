internal import CWslay
package import TransportKit

/// One end of the WebSocket protocol after the upgrade: bytes in and messages out, messages in and bytes out.
///
/// No I/O and no clock. Many frames go through one call in both directions. A payload is copied once on each way, and
/// masked or unmasked in the same pass.
@safe package struct WebSocketWire: ~Copyable {
    /// Which end this is; the client masks what it sends (RFC 6455 §5.1).
    package enum Role: Sendable {
        case client
        case server
    }

    /// A frame whose payload is still arriving.
    private struct Frame {
        let opcode: Opcode
        let isFinal: Bool
        let length: Int
        let key: UInt32?
        var seen = 0
    }

    /// A message whose last fragment is not here yet.
    private struct Assembly {
        let format: MessageFormat
        var payload = Bytes()
        var emptyFragments = 0
        var text = TextCheck()
    }

    /// More fragments without a byte than this in one message can only be meant to keep this end busy.
    private static let emptyFragmentLimit = 1024
    /// How many bytes of answers to pings may wait to be written; above it only the latest is answered (§5.5.3).
    private static let pongLimit = 64 << 10

    private let role: Role
    private let maxMessageBytes: Int
    private let headers: FrameHeaders
    private var keys = MaskKeys()

    private var head = PartialHead()
    private var frame: Frame?
    private var assembly: Assembly?
    private var control = Bytes()

    private var pongs = Bytes()
    private var latestPing: Bytes?

    /// The close that the peer sent; after it nothing more is read.
    package private(set) var peerClose: CloseFrame?
    /// Whether a close frame of ours was written; after it nothing more is written.
    package private(set) var hasSentClose = false
    private var hasFailed = false

    /// Makes one end that takes messages of up to so many bytes; other ends on the same loop may share `headers`.
    package init(role: Role, maxMessageBytes: Int, headers: FrameHeaders = FrameHeaders()) {
        self.role = role
        self.maxMessageBytes = maxMessageBytes
        self.headers = headers
    }

    // MARK: - Receiving

    /// Takes bytes that arrived and appends the messages that are whole now.
    ///
    /// What a ping asks for waits for ``writeAnswers(into:)``; a close is in ``peerClose``.
    ///
    /// - Throws: what the peer did wrong. Messages before that have been appended; what comes later is not read.
    package mutating func receive(_ bytes: UnsafeRawBufferPointer, into messages: inout [Message]) throws(WireFailure) {
        var rest = unsafe bytes
        do throws(WireFailure) {
            while !hasFailed, peerClose == nil {
                if frame == nil, try unsafe !beginFrame(&rest) { return }
                guard var current = frame else { return }
                let count = min(rest.count, current.length - current.seen)
                if count > 0 {
                    let piece = unsafe UnsafeRawBufferPointer(rebasing: rest[..<count])
                    try unsafe take(piece, of: current)
                    current.seen += count
                    unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[count...])
                }
                guard current.seen == current.length else {
                    frame = current
                    return
                }
                frame = nil
                try end(current, into: &messages)
            }
        } catch {
            hasFailed = true
            frame = nil
            assembly = nil
            throw error
        }
    }

    /// Reads the header at the start of `rest`, together with what came of it before.
    ///
    /// - Returns: false where it is not whole yet.
    private mutating func beginFrame(_ rest: inout UnsafeRawBufferPointer) throws(WireFailure) -> Bool {
        guard let whole = unsafe head.take(from: &rest) else { return false }
        guard let opcode = Opcode(rawValue: whole.opcode) else {
            throw WireFailure(.protocolError, "a frame of the reserved kind \(whole.opcode)")
        }
        switch role {
        case .server:
            guard whole.key != nil else { throw WireFailure(.protocolError, "a frame without a mask") }
        case .client:
            guard whole.key == nil else { throw WireFailure(.protocolError, "a masked frame") }
        }
        if !opcode.isControl {
            // Before the payload, and in such a way that no sum can overflow.
            let room = maxMessageBytes - (assembly?.payload.count ?? 0)
            guard whole.length <= UInt64(room) else {
                throw WireFailure(.tooBig, "a message of more than \(maxMessageBytes) bytes")
            }
        }
        let read = unsafe whole.withUnmaskedBytes { unsafe headers.read($0, length: whole.length) }
        guard let header = read else { throw WireFailure(.protocolError, "a frame with a malformed header") }
        guard header.reserved == 0 else {
            throw WireFailure(.protocolError, "a frame with bits of an extension that was not agreed on")
        }
        switch opcode {
        case .continuation:
            guard assembly != nil else { throw WireFailure(.protocolError, "a continuation of nothing") }
        case .text, .binary:
            guard assembly == nil else { throw WireFailure(.protocolError, "a message inside another") }
            assembly = Assembly(format: opcode == .text ? .text : .binary)
        case .close, .ping, .pong:
            control = Bytes()
        }
        frame = Frame(opcode: opcode, isFinal: header.isFinal, length: Int(header.length), key: whole.key)
        return true
    }

    private mutating func take(_ piece: UnsafeRawBufferPointer, of frame: Frame) throws(WireFailure) {
        guard !frame.opcode.isControl else {
            unsafe Self.append(piece, of: frame, to: &control)
            return
        }
        guard var message = assembly.take() else { return }
        let start = message.payload.count
        // Storage of the announced size, but only once there is something to put into it.
        if start == 0 { message.payload = Bytes(capacity: frame.length) }
        unsafe Self.append(piece, of: frame, to: &message.payload)
        if message.format == .text {
            let isText = unsafe message.payload.withUnsafeBytes { payload in
                unsafe message.text.accepts(UnsafeRawBufferPointer(rebasing: payload[start...]))
            }
            guard isText else { throw WireFailure(.badText, "text that is not UTF-8") }
        }
        assembly = message
    }

    private static func append(_ piece: UnsafeRawBufferPointer, of frame: Frame, to bytes: inout Bytes) {
        guard let key = frame.key else { return unsafe bytes.append(contentsOf: piece) }
        unsafe bytes.append(unsafeUninitializedCapacity: piece.count) { room in
            unsafe mask(piece, key: key, offset: frame.seen, to: room)
            return piece.count
        }
    }

    private mutating func end(_ frame: Frame, into messages: inout [Message]) throws(WireFailure) {
        switch frame.opcode {
        case .continuation, .text, .binary:
            try endFragment(frame, into: &messages)
        case .ping:
            answer(control)
        case .pong:
            break  // Like every byte, it showed that the peer lives; what it answers does not matter.
        case .close:
            peerClose = try CloseFrame(reading: control)
            assembly = nil
        }
        control = Bytes()
    }

    private mutating func endFragment(_ frame: Frame, into messages: inout [Message]) throws(WireFailure) {
        guard var message = assembly.take() else { return }
        guard !frame.isFinal else {
            guard message.text.isComplete else {
                throw WireFailure(.badText, "text that ends inside a character")
            }
            messages.append(Message(message.payload, delivery: .control, format: message.format))
            return
        }
        if frame.length == 0 {
            message.emptyFragments += 1
            guard message.emptyFragments <= Self.emptyFragmentLimit else {
                throw WireFailure(.protocolError, "an endless row of empty fragments")
            }
        }
        assembly = message
    }

    private mutating func answer(_ ping: Bytes) {
        if pongs.count < Self.pongLimit {
            Self.write(.pong, ping, key: nextKey(), headers: headers, into: &pongs)
        } else {
            latestPing = ping
        }
    }

    // MARK: - Sending

    /// Whether ``writeAnswers(into:)`` has something to write.
    package var hasAnswers: Bool { !pongs.isEmpty && !hasSentClose }

    /// Writes the answers to the pings so far.
    package mutating func writeAnswers(into output: inout Bytes) {
        guard hasAnswers else { return }
        let answers = pongs
        pongs = Bytes()
        if output.isEmpty {
            output = answers
        } else {
            output.append(contentsOf: answers)
        }
        if let ping = latestPing.take() { write(.pong, ping, into: &output) }
    }

    /// Writes a message as one frame.
    package mutating func write(_ message: Message, into output: inout Bytes) {
        precondition(!hasSentClose, "nothing follows a close frame")
        write(message.format == .text ? .text : .binary, message.payload, into: &output)
    }

    /// Writes a ping without payload.
    package mutating func writePing(into output: inout Bytes) {
        guard !hasSentClose else { return }
        write(.ping, Bytes(), into: &output)
    }

    /// Writes the close frame, once; later calls do nothing.
    package mutating func writeClose(_ close: CloseFrame, into output: inout Bytes) {
        guard !hasSentClose else { return }
        write(.close, close.body, into: &output)
        hasSentClose = true
    }

    private mutating func write(_ opcode: Opcode, _ payload: Bytes, into output: inout Bytes) {
        Self.write(opcode, payload, key: nextKey(), headers: headers, into: &output)
    }

    /// A server sends without a mask.
    private mutating func nextKey() -> UInt32? {
        switch role {
        case .client: keys.next()
        case .server: nil
        }
    }

    private static func write(
        _ opcode: Opcode, _ payload: Bytes, key: UInt32?, headers: FrameHeaders, into output: inout Bytes
    ) {
        let header = FrameHeaders.Header(opcode: opcode.rawValue, length: UInt64(payload.count))
        let most = FrameHeaders.longest + 4 + payload.count
        unsafe output.append(unsafeUninitializedCapacity: most) { room in
            var length = unsafe headers.write(header, to: room)
            guard let key else {
                unsafe payload.withUnsafeBytes { bytes in
                    unsafe UnsafeMutableRawBufferPointer(rebasing: room[length...]).copyMemory(from: bytes)
                }
                return length + payload.count
            }
            unsafe room[1] |= 0x80
            unsafe room.storeBytes(of: key, toByteOffset: length, as: UInt32.self)
            length += 4
            unsafe payload.withUnsafeBytes { bytes in
                let target = unsafe UnsafeMutableRawBufferPointer(rebasing: room[length...])
                unsafe mask(bytes, key: key, offset: 0, to: target)
            }
            return length + payload.count
        }
    }

    /// Masks or unmasks `bytes`, which start `offset` bytes into their payload, on their way to `room`.
    private static func mask(
        _ bytes: UnsafeRawBufferPointer, key: UInt32, offset: Int, to room: UnsafeMutableRawBufferPointer
    ) {
        guard let from = bytes.baseAddress, let to = room.baseAddress else { return }
        unsafe tk_mask(
            to.assumingMemoryBound(to: UInt8.self), from.assumingMemoryBound(to: UInt8.self), bytes.count, key,
            UInt64(offset))
    }
}
