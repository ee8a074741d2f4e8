internal import Glibc
package import TransportKit

extension TransportError {
    /// What becomes of whatever is open on a loop that is shut down.
    package static let loopStopped = TransportError(.cancelled, "the event loop was shut down")

    /// Makes the error for a number of the operating system.
    ///
    /// - Parameter doing: what failed, as the start of the sentence: `connecting to 192.0.2.1:443`.
    package init(errno number: Int32, doing: String) {
        self.init(Self.code(of: number), "\(doing): \(Self.words(for: number))", number: UInt64(number.magnitude))
    }

    private static func code(of number: Int32) -> Code {
        switch number {
        case ECONNREFUSED: .refused
        case EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ENETDOWN, EADDRNOTAVAIL: .unreachable
        case EPERM, EACCES: .blocked
        case ETIMEDOUT: .timedOut
        case ECONNRESET, EPIPE, ECONNABORTED, ENOTCONN: .pathReset
        case EADDRINUSE: .addressInUse
        case EMFILE, ENFILE, ENOMEM, ENOBUFS: .resources
        case EAFNOSUPPORT, EPROTONOSUPPORT, EOPNOTSUPP: .unsupported
        default: .system
        }
    }

    private static func words(for number: Int32) -> String {
        switch number {
        case ECONNREFUSED: "the connection was refused"
        case EHOSTUNREACH: "the host cannot be reached"
        case ENETUNREACH: "the network cannot be reached"
        case EPERM, EACCES: "this machine forbids it"
        case ETIMEDOUT: "no answer came in time"
        case ECONNRESET: "the peer reset the connection"
        case EPIPE: "the peer no longer takes bytes"
        case EADDRINUSE: "the address is in use"
        case EADDRNOTAVAIL: "the address is not one of this machine's"
        case EMFILE: "no file descriptor is left (raise the limit with ulimit -n or LimitNOFILE=)"
        default: unsafe String(cString: strerror(number))
        }
    }
}
