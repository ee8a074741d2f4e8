internal import TransportIO
internal import TransportKit

/// Buffers that all connections of one loop share, because each needs them only while it works: an idle connection then
/// holds none.
///
/// Sendable is sound: it is confined to its loop, and whoever borrows a buffer gives it back before the loop goes on.
@safe package final class LoopRoom: @unchecked Sendable {
    private static let readBytes = 128 << 10
    private static let spareLimit = 512 << 10

    /// Where bytes from the kernel go.
    let input = UnsafeMutableRawBufferPointer.allocate(byteCount: readBytes, alignment: 64)
    /// Where TLS decrypts to.
    let plaintext = UnsafeMutableRawBufferPointer.allocate(byteCount: readBytes, alignment: 64)
    /// What reads and writes the headers of frames.
    let headers = FrameHeaders()
    private var spare: Bytes?

    /// Makes the buffers.
    package init() {}

    deinit {
        unsafe input.deallocate()
        unsafe plaintext.deallocate()
    }

    /// A buffer to gather output in.
    func takeSpare() -> Bytes { spare.take() ?? Bytes(capacity: 16 << 10) }

    /// Takes a buffer back once it is empty; one that grew very large is freed.
    func putSpare(_ buffer: consuming Bytes) {
        buffer.removeAll()
        if buffer.tailroom <= Self.spareLimit, buffer.tailroom > spare?.tailroom ?? 0 { spare = buffer }
    }
}
