internal import Dispatch
internal import Glibc
internal import Synchronization
internal import TransportKit

/// Writes what carriers see on their paths to a file, away from the loop.
final class TraceWriter: PathObserver {
    private let queue = DispatchQueue(label: "transportkit.trace", qos: .utility)
    private let descriptor: Int32
    private let path: String
    private let log: Log
    /// How many bytes may still be written; nothing once a write has failed.
    private let room = Mutex(TraceWriter.limit)

    /// Years of a client; what has gone wrong in between must not fill the disk.
    private static let limit = 64 << 20

    /// Opens the file; what is in it stays.
    init(_ path: String, log: Log) throws(TraceError) {
        let flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK
        descriptor = unsafe open(path, flags, 0o600)
        guard descriptor >= 0 else {
            throw TraceError("the trace \(path) cannot be written: \(ControlSocket.words(errno))")
        }
        self.path = path
        self.log = log
        let size = lseek(descriptor, 0, SEEK_END)
        room.withLock { $0 -= Int(max(size, 0)) }
    }

    deinit { close(descriptor) }

    func observe(_ observation: PathObservation) {
        queue.async { [self] in write(Array((Trace.line(observation) + "\n").utf8)) }
    }

    /// Returns when everything is written.
    func flush() async {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume() }
        }
    }

    private func write(_ line: [UInt8]) {
        let left = room.withLock { room in
            defer { room = room < line.count ? 0 : room - line.count }
            return room
        }
        guard left > 0 else { return }
        guard left >= line.count else {
            log.warning("the trace \(path) is full; nothing more is written to it")
            return
        }
        guard Console.write(line, to: descriptor) else {
            log.warning("the trace \(path) ends here: \(ControlSocket.words(errno))")
            room.withLock { $0 = 0 }
            return
        }
    }
}
