/// Why a handshake or a message of a session was refused.
public struct NoiseError: Error, Sendable, Hashable {
    private enum Code {
        case authentication
        case replay
        case messageTooShort
        case messageTooLong
        case closed
        case nonceExhausted
        case badKey
        case wrongState
    }

    private let code: Code

    /// The message was not made by the peer with these keys. It says no more on purpose.
    public static let authentication = NoiseError(code: .authentication)
    /// The message has been received before, or is too old to say.
    public static let replay = NoiseError(code: .replay)
    /// The message is too short to be one.
    public static let messageTooShort = NoiseError(code: .messageTooShort)
    /// The handshake message is longer than Noise allows.
    public static let messageTooLong = NoiseError(code: .messageTooLong)
    /// The keys have been destroyed.
    public static let closed = NoiseError(code: .closed)
    /// The numbers of this direction are used up, or the message has the one that is reserved.
    public static let nonceExhausted = NoiseError(code: .nonceExhausted)
    /// A public key is none: nothing can be agreed on with it.
    public static let badKey = NoiseError(code: .badKey)
    /// The handshake has become a session already.
    public static let wrongState = NoiseError(code: .wrongState)
}

extension NoiseError: CustomStringConvertible {
    /// What is wrong, in words.
    public var description: String {
        switch code {
        case .authentication: "the message does not authenticate"
        case .replay: "the message was received before, or is too old"
        case .messageTooShort: "the message is too short"
        case .messageTooLong: "the handshake message is too long"
        case .closed: "the session's keys are destroyed"
        case .nonceExhausted: "the numbers of the session are used up"
        case .badKey: "the public key is unusable"
        case .wrongState: "the handshake is done already"
        }
    }
}
