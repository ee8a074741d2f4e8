internal import Dispatch
internal import Glibc
internal import TransportKit

/// Standard input for tasks. A thread of its own does the reading, since a pipe, a terminal or a file may block it.
///
/// It reads at most two chunks ahead.
final class StandardInput: Sendable {
    private let chunks = Inbox<Bytes>()
    private let wanted = DispatchSemaphore(value: 0)

    private static let chunk = 64 << 10

    /// Starts to read.
    init() {
        // A semaphore must not die with less than it was made with, so it is made with nothing.
        for _ in 0..<2 { wanted.signal() }
        // One thread for the life of the process: a blocking read cannot be taken back.
        DispatchQueue(label: "transportkit.stdin").async { [chunks, wanted] in
            while true {
                wanted.wait()
                var failure: Int32 = 0
                let bytes = unsafe Bytes(unsafeUninitializedCapacity: Self.chunk) { room in
                    while true {
                        let count = unsafe read(STDIN_FILENO, room.baseAddress, room.count)
                        if count >= 0 { return count }
                        guard errno == EINTR else {
                            failure = errno
                            return 0
                        }
                    }
                }
                guard failure == 0 else {
                    let error = TransportError(.system, "standard input: \(unsafe String(cString: strerror(failure)))")
                    chunks.end(Close(.internalError, reason: error.message, origin: .local, cause: error))
                    return
                }
                guard !bytes.isEmpty else {
                    chunks.end(Close(.normal, origin: .local))
                    return
                }
                chunks.put(bytes)
            }
        }
    }

    /// The next bytes; nil at the end.
    func next() async throws(Close) -> Bytes? {
        do {
            let bytes = try await chunks.takeFirst()
            wanted.signal()
            return bytes
        } catch {
            guard error.code == .normal else { throw error }
            return nil
        }
    }
}

/// Standard output for tasks: whoever reads it may be slow, and the loop must not wait for them.
final class StandardOutput: Sendable {
    /// It takes nothing more.
    struct Failed: Error {
        /// Why, in words.
        let reason: String
    }

    private let queue = DispatchQueue(label: "transportkit.stdout")

    /// Writes all of the pieces.
    func write(_ pieces: [Bytes]) async throws(Failed) {
        let failure: String? = await withCheckedContinuation { continuation in
            queue.async {
                let isWritten = pieces.allSatisfy { piece in
                    unsafe piece.withUnsafeBytes { unsafe Console.write($0, to: STDOUT_FILENO) }
                }
                continuation.resume(returning: isWritten ? nil : Console.outputFailure())
            }
        }
        if let failure { throw Failed(reason: failure) }
    }
}
