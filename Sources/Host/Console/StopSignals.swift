internal import Dispatch
internal import Glibc

/// Hears SIGTERM, SIGINT and SIGHUP: the first asks the program to stop, the second ends it at once (B24).
///
/// SIGHUP is left alone where it is ignored: `nohup` asked for that.
package final class StopSignals: Sendable {
    // Sendable is sound: the array is not written after it was made, and a source may be cancelled from any thread.
    private nonisolated(unsafe) let sources: [any DispatchSourceSignal]

    /// Starts to listen, and returns once no signal is missed any more; `stop` is called once, on a thread of its own.
    package init(_ stop: @escaping @Sendable () -> Void) {
        let queue = DispatchQueue(label: "transportkit.signals")
        let seen = Seen()
        let isListening = DispatchSemaphore(value: 0)
        let numbers = Self.isIgnored(SIGHUP) ? [SIGTERM, SIGINT] : [SIGTERM, SIGINT, SIGHUP]
        unsafe sources = numbers.map { number in
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler {
                guard seen.isFirst else {
                    Console.complain("transportkit: asked twice to stop, stopping at once")
                    Console.flush(within: .milliseconds(200))
                    _exit(1)
                }
                seen.isFirst = false
                stop()
            }
            // Dispatch then has a handler of its own in place of the default, which would end the process.
            source.setRegistrationHandler { isListening.signal() }
            source.activate()
            return source
        }
        for _ in numbers { _ = isListening.wait(timeout: .now() + .seconds(1)) }
    }

    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        return unsafe sigaction(number, nil, &action) == 0
            && unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
                == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    deinit {
        for source in unsafe sources { source.cancel() }
    }

    /// Sendable is sound: it is touched on the one serial queue alone.
    private final class Seen: @unchecked Sendable {
        var isFirst = true
    }
}
