package import TransportKit

/// What a forward is to reach at the other end: an address, or a service that a box offers by name.
package enum ForwardTarget: Sendable, Hashable {
    case address(TCPEndpoint)
    case service(String)
    /// No connection: the names of the services that there are.
    case list

    private static let scheme = "service:"
    private static let nameLimit = 32

    /// Whether a service can be called that: 1 to 32 characters out of `a` to `z`, `0` to `9`, `.` and `-`.
    package static func isName(_ text: String) -> Bool {
        (1...nameLimit).contains(text.utf8.count)
            && text.utf8.allSatisfy { character in
                switch character {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
                    UInt8(ascii: "-"):
                    true
                case _: false
                }
            }
    }

    /// Reads what an opener has written (`docs/protocol.md` §7).
    package init(wire text: String) throws(ServiceURL.InvalidURL) {
        guard text.hasPrefix(Self.scheme) else {
            self = .address(try TCPEndpoint(text))
            return
        }
        let name = String(text.dropFirst(Self.scheme.count))
        guard name.isEmpty || Self.isName(name) else {
            throw ServiceURL.InvalidURL("has no name of a service: 1 to 32 of a-z, 0-9, . and - are allowed")
        }
        self = name.isEmpty ? .list : .service(name)
    }

    /// What an opener writes.
    package var wireForm: String {
        switch self {
        case .address(let address): "\(address)"
        case .service(let name): Self.scheme + name
        case .list: Self.scheme
        }
    }
}

extension ForwardTarget: CustomStringConvertible {
    /// The address, or the name, as a config file writes it.
    package var description: String {
        switch self {
        case .address(let address): "\(address)"
        case .service(let name): name
        case .list: "the list of services"
        }
    }
}
