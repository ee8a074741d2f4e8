import Testing
import TransportKit
import TransportKitTesting

@Suite struct RegistryTests {
    private let context = BuildContext(executor: ManualExecutor(), time: ManualTime())

    private struct HeadStartOptions: Decodable {
        var milliseconds = 250
    }

    private func makeRegistry() throws -> Registry {
        var registry = Registry()
        try registry.register(racePolicy: "head-start") { options, _ in
            let options = try options.decode(HeadStartOptions.self)
            guard options.milliseconds >= 0 else { throw options_invalid(options) }
            return HeadStartRacePolicy(headStart: .milliseconds(options.milliseconds))
        }
        try registry.register(racePolicy: "parallel") { _, _ in ParallelRacePolicy() }
        try registry.register(demotionPolicy: "parallel") { _, _ in NoDemotionPolicy() }
        return registry
    }

    private func options_invalid(_ options: HeadStartOptions) -> any Error {
        FixedOptions(options).invalid("milliseconds", "must not be negative")
    }

    @Test func `A factory gets its options`() throws {
        let policy = try makeRegistry().makeRacePolicy(
            "head-start", options: FixedOptions(HeadStartOptions(milliseconds: 100)), context: context)
        #expect((policy as? HeadStartRacePolicy)?.headStart == .milliseconds(100))
    }

    @Test func `Options of another type, or not allowed, are refused`() throws {
        let registry = try makeRegistry()
        #expect(throws: TransportError.self) {
            try registry.makeRacePolicy("head-start", options: FixedOptions(5), context: context)
        }
        let error = #expect(throws: TransportError.self) {
            try registry.makeRacePolicy(
                "head-start", options: FixedOptions(HeadStartOptions(milliseconds: -1)), context: context)
        }
        #expect(error?.message == "milliseconds: must not be negative")
    }

    @Test func `A name is taken once for each kind`() throws {
        var registry = try makeRegistry()
        let error = #expect(throws: RegistryError.self) {
            try registry.register(racePolicy: "parallel") { _, _ in OrderedRacePolicy() }
        }
        #expect(error?.description == "the race policy 'parallel' is registered already")
        // The first one stays.
        let policy = try registry.makeRacePolicy("parallel", options: FixedOptions(0), context: context)
        #expect(policy is ParallelRacePolicy)
    }

    @Test func `An unknown name is refused with the known ones`() throws {
        let registry = try makeRegistry()
        let error = #expect(throws: RegistryError.self) {
            try registry.makeRacePolicy("headstart", options: FixedOptions(0), context: context)
        }
        #expect(error?.description == "there is no race policy 'headstart'; there are head-start, parallel")
        let none = #expect(throws: RegistryError.self) {
            try registry.makeTransport("quic", options: FixedOptions(0), context: context)
        }
        #expect(none?.description == "there is no transport 'quic'; there are none")
        #expect(throws: RegistryError.self) {
            try registry.makeCarrier("direct", options: FixedOptions(0), context: context)
        }
        #expect(throws: RegistryError.self) {
            try registry.makeService("echo", options: FixedOptions(0), context: context)
        }
        #expect(throws: RegistryError.self) {
            try registry.makeDemotionPolicy("day", options: FixedOptions(0), context: context)
        }
    }

    @Test func `The names are listed by kind, sorted, and a copy of a registry is its own`() throws {
        let registry = try makeRegistry()
        var copy = registry
        try copy.register(racePolicy: "a") { _, _ in OrderedRacePolicy() }
        #expect(registry.names.racePolicies == ["head-start", "parallel"])
        #expect(copy.names.racePolicies == ["a", "head-start", "parallel"])
        #expect(registry.names.demotionPolicies == ["parallel"])
        #expect(registry.names.transports == [])
    }

    @Test func `A context knows nothing by name until it is told`() {
        #expect(throws: RegistryError.self) { try context.carrier("main") }
        #expect(throws: RegistryError.self) { try context.transport("quic") }
        #expect(throws: RegistryError.self) { try context.racePolicy("head-start") }
        #expect(throws: RegistryError.self) { try context.demotionPolicy("day") }
        #expect(context.path("a/b") == "a/b")
        #expect(context.network() == nil)
    }
}
