internal import TransportKit

extension BuildContext {
    /// The same, in which every other thing is found in a registry by its name and made without options, for whoever makes
    /// a carrier without a config file.
    func resolving(by registry: Registry) -> BuildContext {
        let outer = self
        var context = self
        context.transport = { try registry.makeTransport($0, options: ConfigOptions.none, context: outer) }
        context.racePolicy = { try registry.makeRacePolicy($0, options: ConfigOptions.none, context: outer) }
        context.demotionPolicy = { try registry.makeDemotionPolicy($0, options: ConfigOptions.none, context: outer) }
        return context
    }
}
