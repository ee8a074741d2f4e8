internal import Glibc

/// The process's own standard output and error.
package enum Console {
    private static let errors: LineQueue = {
        // A standard error that takes nothing must not keep the program from ending.
        atexit { Console.flush(within: .seconds(1)) }
        return LineQueue(STDERR_FILENO)
    }()

    /// Opens those of the three standard descriptors that are closed, before a socket gets one of their numbers and the log
    /// is written to a peer: there is then nothing to read, and whatever is written fails as it would have.
    package static func claimDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest number that is free is the one that is missing.
            _ = unsafe open("/dev/null", O_RDONLY)
        }
    }

    /// Writes a line of results, waiting as long as it takes; where that fails, `errno` says why. What happens then is the
    /// caller's decision.
    ///
    /// - Returns: whether it could be written.
    @discardableResult
    package static func say(_ line: String) -> Bool {
        // Where both go to one place, what was said first stands first.
        errors.flush(within: .milliseconds(100))
        return write(Array((line + "\n").utf8), to: STDOUT_FILENO)
    }

    /// Whether somebody looks at standard output.
    package static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Why standard output takes nothing, in words.
    package static func outputFailure(_ number: Int32 = errno) -> String {
        number == EPIPE
            ? "standard output was closed by whoever read it"
            : unsafe "standard output: \(String(cString: strerror(number)))"
    }

    /// Writes a line for a person to standard error. It never waits: a standard error that takes nothing must hold up
    /// neither the loop nor the end of the program.
    package static func complain(_ line: String) {
        errors.write(Array((line + "\n").utf8))
    }

    /// Waits until all complaints are written, but no longer than `limit`. `exit` does it by itself.
    static func flush(within limit: Duration) { errors.flush(within: limit) }

    @discardableResult
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        unsafe bytes.withUnsafeBytes { unsafe write($0, to: descriptor) }
    }

    /// Writes all of `bytes`, waiting as long as it takes.
    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Bool {
        var rest = unsafe bytes[...]
        while unsafe !rest.isEmpty {
            let count = unsafe Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count > 0 {
                unsafe rest = rest.dropFirst(count)
            } else if count < 0, errno == EAGAIN {
                // Somebody made the descriptor non-blocking; on any thread but the loop's it can be waited for.
                var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                unsafe poll(&wanted, 1, -1)
            } else if count >= 0 || errno != EINTR {
                return false
            }
        }
        return true
    }
}
