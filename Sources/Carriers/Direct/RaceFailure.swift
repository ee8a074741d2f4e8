internal import TransportKit

/// The one end of an establishment in which nothing opened (R45).
enum RaceFailure {
    typealias Failure = (transport: TransportName, error: TransportError)

    /// The most telling failure says the code, and the reason names them all, unless somebody else has answered in the
    /// service's place: what the others met is that person's doing too, and would only hide what there is to do (B34).
    ///
    /// - Parameter isSecured: whether the service has to show a certificate.
    static func close(_ failures: [Failure], isSecured: Bool) -> Close {
        if let stranger = failures.first(where: { failure in
            let others = failures.filter { $0.transport != failure.transport }.map(\.error)
            return isStranger(failure.error, isSecured: isSecured, others: others)
        }) {
            return .pathLost(
                TransportError(
                    .intercepted, "the network needs sign-in or is intercepted: \(stranger.error)",
                    number: stranger.error.number))
        }
        let reason = failures.map { "\($0.transport.displayName): \($0.error)" }.joined(separator: "; ")
        guard let cause = failures.map(\.error).min(by: { rank($0) < rank($1) }) else {
            return Close(.pathLost, reason: "nothing was dialled", origin: .path)
        }
        if cause.code == .upgradeRefused, let code = code(status: cause.number) {
            return Close(code, reason: reason, origin: .remote, cause: cause)
        }
        return Close(.pathLost, reason: reason, origin: .path, cause: cause)
    }

    /// Whether a failure shows that somebody else answers in the service's place, given what the other transports met so
    /// far.
    ///
    /// A certificate alone may be the service's own and the trust set wrongly. Where another transport heard nothing of
    /// the service either, it is a portal that lets through what ends at itself.
    static func isStranger(_ error: TransportError, isSecured: Bool, others: [TransportError]) -> Bool {
        switch error.code {
        case .upgradeRefused:
            // RFC 6585 §6; and whoever has shown the service's certificate is the service, wherever it sends one.
            error.number == 511 || (!isSecured && error.number.map { (200..<400).contains($0) } ?? false)
        case _ where error.isStrangersCertificate:
            !others.isEmpty && others.allSatisfy(\.isSilence)
        default:
            false
        }
    }

    /// The close code that an HTTP status stands for; nil where the status is not the service's word
    /// (`docs/protocol.md` §4).
    static func code(status: UInt64?) -> CloseCode? {
        switch status {
        case 400: .badTarget
        case 401: .credentialRejected
        case 403: .refused
        case 404: .nobodyThere
        case 500: .internalError
        case 503: .tryAgainLater
        default: nil
        }
    }

    /// The lower, the more it tells: first what the service said, then what a person must mend, then what the network
    /// said, then silence.
    private static func rank(_ error: TransportError) -> Int {
        if error.isCertificateFailure { return 1 }
        return switch error.code {
        case .upgradeRefused: 0
        case .clientCertificateRejected, .noCommonProtocol, .handshakeFailed: 2
        case .unsupported, .misuse: 3
        case .protocolViolation: 4
        case .nameNotFound: 5
        case .refused: 6
        case .blocked, .unreachable: 7
        case .resources, .system, .addressInUse: 8
        case .pathReset, .forgotten: 9
        case .timedOut, .idle: 10
        default: 11
        }
    }
}

extension TransportError {
    /// Whether a dial ended so that nothing was heard of the service itself.
    fileprivate var isSilence: Bool {
        switch code {
        case .timedOut, .idle, .refused, .unreachable, .blocked, .pathReset, .cancelled: true
        default: false
        }
    }
}
