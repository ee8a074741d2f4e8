internal import Dispatch
internal import Glibc
internal import Synchronization

/// Answers on a control socket, away from the loop: also a loop that is stuck can be asked about.
package final class ControlServer: Sendable {
    private let path: String
    // Sendable is sound: it is set once, here, and cancelled at most once from any thread.
    private nonisolated(unsafe) let source: any DispatchSourceRead
    private let made: stat
    private let answering = Atomic(0)
    private let accepting = DispatchQueue(label: "transportkit.control")
    private let answers = DispatchQueue(label: "transportkit.control.answers", attributes: .concurrent)
    private let answer: @Sendable ([UInt8]) -> [UInt8]

    /// A question is a line of JSON with two words in it.
    private static let requestLimit = 4096
    /// Whoever asks more often at a time is not served.
    private static let connectionLimit = 8
    private static let busy = "it is busy: \(connectionLimit) others ask it already; ask again in a few seconds"

    /// Starts to answer.
    ///
    /// - Parameter answer: the answer to a line, as a line; called on threads of its own.
    package init(_ path: String, answer: @escaping @Sendable ([UInt8]) -> [UInt8]) throws(ControlError) {
        let descriptor = try ControlSocket.bind(path)
        self.path = path
        self.answer = answer
        var status = stat()
        unsafe lstat(path, &status)
        made = status
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: accepting)
        unsafe self.source = source
        source.setEventHandler { [weak self] in self?.accept(descriptor) }
        source.setCancelHandler { close(descriptor) }
        source.activate()
    }

    deinit { stop() }

    /// Answers nobody any more, and removes the socket.
    package func stop() {
        unsafe source.cancel()
        ControlSocket.remove(path, made: made)
    }

    private func accept(_ listener: Int32) {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else {
                // Out of descriptors, it stays readable; the pause keeps this from spinning.
                if errno == EMFILE || errno == ENFILE { usleep(100_000) }
                if errno == EINTR || errno == ECONNABORTED { continue }
                return
            }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            guard answering.add(1, ordering: .relaxed).newValue <= Self.connectionLimit else {
                answering.subtract(1, ordering: .relaxed)
                // So short a line is taken at once.
                ControlLine(descriptor, within: .zero).write(ControlCoding.line(ControlFailure(error: Self.busy)))
                close(descriptor)
                continue
            }
            answers.async { [self] in
                let line = ControlLine(descriptor)
                if let request = line.read(limit: Self.requestLimit) { line.write(answer(request)) }
                close(descriptor)
                answering.subtract(1, ordering: .relaxed)
            }
        }
    }
}
