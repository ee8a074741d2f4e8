internal import TransportKit

/// How a door has broken the rules of the link, and with what the link ends therefore.
struct DoorSessionFault: Error {
    let close: Close

    init(_ reason: String, _ code: CloseCode = .protocolError) {
        close = Close(code, reason: reason, origin: .local, cause: TransportError(.protocolViolation, reason))
    }
}
