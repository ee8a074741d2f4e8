/// What went wrong on a wire, in a form that a policy can decide on and a person can read.
///
/// `code` says which of the known kinds it was; new kinds may be added, so a switch over them needs a default.
/// `message` is one plain sentence that names what and where; it never holds a secret.
public struct TransportError: Error, Sendable, Hashable {
    /// A kind of failure.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String {
            case nameNotFound, refused, unreachable, blocked, timedOut, idle, pathReset, protocolViolation
            case handshakeFailed, noCommonProtocol, certificateExpired, certificateNotYetValid, certificateWrongHost
            case certificateUnknownIssuer, certificateInvalid, pinMismatch, clientCertificateRejected
            case upgradeRefused, intercepted, forgotten, superseded, cancelled, addressInUse, resources, unsupported,
                misuse, system
        }
        private let kind: Kind

        private init(_ kind: Kind) { self.kind = kind }

        /// The name has no address, or the resolver gave no answer.
        public static let nameNotFound = Code(.nameNotFound)
        /// The peer's machine said that nobody listens (ECONNREFUSED, or a close before the handshake was done).
        public static let refused = Code(.refused)
        /// The network said that it cannot get there (EHOSTUNREACH, ENETUNREACH).
        public static let unreachable = Code(.unreachable)
        /// This machine forbids it (EPERM, EACCES on send).
        public static let blocked = Code(.blocked)
        /// No answer came in time.
        public static let timedOut = Code(.timedOut)
        /// An open path was silent for longer than its idle limit.
        public static let idle = Code(.idle)
        /// The peer or the path cut the conversation (TCP reset, TLS without its end).
        public static let pathReset = Code(.pathReset)
        /// The peer broke the rules of the wire.
        public static let protocolViolation = Code(.protocolViolation)
        /// TLS could not agree, for a reason other than the certificate.
        public static let handshakeFailed = Code(.handshakeFailed)
        /// No common protocol version or no common ALPN name.
        public static let noCommonProtocol = Code(.noCommonProtocol)
        /// The certificate's time is over.
        public static let certificateExpired = Code(.certificateExpired)
        /// The certificate's time has not begun; the local clock may be wrong.
        public static let certificateNotYetValid = Code(.certificateNotYetValid)
        /// The certificate is for another name or address.
        public static let certificateWrongHost = Code(.certificateWrongHost)
        /// Nobody that is trusted has issued the certificate.
        public static let certificateUnknownIssuer = Code(.certificateUnknownIssuer)
        /// The certificate is unusable in another way: too weak, revoked, malformed, absent.
        public static let certificateInvalid = Code(.certificateInvalid)
        /// Neither the certificate nor its key is one of the pinned ones.
        public static let pinMismatch = Code(.pinMismatch)
        /// The service did not accept this end's certificate.
        public static let clientCertificateRejected = Code(.clientCertificateRejected)
        /// The HTTP upgrade was answered with something other than 101.
        public static let upgradeRefused = Code(.upgradeRefused)
        /// Somebody else answers in the service's place: the network needs a sign-in, or is intercepted.
        public static let intercepted = Code(.intercepted)
        /// The peer's machine no longer knows the conversation: it has started anew (QUIC stateless reset).
        public static let forgotten = Code(.forgotten)
        /// The transport opened, but another dial had already won (``Claim``). It would have worked.
        public static let superseded = Code(.superseded)
        /// The waiting task was cancelled.
        public static let cancelled = Code(.cancelled)
        /// Somebody else holds the address.
        public static let addressInUse = Code(.addressInUse)
        /// A descriptor, memory or a named budget ran out.
        public static let resources = Code(.resources)
        /// The wire, or this chain, cannot do what was asked.
        public static let unsupported = Code(.unsupported)
        /// The caller broke the contract of a call.
        public static let misuse = Code(.misuse)
        /// Any other error of the operating system.
        public static let system = Code(.system)

        /// The code of a name that was written down.
        package init?(name: String) {
            guard let kind = Kind(rawValue: name) else { return nil }
            self.kind = kind
        }

        /// The name of the code, as written in logs.
        public var description: String { kind.rawValue }
    }

    /// Which kind of failure.
    public var code: Code
    /// What and where, in one plain sentence.
    public var message: String
    /// The number of the layer that failed, where it has one: an `errno`, a TLS alert, a QUIC transport error, an HTTP
    /// status. `code` tells which.
    public var number: UInt64?

    /// Makes an error.
    public init(_ code: Code, _ message: String, number: UInt64? = nil) {
        self.code = code
        self.message = message
        self.number = number
    }

    /// Whether the certificate that was shown is that of somebody else, as far as this end can tell: issued by nobody that
    /// is trusted, for another name, or not the pinned one.
    public var isStrangersCertificate: Bool {
        [.certificateUnknownIssuer, .certificateWrongHost, .pinMismatch].contains(code)
    }

    /// Whether the certificate or its key was not acceptable.
    public var isCertificateFailure: Bool {
        [
            .certificateExpired, .certificateNotYetValid, .certificateWrongHost, .certificateUnknownIssuer,
            .certificateInvalid, .pinMismatch,
        ].contains(code)
    }
}

extension TransportError: CustomStringConvertible {
    /// The sentence, for example `127.0.0.1:8443 refused the connection`.
    public var description: String { message }
}
