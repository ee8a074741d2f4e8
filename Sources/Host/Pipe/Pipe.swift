internal import Synchronization
internal import TransportIO
package import TransportKit

/// Standard input as messages to a service, and its answers to standard output.
package enum Pipe {
    /// What the verb may be told.
    package struct Settings: Sendable {
        /// Where to and how.
        package var dial: DialSettings
        /// How input becomes messages and answers become output.
        package var mode: MessageSplitter.Mode
        /// How long to wait, after the end of the input, for answers that do not come, and then for the service to take
        /// what was sent.
        package var linger: Duration

        package init(dial: DialSettings, mode: MessageSplitter.Mode, linger: Duration) {
            self.dial = dial
            self.mode = mode
            self.linger = linger
        }
    }

    /// Once as many answers as messages are here, only what follows this closely is waited for.
    private static let settling = Duration.milliseconds(50)

    /// Runs until the input has ended and its answers are here, or the service closes.
    ///
    /// - Returns: whether everything that was sent was delivered.
    package static func run(_ settings: Settings, log: Log) async throws -> Bool {
        try await HostProgram.withLoop { loop in
            let carrier = try settings.dial.makeCarrier(loop: loop, log: log) { limits in
                limits.linger = settings.linger
            }
            let socket = try await carrier.open()
            let isDelivered = await PipeSession(socket, settings, time: loop, log: log).run()
            await carrier.close()
            return isDelivered
        }
    }

    /// One session of the verb.
    private final class PipeSession: Sendable {
        private struct Progress {
            var sent = 0
            var received = 0
            var lastEvent: Instant
            var hasReadAll = false
            var failure: String?
            var close: Close?
        }

        private let socket: any Socket
        private let settings: Settings
        private let time: any TimeSource
        private let log: Log
        private let output = StandardOutput()
        private let answered = Signal()
        private let progress: Mutex<Progress>

        init(_ socket: any Socket, _ settings: Settings, time: any TimeSource, log: Log) {
            self.socket = socket
            self.settings = settings
            self.time = time
            self.log = log
            progress = Mutex(Progress(lastEvent: time.now()))
        }

        func run() async -> Bool {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { [self] in
                    await sendInput()
                    await waitForAnswers()
                }
                group.addTask { [self] in await receive() }
                // Either the input and its answers are done with, or the service or whoever reads has gone.
                await group.next()
                let close = await socket.close(.normal, reason: "")
                // What arrived before the end is still handed out, and the receiving task then ends by itself.
                progress.withLock { if $0.hasReadAll, $0.failure == nil { $0.close = $0.close ?? close } }
                if !progress.withLock({ $0.hasReadAll }) { group.cancelAll() }
                for await _ in group {}
                if progress.withLock({ $0.close == nil }) { progress.withLock { $0.close = close } }
            }
            return judge()
        }

        private func judge() -> Bool {
            let progress = progress.withLock { $0 }
            if let failure = progress.failure {
                log.error(failure)
                return false
            }
            guard let close = progress.close, close.code == .normal else {
                let close = progress.close.map { "\($0)".printable() } ?? "no answer"
                log.error("the session ended with \(close): not all that was sent is known to have arrived")
                return false
            }
            guard progress.hasReadAll else {
                log.error("the service closed before the end of the input")
                return false
            }
            return true
        }

        private func fail(_ what: String) {
            progress.withLock { $0.failure = $0.failure ?? what }
        }

        private func sendInput() async {
            let input = StandardInput()
            var splitter = MessageSplitter(settings.mode, limit: socket.info.maxMessageBytes)
            do {
                while let bytes = try await input.next() {
                    try await send(splitter.feed(bytes))
                }
                if let last = splitter.finish() { try await send([last]) }
                progress.withLock {
                    $0.hasReadAll = true
                    $0.lastEvent = time.now()
                }
            } catch let close as Close {
                if close.cause?.code == .system { fail(close.reason) }
            } catch {
                fail("\(error)")
            }
        }

        private func send(_ payloads: [Bytes]) async throws {
            guard !payloads.isEmpty else { return }
            try await socket.send(payloads.map { Message($0) })
            progress.withLock { $0.sent += weight(payloads) }
        }

        private func waitForAnswers() async {
            while true {
                let now = time.now()
                let deadline: Instant? = progress.withLock { progress in
                    // No answer comes from a service that has closed.
                    guard progress.hasReadAll, progress.failure == nil, progress.close == nil else { return nil }
                    let patience = progress.received >= progress.sent ? Pipe.settling : settings.linger
                    let deadline = progress.lastEvent + patience
                    return now >= deadline ? nil : deadline
                }
                guard let deadline, !Task.isCancelled else { return }
                try? await Deadline.run(deadline - now, time: time) { [answered] in _ = await answered.wait() }
            }
        }

        private func receive() async {
            while true {
                let messages: [Message]
                do throws(Close) {
                    messages = try await socket.receive()
                } catch {
                    progress.withLock { if error.origin != .cancellation { $0.close = $0.close ?? error } }
                    answered.signal()
                    return
                }
                let payloads = messages.map(\.payload)
                do throws(StandardOutput.Failed) {
                    try await output.write(pieces(payloads))
                } catch {
                    return fail(error.reason)
                }
                progress.withLock {
                    $0.received += weight(payloads)
                    $0.lastEvent = time.now()
                }
                answered.signal()
            }
        }

        private func pieces(_ payloads: [Bytes]) -> [Bytes] {
            switch settings.mode {
            case .raw: return payloads
            case .lines:
                // One write for all the lines that are here.
                var text = Bytes(capacity: payloads.reduce(0) { $0 + $1.count + 1 })
                for payload in payloads {
                    text.append(contentsOf: payload)
                    text.append(0x0a)
                }
                return [text]
            }
        }

        /// Lines are counted as messages, raw input as bytes.
        private func weight(_ payloads: [Bytes]) -> Int {
            switch settings.mode {
            case .lines: payloads.count
            case .raw: payloads.reduce(0) { $0 + $1.count }
            }
        }
    }
}
