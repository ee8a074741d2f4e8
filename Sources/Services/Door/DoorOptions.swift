internal import TunnelCarrier

/// How much a door takes, and of whom.
public struct DoorOptions: Sendable, Hashable, Decodable {
    /// The homes that are served, in their text form of 26 characters; nil serves every box that proves its key (R95).
    public var homes: [String]?
    /// How many bytes may wait of one session in one direction: the credit it begins with (`docs/protocol.md` §9.7).
    public var window: Int = 262_144
    /// How many bytes may wait of all sessions; no session begins where it would be exceeded.
    public var budget: Int = 1_073_741_824
    /// How many links there may be.
    public var links: Int = 20_000
    /// How many links there may be from one address; an IPv6 address counts as its /64.
    public var linksPerAddress: Int = 64
    /// How many links may be between their opening and the end of their handshake.
    public var handshakes: Int = 1_024
    /// How many handshakes one address may begin in a second.
    public var handshakesPerSecond: Int = 32
    /// How many clients may wait for a box that is not linked.
    public var waitingClients: Int = 4_096
    /// How many of them may wait for one home.
    public var waitingClientsPerHome: Int = 16
    /// How many devices one home may have; at least 1,024.
    public var devices: Int = 4_096
    /// How many sessions one link of a device may have; at least 4.
    public var sessionsPerDevice: Int = 4
    /// How many pairing codes a box may have out; at least 8.
    public var pairingCodes: Int = 8

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case homes, window, budget, links, linksPerAddress, handshakes, handshakesPerSecond, waitingClients
        case waitingClientsPerHome, devices, sessionsPerDevice, pairingCodes
    }

    /// What is not allowed, and of which option.
    public struct Invalid: Error, Sendable, CustomStringConvertible {
        /// The name of the option.
        public let key: String
        /// What it must be.
        public let description: String
    }

    /// Makes the default options.
    public init() {}

    /// Reads options; what is not there keeps its default.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        homes = try values.decodeIfPresent([String].self, forKey: .homes)
        for (key, option) in Self.numbers {
            if let value = try values.decodeIfPresent(Int.self, forKey: key) { self[keyPath: option] = value }
        }
    }

    /// Checks what decoding cannot.
    ///
    /// - Throws: ``Invalid`` for the first option that is out of its range.
    public func check() throws(Invalid) {
        for home in homes ?? [] where !Self.isHome(home) {
            throw Invalid(key: "homes", description: "'\(home)' is not the id of a home: 26 characters of base32 are")
        }
        for (key, option) in Self.numbers {
            let (value, allowed) = (self[keyPath: option], Self.range(of: key))
            guard allowed.contains(value) else {
                let bounds = "\(allowed.lowerBound) to \(allowed.upperBound)"
                throw Invalid(key: key.rawValue, description: "is \(value); \(bounds) are allowed")
            }
        }
    }

    private static var numbers: [(CodingKeys, WritableKeyPath<DoorOptions, Int>)] {
        [
            (.window, \.window), (.budget, \.budget), (.links, \.links), (.linksPerAddress, \.linksPerAddress),
            (.handshakes, \.handshakes), (.handshakesPerSecond, \.handshakesPerSecond),
            (.waitingClients, \.waitingClients), (.waitingClientsPerHome, \.waitingClientsPerHome),
            (.devices, \.devices), (.sessionsPerDevice, \.sessionsPerDevice), (.pairingCodes, \.pairingCodes),
        ]
    }

    private static func range(of key: CodingKeys) -> ClosedRange<Int> {
        switch key {
        case .window: 196_608...16_777_216
        case .budget: 1_048_576...1 << 50
        case .devices: 1_024...1 << 20
        case .sessionsPerDevice: 4...1_024
        case .pairingCodes: 8...1_024
        case .homes, .links, .linksPerAddress, .handshakes, .handshakesPerSecond, .waitingClients,
            .waitingClientsPerHome:
            1...1 << 24
        }
    }

    private static func isHome(_ text: String) -> Bool { HomeID(text) != nil }
}
