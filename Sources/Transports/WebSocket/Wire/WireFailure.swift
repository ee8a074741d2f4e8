package import TransportKit

/// The peer broke the protocol or a limit: the code to close with, and what it did.
package struct WireFailure: Error, Equatable {
    /// The code to close with.
    package let code: CloseCode
    /// What came, as the object of a sentence: "a close frame with half a code".
    package let what: String

    /// Makes a failure.
    package init(_ code: CloseCode, _ what: String) {
        self.code = code
        self.what = what
    }

    /// How the socket ends by it.
    package var close: Close {
        Close(code, reason: what, origin: .local, cause: TransportError(.protocolViolation, "the peer sent \(what)"))
    }
}
