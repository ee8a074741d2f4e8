internal import Glibc
internal import TransportKit

/// Reads a key file, from which the secret of a listener's stateless resets is made.
enum KeyFile {
    /// The most bytes that are read: any key is shorter.
    private static let limit = 1 << 16

    static func read(_ path: String) throws(TransportError) -> Bytes {
        let descriptor = unsafe path.withCString { unsafe open($0, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else {
            throw TransportError(
                .misuse, "the key file \(path) cannot be read: \(unsafe String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        return unsafe Bytes(unsafeUninitializedCapacity: limit) { room in
            max(unsafe Glibc.read(descriptor, room.baseAddress, room.count), 0)
        }
    }
}
