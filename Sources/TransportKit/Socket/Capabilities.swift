/// What a wire, or a chain of carriers, can do. Declared by every transport and computed along a chain when it is built.
public struct Capabilities: OptionSet, Sendable, Hashable {
    /// The bits.
    public let rawValue: UInt32

    /// Makes a set from its bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Byte streams in both directions, with half-close and reset.
    public static let streams = Capabilities(rawValue: 1 << 0)
    /// Unreliable messages that really travel as datagrams.
    public static let datagrams = Capabilities(rawValue: 1 << 1)
    /// Text messages.
    public static let text = Capabilities(rawValue: 1 << 2)
    /// The path can move to another local address without ending the socket.
    public static let migration = Capabilities(rawValue: 1 << 3)
    /// A first flight can travel before the handshake is done (0-RTT).
    public static let earlyData = Capabilities(rawValue: 1 << 4)
}

extension Capabilities: CustomStringConvertible {
    /// The names, comma-separated, or `messages` where there is nothing beyond them.
    public var description: String {
        let names: [(Capabilities, String)] = [
            (.streams, "streams"), (.datagrams, "datagrams"), (.text, "text"), (.migration, "migration"),
            (.earlyData, "early data"),
        ]
        let present = names.filter { contains($0.0) }.map(\.1)
        return present.isEmpty ? "messages" : present.joined(separator: ", ")
    }
}
