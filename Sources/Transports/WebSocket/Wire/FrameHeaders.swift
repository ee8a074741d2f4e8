internal import CWslay

/// Reads and writes the headers of frames through wslay, which checks them against RFC 6455 §5.2.
///
/// Owns wslay's context, which has a buffer of 4 KiB and remembers nothing between two whole headers: all the connections
/// of a loop share one. Masks and payloads stay outside; see `CWslay/shim.h` for why.
@safe package final class FrameHeaders {
    /// What a header says, apart from its mask.
    struct Header: Equatable {
        var isFinal = true
        var reserved: UInt8 = 0
        var opcode: UInt8
        var length: UInt64
    }

    /// The longest header without a mask, in bytes.
    static let longest = 10

    // wslay keeps the address of the block behind this pointer, which lives as long as the context inside it.
    private var frames: UnsafeMutablePointer<tk_frames>

    /// Makes a reader and writer.
    package init() {
        unsafe frames = Self.makeFrames()
    }

    private static func makeFrames() -> UnsafeMutablePointer<tk_frames> {
        guard let frames = unsafe tk_frames_new() else { fatalError("out of memory") }
        return unsafe frames
    }

    deinit { unsafe tk_frames_free(frames) }

    /// Reads one whole header from which the mask has been taken off.
    ///
    /// - Returns: nil where it breaks the rules.
    func read(_ head: UnsafeRawBufferPointer, length: UInt64) -> Header? {
        var frame = tk_frame()
        let bytes = unsafe head.bindMemory(to: UInt8.self)
        guard unsafe tk_frames_read(frames, bytes.baseAddress, bytes.count, length, &frame) == 0 else {
            // wslay does not go on after a broken header, and the next one may be another connection's.
            unsafe tk_frames_free(frames)
            unsafe frames = Self.makeFrames()
            return nil
        }
        return Header(isFinal: frame.fin == 1, reserved: frame.rsv, opcode: frame.opcode, length: frame.length)
    }

    /// Writes a header to `room`, which has at least ``longest`` bytes.
    ///
    /// - Returns: how many bytes it takes.
    func write(_ header: Header, to room: UnsafeMutableRawBufferPointer) -> Int {
        var frame = tk_frame(
            fin: header.isFinal ? 1 : 0, rsv: header.reserved, opcode: header.opcode, length: header.length)
        let bytes = unsafe room.bindMemory(to: UInt8.self)
        let written = unsafe tk_frames_write(frames, &frame, bytes.baseAddress)
        precondition(written > 0, "a frame of our own making breaks the rules")
        return written
    }
}
