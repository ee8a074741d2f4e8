/// What a box can take, by name, as it says when it links (R132).
///
/// A name that this version does not know is kept and passed on; what is absent cannot be used.
public struct BoxCapabilities: Sendable, Hashable {
    /// The capability to carry sessions through the door: `tun`.
    public static let tunnel = "tun"
    /// How many names a set may have.
    public static let maxNames = 32
    /// How many characters a name may have.
    public static let maxNameLength = 32

    /// The capability to carry sessions through the door, and no other.
    public static let onlyTunnel = BoxCapabilities(usable: [tunnel])

    /// The names in ascending order.
    public let names: [String]

    /// Makes a set of names.
    ///
    /// - Returns: nil where there are more than ``maxNames``, or where a name is empty, has more than ``maxNameLength``
    ///   characters, or one that is not `a` to `z`, `0` to `9`, `.` or `-`.
    public init?(_ names: some Sequence<String>) {
        let names = Set(names).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        guard names.count <= Self.maxNames, names.allSatisfy(Self.isUsable) else { return nil }
        self.names = names
    }

    private init(usable names: [String]) {
        self.names = names
    }

    /// Whether the set holds `name`.
    public func contains(_ name: String) -> Bool { names.contains(name) }

    private static func isUsable(_ name: String) -> Bool {
        (1...maxNameLength).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
                    UInt8(ascii: "-"):
                    true
                case _: false
                }
            }
    }
}
