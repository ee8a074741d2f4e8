internal import Synchronization
internal import TransportKit

/// The transports and carriers of a graph by name, made when they are first asked for.
///
/// Factories reach it through their context while it is calling other factories, so no lock is held around a call.
final class GraphParts: Sendable {
    private enum Making<Part: Sendable>: Sendable {
        case underWay
        case made(Part)
        case failed
    }

    /// The key of the machine, as far as the file names one.
    enum DeviceKey: Sendable {
        case file(String)
        /// It cannot be used, and that was reported.
        case failed
    }

    private struct State {
        var deviceKey: DeviceKey?
        /// What the carriers that lead to a door are for.
        var roles: [String: LinkRole] = [:]
        var transportNodes: [String: ConfigNode] = [:]
        var carrierNodes: [String: ConfigNode] = [:]
        var carrierOrder: [String] = []
        var transports: [String: Making<any Transport>] = [:]
        var carriers: [String: Making<any Carrier>] = [:]
        /// The carriers under way, outermost first.
        var stack: [String] = []
        /// Who is built over a carrier.
        var users: [String: Set<String>] = [:]
        var owned: [(name: String, owner: String, place: ConfigNode)] = []

        /// A carrier and all that it is built over.
        func chain(_ name: String) -> Set<String> {
            var chain: Set = [name]
            var found = chain
            while !found.isEmpty {
                found = Set(users.filter { !$0.value.isDisjoint(with: found) }.keys).subtracting(chain)
                chain.formUnion(found)
            }
            return chain
        }
    }

    private let state = Mutex(State())
    private let configuration: HostConfiguration
    private let registry: Registry
    private let baseContext: BuildContext
    private let errors: ConfigErrorList

    init(configuration: HostConfiguration, registry: Registry, context: BuildContext, errors: ConfigErrorList) {
        self.configuration = configuration
        self.registry = registry
        baseContext = context
        self.errors = errors
    }

    /// Takes the sections of the file.
    func take(
        transports: [ConfigNode.Entry], carriers: [ConfigNode.Entry], deviceKey: DeviceKey? = nil,
        boxDoor: ConfigNode? = nil
    ) {
        state.withLock {
            $0.deviceKey = deviceKey
            $0.roles = Self.roles(carriers, boxDoor: boxDoor)
            $0.transportNodes = Self.byName(transports)
            $0.carrierNodes = Self.byName(carriers)
            $0.carrierOrder = carriers.map(\.key)
        }
    }

    /// Where the file describes a carrier.
    func node(ofCarrier name: String) -> ConfigNode? { state.withLock { $0.carrierNodes[name] } }

    /// A carrier that a tunnel goes through, or a box, leads to a door.
    private static func roles(_ carriers: [ConfigNode.Entry], boxDoor: ConfigNode?) -> [String: LinkRole] {
        var start: [String: LinkRole] = [:]
        if case .scalar(let name, _)? = boxDoor?.value { start[name] = .box }
        return carriers.reduce(into: start) { roles, entry in
            guard case .scalar("tunnel", _)? = entry.value["kind"]?.value,
                case .scalar(let name, _)? = entry.value["through"]?.value
            else { return }
            roles[name] = .app
        }
    }

    /// Why a carrier cannot be used for something; nil where it can.
    func problem(using name: String, for role: LinkRole) -> String? {
        let actual = state.withLock { $0.roles[name] } ?? .peer
        guard actual != role else { return nil }
        switch actual {
        case .app: return "the carrier '\(name)' leads a tunnel to its door and nowhere else; name another"
        case .box: return "the carrier '\(name)' leads the box to its door and nowhere else; name another"
        case .peer: return "the carrier '\(name)' does not lead to a door"
        }
    }

    private static func byName(_ entries: [ConfigNode.Entry]) -> [String: ConfigNode] {
        Dictionary(entries.map { ($0.key, $0.value) }) { first, _ in first }
    }

    /// Lets go of everything: what was made keeps its context, which leads back here, and nobody asks any more.
    func forget() { state.withLock { $0 = State() } }

    /// Every carrier that could be made.
    var carriers: [String: any Carrier] {
        state.withLock { $0.carriers }.compactMapValues { making in
            if case .made(let carrier) = making { carrier } else { nil }
        }
    }

