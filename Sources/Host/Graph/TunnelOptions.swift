internal import NoiseCarrier
internal import TransportKit
internal import TunnelCarrier

/// The options of `tunnel`.
struct TunnelOptions: Decodable, Sendable {
    /// The carrier that leads to the door.
    var through: String
    /// The door's public keys, one or two.
    var doorKeys: OneOrMore<PeerKey>
    /// The home that is to be reached.
    var home: HomeName

    enum CodingKeys: String, CodingKey, CaseIterable {
        case through, doorKeys, home
    }

    /// Makes the carrier.
    static func makeCarrier(_ source: any OptionsSource, _ context: BuildContext) throws -> TunnelCarrier {
        let options = try source.decode(TunnelOptions.self)
        let inner: any Carrier
        do {
            inner = try context.carrier(options.through)
        } catch let error as RegistryError {
            throw source.invalid("through", error.description)
        }
        let keys = options.doorKeys.elements.map(\.key)
        if let problem = DoorKeyRule.problem(keys) { throw source.invalid("doorKeys", problem) }
        let settings = TunnelSettings(key: try context.deviceKey(), home: options.home.id, doorKeys: keys)
        return TunnelCarrier(
            through: inner, settings: settings, executor: context.executor, time: context.time, log: context.log,
            metrics: context.metrics)
    }
}

/// The id of a home, as an option.
struct HomeName: Decodable, Sendable {
    let id: HomeID

    struct Invalid: Error, CustomStringConvertible {
        let description =
            "must be the id of a home: 26 characters of base32 in lower case, as `keygen --json` prints it"
    }

    init(from decoder: any Decoder) throws {
        guard let id = HomeID(try decoder.singleValueContainer().decode(String.self)) else { throw Invalid() }
        self.id = id
    }
}

/// How many keys a door has.
enum DoorKeyRule {
    /// Why these cannot be the keys of a door; nil where they can.
    static func problem(_ keys: [StaticPublicKey]) -> String? {
        guard (1...2).contains(keys.count) else {
            return "names \(keys.count) keys; a door has one, or two while they change"
        }
        return Set(keys).count == keys.count ? nil : "names a key twice; once is enough"
    }
}
