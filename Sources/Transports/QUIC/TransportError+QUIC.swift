internal import CNgtcp2
internal import TransportKit
internal import TransportTLS

extension TransportError {
    /// What a transport error in the peer's CONNECTION_CLOSE means (RFC 9000 §20.1).
    static func peerClosed(_ code: UInt64, reason: String, role: TLSRole, established: Bool) -> TransportError {
        let peer = role == .client ? "the service" : "the client"
        if (0x100...0x1ff).contains(code) {
            return TransportError(peerAlert: UInt8(code & 0xff), role: role, established: established)
        }
        let words = reason.isEmpty ? "" : ", saying \"\(reason.printable())\""
        let name = transportErrorNames[code] ?? "error \(code)"
        if !established {
            return TransportError(
                .refused, "\(peer) closed the connection during the handshake (\(name))\(words)", number: code)
        }
        // A close before this end's own data was looked at carries no code of the application's.
        return TransportError(
            .protocolViolation, "\(peer) ended the connection with the QUIC error \(name)\(words)", number: code)
    }

    /// What a status of the library means that ends the connection.
    static func library(_ status: Int32, role: TLSRole, established: Bool) -> TransportError {
        let peer = role == .client ? "the service" : "the client"
        let text = unsafe ngtcp2_strerror(status).map { unsafe String(cString: $0) } ?? "status \(status)"
        let code = ngtcp2_err_infer_quic_transport_error_code(status)
        if status == TK_QUIC_NO_MEMORY { return TransportError(.resources, "there is no memory left for QUIC") }
        return TransportError(
            established ? .protocolViolation : .handshakeFailed,
            "\(peer) broke the rules of QUIC (\(text), \(transportErrorNames[code] ?? "error \(code)"))", number: code)
    }

    /// What a TLS alert means that this end raised itself.
    static func raised(_ alert: UInt8, role: TLSRole, established: Bool) -> TransportError {
        let peer = role == .client ? "the service" : "the client"
        switch alert {
        case 120:
            return TransportError(
                .noCommonProtocol, "\(peer) offers no protocol that is spoken here", number: UInt64(alert))
        case HandshakeGuard.unexpectedMessage where established:
            return TransportError(
                .protocolViolation, "\(peer) sent a TLS message that QUIC forbids", number: UInt64(alert))
        default:
            return TransportError(
                established ? .protocolViolation : .handshakeFailed,
                "\(established ? "TLS" : "the TLS handshake") with \(peer) failed (alert \(alert))",
                number: UInt64(alert))
        }
    }

    private static let transportErrorNames: [UInt64: String] = [
        0x00: "NO_ERROR", 0x01: "INTERNAL_ERROR", 0x02: "CONNECTION_REFUSED", 0x03: "FLOW_CONTROL_ERROR",
        0x04: "STREAM_LIMIT_ERROR", 0x05: "STREAM_STATE_ERROR", 0x06: "FINAL_SIZE_ERROR",
        0x07: "FRAME_ENCODING_ERROR", 0x08: "TRANSPORT_PARAMETER_ERROR", 0x09: "CONNECTION_ID_LIMIT_ERROR",
        0x0a: "PROTOCOL_VIOLATION", 0x0b: "INVALID_TOKEN", 0x0c: "APPLICATION_ERROR",
        0x0d: "CRYPTO_BUFFER_EXCEEDED", 0x0e: "KEY_UPDATE_ERROR", 0x0f: "AEAD_LIMIT_REACHED", 0x10: "NO_VIABLE_PATH",
    ]
}