    func hasCarrier(_ name: String) -> Bool { state.withLock { $0.carrierNodes[name] != nil } }

    /// Makes all that the file names, used or not, so that an error in any of it is found.
    func makeAll() {
        let (transports, carriers) = state.withLock { ($0.transportNodes, $0.carrierOrder) }
        for (name, node) in transports.sorted(by: { $0.key < $1.key }) {
            _ = errors.gather { () throws(ConfigError) in try self.transport(name, at: node) }
        }
        for name in carriers { _ = try? carrier(name) }
        checkOwners()
    }

    /// What a carrier may close has no other user, nor has anything below it.
    private func checkOwners() {
        let state = state.withLock { $0 }
        for (name, owner, place) in state.owned {
            let chain = state.chain(name)
            for part in chain.sorted() {
                let strangers = (state.users[part] ?? []).subtracting(chain).subtracting(part == name ? [owner] : [])
                guard !strangers.isEmpty else { continue }
                let users = Words.list(strangers.sorted().map { "'\($0)'" })
                errors.add(
                    place.error(
                        "'\(name)' is closed when it is given up, and '\(part)' with it, which \(users) needs; "
                            + "write a carrier of its own for each"))
            }
        }
    }

    /// Who may close a carrier before the end of the host.
    func owner(of name: String) -> String? {
        state.withLock { state in state.owned.first { state.chain($0.name).contains(name) }?.owner }
    }

    /// The context of one factory call: the host's, with names and files of this config.
    func context(for node: ConfigNode) -> BuildContext {
        var context = baseContext
        let registry = registry
        let outer = baseContext
        let configuration = configuration
        let role: LinkRole = if case .scalar("tunnel", _)? = node["kind"]?.value { .app } else { .peer }
        context.carrier = { [self] name in
            let carrier = try carrier(name)
            if let problem = problem(using: name, for: role) { throw RegistryError(problem) }
            return carrier
        }
        context.ownCarrier = { [self] name in
            let entry = try? node.entries("").first { (try? $0.value.text("")) == name }
            state.withLock { state in
                guard let owner = state.stack.last else { return }
                state.owned.append((name, owner, entry?.value ?? node))
            }
            return try carrier(name)
        }
        context.keyFile = { [self] name in try keyFile(name) }
        context.transport = { [self] name in try transport(name, at: node) }
        context.racePolicy = { name in
            guard registry.names.racePolicies.contains(name) else {
                throw RegistryError(Self.unknown(name, kind: "race policy", among: registry.names.racePolicies))
            }
            return try registry.makeRacePolicy(name, options: ConfigOptions.none, context: outer)
        }
        context.demotionPolicy = { name in
            guard registry.names.demotionPolicies.contains(name) else {
                throw RegistryError(Self.unknown(name, kind: "demotion policy", among: registry.names.demotionPolicies))
            }
            return try registry.makeDemotionPolicy(name, options: ConfigOptions.none, context: outer)
        }
        context.path = { name in configuration.path(name) }
        return context
    }

    private func keyFile(_ name: String) throws -> String {
        guard name == "device" else { throw RegistryError("there is no key '\(name)'; the device has one") }
        switch state.withLock({ $0.deviceKey }) {
        case .file(let path): return path
        case .failed: throw AlreadyReported()
        case nil:
            throw RegistryError(
                "needs the key of this machine; make one with `transportkit keygen FILE`, and name it at the top of the "
                    + "file: keys: { device: FILE }")
        }
    }

    /// `there is no … 'x'; did you mean 'y'? there are …`
    static func unknown(_ name: String, kind: String, among names: [String]) -> String {
        let hint = Words.nearest(to: name, among: names).map { "did you mean '\($0)'? " } ?? ""
        let known = names.isEmpty ? "there is none" : "known are \(Words.list(names))"
        return "there is no \(kind) '\(name)'; \(hint)\(known)"
    }

    func noCarrier(_ name: String) -> String {
        Self.unknown(name, kind: "carrier", among: state.withLock { $0.carrierOrder })
    }

    /// A file that the config names and that is there.
    func readableFile(_ node: ConfigNode) throws(ConfigError) -> String {
        let path = configuration.path(try node.fileName("a file name"))
        if let problem = FileCheck.problem(reading: path) { throw node.error(problem) }
        return path
    }

