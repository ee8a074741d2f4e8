internal import Dispatch
internal import Glibc
internal import Synchronization
package import TransportKit

/// Writes what carriers see on their paths to a file, away from the loop. Several may write to one file.
package final class TraceWriter: PathObserver {
    private struct State {
        /// The file is full, or a write has failed.
        var isOver = false
        /// How much was written to what is no file.
        var written = 0
    }

    private let queue = DispatchQueue(label: "transportkit.trace", qos: .utility)
    private let descriptor: Int32
    /// Looks at how the file ends; negative where it may not be read.
    private let reader: Int32
    private let path: String
    private let log: Log
    private let append: @Sendable ([UInt8], Int32) -> Bool
    private let state = Mutex(State())

    /// Years of a client; what has gone wrong in between must not fill the disk. What several hosts write at the same
    /// moment must not make the file longer than what can be read.
    private static let limit = Trace.sizeLimit - 1 << 20

    /// Opens the file; what is in it stays.
    ///
    /// - Parameter append: writes all of the bytes, or says that it could not and leaves why in `errno`; nil for what does.
    package init(
        _ path: String, log: Log,
        append: (@Sendable ([UInt8], Int32) -> Bool)? = nil
    ) throws(TraceError) {
        let flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK
        descriptor = unsafe open(path, flags, 0o600)
        guard descriptor >= 0 else {
            throw TraceError("the trace \(path) cannot be written: \(ControlSocket.words(errno))")
        }
        // Who was not asked before, such as a program with plug-ins, is asked here.
        guard Self.size(of: descriptor) != nil else {
            close(descriptor)
            throw TraceError("the trace \(path) cannot be written: a regular file is needed")
        }
        reader = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        self.path = path
        self.log = log
        self.append = append ?? { Console.write($0, to: $1) }
    }

    deinit {
        close(descriptor)
        if reader >= 0 { close(reader) }
    }

    /// Takes one observation.
    package func observe(_ observation: PathObservation) {
        queue.async { [self] in write(Array((Trace.line(observation) + "\n").utf8)) }
    }

    /// Returns when everything is written, or after `limit`: a disk that has gone away, such as one on the network, takes
    /// nothing either.
    package func flush(within limit: Duration = .seconds(2)) async {
        let done = Signal()
        queue.async { done.signal() }
        let timer = DispatchSource.makeTimerSource(queue: .global())
        timer.setEventHandler { done.signal() }
        timer.schedule(deadline: .now() + .nanoseconds(Int(limit.clampedNanoseconds)))
        timer.activate()
        _ = await done.wait()
        timer.cancel()
    }

    private func write(_ line: [UInt8]) {
        state.withLock { state in
            guard !state.isOver else { return }
            let size = Self.size(of: descriptor)
            // A host that was killed may have left half a line; it must not spoil this one.
            let bytes = size.map(isTorn) ?? false ? [0x0a] + line : line
            guard (size ?? state.written) + bytes.count <= Self.limit else {
                log.warning("the trace \(path) is full; nothing more is written to it")
                state.isOver = true
                return
            }
            if append(bytes, descriptor) {
                state.written += bytes.count
                return
            }
            log.warning("the trace \(path) ends here: \(ControlSocket.words(errno))")
            if let size { takeBack(to: size) }
            state.isOver = true
        }
    }

    /// The size of a file; nil for what is none.
    private static func size(of descriptor: Int32) -> Int? {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return status.st_size
    }

    /// Whether the last line of the file has no end, as far as anybody may know.
    private func isTorn(at size: Int) -> Bool {
        guard size > 0 else { return false }
        var last: UInt8 = 0
        guard reader >= 0, unsafe pread(reader, &last, 1, size - 1) == 1 else { return true }
        return last != 0x0a
    }

    /// Takes back the part of a line that could be written, unless somebody else has gone on behind it.
    private func takeBack(to size: Int) {
        // Appending leaves the offset behind what was written last.
        let end = lseek(descriptor, 0, SEEK_CUR)
        guard end > size, end == Self.size(of: descriptor) else { return }
        ftruncate(descriptor, size)
    }
}
