/// The options that a config file gives to one plug-in.
///
/// The host's implementation knows file, line and column: an unknown key, a wrong type or a missing value throws an
/// error that names the place and what is allowed. ``FixedOptions`` serves code that composes by hand.
public protocol OptionsSource: Sendable {
    /// Reads the options as the plug-in's own struct.
    func decode<Options: Decodable>(_ type: Options.Type) throws -> Options

    /// The error to throw for a value that decoded but is not allowed, placed at `key`.
    func invalid(_ key: String, _ what: String) -> any Error
}

/// Options given as a value, for chains that are composed in code.
public struct FixedOptions: OptionsSource {
    private let value: any Sendable

    /// Wraps the options.
    public init(_ value: some Sendable) {
        self.value = value
    }

    /// Returns the value, if it is of the type that the plug-in wants.
    public func decode<Options: Decodable>(_ type: Options.Type) throws -> Options {
        guard let options = value as? Options else {
            throw TransportError(.misuse, "options of type \(Options.self) were wanted")
        }
        return options
    }

    /// An error that names the key.
    public func invalid(_ key: String, _ what: String) -> any Error {
        TransportError(.misuse, "\(key): \(what)")
    }
}