    // MARK: - Transports

    /// The transport of that name: one that the file configures, else one that is registered, without options.
    ///
    /// - Parameter place: who asks, for the error.
    func transport(_ name: String, at place: ConfigNode) throws(ConfigError) -> any Transport {
        let (known, node) = state.withLock { ($0.transports[name], $0.transportNodes[name]) }
        switch known {
        case .made(let transport): return transport
        case .failed: throw place.error("the transport '\(name)' cannot be made; see its own error")
        case .underWay: throw place.error("the transport '\(name)' is built on itself")
        case nil: break
        }
        let made: any Transport
        do {
            made = try makeTransport(name, node, at: place)
        } catch {
            state.withLock { $0.transports[name] = .failed }
            throw error
        }
        state.withLock { $0.transports[name] = .made(made) }
        return made
    }

    private func makeTransport(
        _ name: String, _ node: ConfigNode?, at place: ConfigNode
    ) throws(ConfigError) -> any Transport {
        var kind = name
        var kindNode = place
        if let node {
            guard let value = node["kind"] else {
                let names = Words.list(registry.names.transports, joint: "or")
                throw node.error("'kind' is missing; name one of \(names)")
            }
            kind = try value.text("the kind of a transport")
            kindNode = value
        }
        guard registry.names.transports.contains(kind) else {
            let names = registry.names.transports + state.withLock { Array($0.transportNodes.keys) }
            throw kindNode.error(Self.unknown(kind, kind: "transport", among: Set(names).sorted()))
        }
        let empty = ConfigNode(value: .mapping([]), place: place.place, path: place.path)
        let options = ConfigOptions(node ?? empty, hostKeys: ["kind"])
        do {
            return try registry.makeTransport(kind, options: options, context: context(for: node ?? place))
        } catch {
            throw firstError(error, at: node ?? place)
        }
    }

    /// The error to throw; where a factory found several, the others are kept here.
    private func firstError(_ error: any Error, at node: ConfigNode) -> ConfigError {
        guard let several = error as? ConfigErrors, let first = several.errors.first else {
            return ConfigDecoder.placed(error, at: node)
        }
        for other in several.errors.dropFirst() { errors.add(other) }
        return first
    }

    // MARK: - Carriers

    /// The carrier of that name. Its errors are reported once, and whoever is built on it gets ``AlreadyReported``.
    private func carrier(_ name: String) throws -> any Carrier {
        let (known, node, stack) = state.withLock { state in
            if let user = state.stack.last { state.users[name, default: []].insert(user) }
            return (state.carriers[name], state.carrierNodes[name], state.stack)
        }
        guard let node else { throw RegistryError(noCarrier(name)) }
        switch known {
        case .made(let carrier): return carrier
        case .failed: throw AlreadyReported()
        case .underWay:
            let circle = stack.drop { $0 != name } + [name]
            throw RegistryError("the carriers go in a circle: \(circle.joined(separator: " → "))")
        case nil: break
        }
        state.withLock {
            $0.carriers[name] = .underWay
            $0.stack.append(name)
        }
        defer { state.withLock { _ = $0.stack.popLast() } }
        do {
            let carrier = try makeCarrier(node, role: state.withLock { $0.roles[name] } ?? .peer)
            state.withLock { $0.carriers[name] = .made(carrier) }
            return carrier
        } catch {
            state.withLock { $0.carriers[name] = .failed }
            errors.add(error, at: node)
            throw AlreadyReported()
        }
    }

    private func makeCarrier(_ node: ConfigNode, role: LinkRole) throws -> any Carrier {
        let names = registry.names.carriers
        _ = try node.entries("a mapping with 'kind'")
        guard let kindNode = node["kind"] else {
            throw node.error("'kind' is missing; name one of \(Words.list(names, joint: "or"))")
        }
        let kind = try kindNode.text("the kind of a carrier")
        guard names.contains(kind) else {
            throw kindNode.error(Self.unknown(kind, kind: "kind of carrier", among: names))
        }
        var context = context(for: node)
        context.role = role
        return try registry.makeCarrier(kind, options: ConfigOptions(node, hostKeys: ["kind"]), context: context)
    }
}
