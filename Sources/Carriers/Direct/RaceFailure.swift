internal import TransportKit

/// The one end of an establishment in which nothing opened (R45).
enum RaceFailure {
    /// The most telling failure says the code, and the reason names them all.
    static func close(_ failures: [(transport: TransportName, error: TransportError)]) -> Close {
        let reason = failures.map { "\($0.transport.displayName): \($0.error)" }.joined(separator: "; ")
        guard let cause = failures.map(\.error).min(by: { rank($0) < rank($1) }) else {
            return Close(.pathLost, reason: "nothing was dialled", origin: .path)
        }
        if cause.code == .upgradeRefused, let code = code(status: cause.number) {
            return Close(code, reason: reason, origin: .remote, cause: cause)
        }
        return Close(.pathLost, reason: reason, origin: .path, cause: cause)
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
