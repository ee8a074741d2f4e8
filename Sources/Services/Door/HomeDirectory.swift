public import TunnelCarrier

/// Which homes a door serves, and who hears of the boxes that are linked to it.
///
/// The door asks ``serves(_:)`` once for each handshake and tells what it sees, all from its own executor and in order; none of
/// it may block. The in-process one, ``ListedHomes``, keeps no more than a list.
public protocol HomeDirectory: Sendable {
    /// Whether the home is served at all.
    func serves(_ home: HomeID) -> Bool

    /// A box has proved its key and named its devices: the home is reached over this door.
    func linked(_ home: HomeID)

    /// The box of the home has left this door.
    func left(_ home: HomeID)
}

/// Serves the homes of a list, or every home where there is none: a home id certifies itself (R95).
public struct ListedHomes: HomeDirectory {
    private let homes: Set<HomeID>?

    /// Makes a directory.
    ///
    /// - Parameter homes: the homes that are served; nil serves every one.
    public init(_ homes: Set<HomeID>? = nil) {
        self.homes = homes
    }

    /// Whether the home is on the list.
    public func serves(_ home: HomeID) -> Bool { homes?.contains(home) ?? true }

    /// Does nothing.
    public func linked(_ home: HomeID) {}

    /// Does nothing.
    public func left(_ home: HomeID) {}
}
