internal import NoiseCarrier
internal import TransportKit

/// The options of `noise`.
struct NoiseOptions: Decodable, Sendable {
    /// The carrier whose messages are sealed.
    var over: String
    /// Who must answer.
    var peer: PeerKey
    /// The text that stands in front of the peer's key in the prologue, where it is not the usual one.
    var prologue: String?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case over, peer, prologue
    }

    /// Makes the carrier.
    static func makeCarrier(_ source: any OptionsSource, _ context: BuildContext) throws -> NoiseCarrier {
        let options = try source.decode(NoiseOptions.self)
        let inner: any Carrier
        do {
            inner = try context.carrier(options.over)
        } catch let error as RegistryError {
            throw source.invalid("over", error.description)
        }
        let key = try context.deviceKey()
        guard key.publicKey != options.peer.key else {
            throw source.invalid("peer", "is this device's own key; the peer's is needed")
        }
        guard inner.protection < .endToEnd else {
            throw source.invalid("over", "names '\(options.over)', which is sealed end to end already; once is enough")
        }
        return NoiseCarrier(
            over: inner, key: key, peer: options.peer.key, settings: NoiseSettings(prologueText: options.prologue),
            executor: context.executor, time: context.time, log: context.log, metrics: context.metrics)
    }
}

extension NoiseSettings {
    /// The default settings, with another text in front of the key.
    init(prologueText text: String?) {
        self.init()
        if let text { prologue = .label(text) }
    }
}

extension BuildContext {
    /// The key by which peers know this machine.
    func deviceKey() throws -> StaticPrivateKey { try KeyFile.read(try keyFile("device")) }
}
