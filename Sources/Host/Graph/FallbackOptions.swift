internal import FallbackCarrier
internal import TransportKit

/// The options of a carrier that falls back to a second one.
struct FallbackOptions: Decodable, Sendable {
    var primary: String
    var secondary: String
    var recovery: TimeLimit?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case primary, secondary, recovery
    }

    /// Less than a round trip says nothing of a path.
    private static let leastRecovery = Duration.milliseconds(100)

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
        // It ends when the secondary takes over, so it is nobody else's.
        let primary = try resolve(options.primary, "primary", source, context.ownCarrier)
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
