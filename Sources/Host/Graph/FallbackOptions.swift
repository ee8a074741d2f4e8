internal import FallbackCarrier
internal import TransportKit

/// The options of a carrier that falls back to a second one.
struct FallbackOptions: Decodable, Sendable {
    var primary: String
    var secondary: String
    var recovery: TimeLimit?
    var switchBack: SwitchBack?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case primary, secondary, recovery, switchBack
    }

    /// When to go back to the primary.
    struct SwitchBack: Decodable, Sendable {
        var probe: TimeLimit?
        var dwell: TimeLimit?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case probe, dwell
        }
    }

    /// Less than a round trip says nothing of a path.
    private static let leastRecovery = Duration.milliseconds(100)
    /// The primary is dialled so often at most; a service has more clients than one.
    private static let leastProbe = Duration.seconds(1)

    /// Makes the carrier that the options of a plug-in ask for.
    ///
    /// The secondary is made here too, so that what is wrong with it is found before anything binds. Making it opens nothing.
    static func carrier(_ source: any OptionsSource, context: BuildContext) throws -> FallbackCarrier {
        let options = try source.decode(Self.self)
        guard options.primary != options.secondary else {
            throw source.invalid("secondary", "'\(options.secondary)' is the primary; name another carrier")
        }
        var settings = FallbackSettings()
        if let recovery = options.recovery?.value {
            guard recovery >= leastRecovery else { throw source.invalid("recovery", "must be at least 100ms") }
            settings.recovery = recovery
        }
        if let switchBack = options.switchBack {
            var policy = ProbingSwitchBack()
            policy.probe = switchBack.probe?.value ?? policy.probe
            policy.dwell = switchBack.dwell?.value ?? policy.dwell
            guard policy.probe >= leastProbe else { throw source.invalid("switchBack.probe", "must be at least 1s") }
            settings.switchBack = policy
        }
        // Without a way back it is closed when the secondary takes over, so it is nobody else's.
        let primary = try resolve(
            options.primary, "primary", source, settings.switchBack == nil ? context.ownCarrier : context.carrier)
        let secondary = try resolve(options.secondary, "secondary", source, context.carrier)
        do {
            return try FallbackCarrier(
                primary: primary, secondary: DeferredCarrier(secondary),
                names: (options.primary, options.secondary), settings: settings, executor: context.executor,
                time: context.time, log: context.log)
        } catch {
            throw source.invalid("secondary", error.message)
        }
    }

    private static func resolve(
        _ name: String, _ key: String, _ source: any OptionsSource, _ find: (String) throws -> any Carrier
    ) throws -> any Carrier {
        do {
            return try find(name)
        } catch let error as RegistryError {
            throw source.invalid(key, error.description)
        }
    }
}
