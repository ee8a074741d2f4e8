/// Why a text is no pairing line. It repeats nothing of the text.
public struct PairingLineError: Error, Sendable, Hashable {
    private enum Code: Hashable {
        case noLine
        case otherVersion
        case noText
        case damaged(DoorWireError)
        case wrongHome
    }

    private let code: Code

    private init(_ code: Code) {
        self.code = code
    }

    /// It does not begin as one.
    public static let noLine = PairingLineError(.noLine)
    /// It is of a version that this program does not know.
    public static let otherVersion = PairingLineError(.otherVersion)
    /// What follows the beginning is cut, too long, or holds characters that none has.
    public static let noText = PairingLineError(.noText)
    /// The home that it names is not that of its box key.
    public static let wrongHome = PairingLineError(.wrongHome)

    /// A part is missing or cannot be what it should be.
    static func damaged(_ error: DoorWireError) -> PairingLineError { PairingLineError(.damaged(error)) }

    /// What is wrong with the parts, where that is it.
    package var fault: DoorWireError? { if case .damaged(let error) = code { error } else { nil } }
}

extension PairingLineError: CustomStringConvertible {
    /// What is wrong and what to do.
    public var description: String {
        switch code {
        case .noLine: "this is no pairing line, which begins with \(PairingLine.prefix); copy all of it, on one line"
        case .otherVersion:
            "this pairing line is of another version than this program knows; use the same version at both ends"
        case .noText: "this pairing line is not whole, or holds a character that none has; copy all of it again"
        case .damaged(let error):
            "this pairing line is damaged (\(error.fault) in \(error.field ?? "it") at byte \(error.offset)); have the box "
                + "make another one"
        case .wrongHome:
            "the home in this pairing line is not that of the box's key: somebody may have changed it; have the box make "
                + "another one"
        }
    }
}
