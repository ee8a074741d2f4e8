internal import Glibc
internal import TransportKit
internal import TransportTLS

/// The options of a carrier that dials a service, racing the transports it may use.
struct DirectOptions: Decodable, Sendable {
    var url: DialledURL
    var transports: [String]?
    var race: String?
    var demotion: String?
    var tls: ClientTLSOptions?
    var limits: LimitsOptions?
    var keepalive: KeepaliveOptions?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case url, transports, race, demotion, tls, limits, keepalive
    }
}

/// The same, checked, with its names resolved.
struct DirectParts {
    var url: ServiceURL
    var transports: [any Transport]
    var dial: DialOptions
    var race: any RacePolicy
    var demotion: any DemotionPolicy

    /// Resolves the names in the options of a plug-in.
    init(_ source: any OptionsSource, context: BuildContext) throws {
        let options = try source.decode(DirectOptions.self)
        url = options.url.url
        if url.target == .root, let target = context.role.target { url = ServiceURL(url.endpoint, target: target) }
        transports = try Self.transports(options, source, context)
        dial = DialOptions()
        dial.applicationProtocol = context.role.applicationProtocol
        options.limits?.apply(to: &dial.limits)
        options.keepalive?.apply(to: &dial.keepalive)
        dial.security = try Self.security(options, source, context)
        dial.tickets = options.tls?.tickets ?? true
        // R13: message 1 to the door may be sent again by anybody, and changes nothing there.
        let isEarlyBox = context.role == .box && dial.tickets && transports.contains { $0.name == .quic }
        dial.earlyData = options.tls?.earlyData ?? isEarlyBox
        if dial.earlyData {
            guard dial.tickets else { throw source.invalid("tls.earlyData", EarlyDataOption.needsTickets) }
            guard transports.contains(where: { $0.name == .quic }) else {
                throw source.invalid("tls.earlyData", EarlyDataOption.needsQUIC)
            }
        }
        race = try Self.policy(options.race ?? "head-start", "race", source, context.racePolicy)
        demotion = try Self.policy(options.demotion ?? "day", "demotion", source, context.demotionPolicy)
    }

    private static func policy<Policy>(
        _ name: String, _ key: String, _ source: any OptionsSource, _ find: (String) throws -> Policy
    ) throws -> Policy {
        do {
            return try find(name)
        } catch let error as RegistryError {
            throw source.invalid(key, error.description)
        }
    }

    private static func transports(
        _ options: DirectOptions, _ source: any OptionsSource, _ context: BuildContext
    ) throws -> [any Transport] {
        let isPlain = options.url.url.endpoint.scheme == .ws
        let names = options.transports ?? (isPlain ? ["websocket"] : ["quic", "websocket"])
        guard !names.isEmpty else { throw source.invalid("transports", "names no transport; one at least is needed") }
        var transports: [any Transport] = []
        for (index, name) in names.enumerated() {
            let key = options.transports == nil ? "transports" : "transports[\(index)]"
            let transport: any Transport
            do {
                transport = try context.transport(name)
            } catch let error as ConfigError {
                throw source.invalid(key, error.message)
            }
            guard !transports.contains(where: { $0.name == transport.name }) else {
                throw source.invalid(key, "'\(name)' stands here a second time; once is enough")
            }
            guard transport.name != .quic || !isPlain else {
                throw source.invalid(key, "QUIC has no form without TLS; write wss:// or leave it out")
            }
            transports.append(transport)
        }
        return transports
    }

    static func security(
        _ options: DirectOptions, _ source: any OptionsSource, _ context: BuildContext
    ) throws -> ClientSecurity {
        var security = ClientSecurity()
        guard let tls = options.tls else { return security }
        guard options.url.url.endpoint.scheme == .wss else {
            throw source.invalid("tls", "is of no use with ws://; write wss:// or leave it out")
        }
        security.pins = tls.pin?.elements.map(\.hash) ?? []
        security.serverName = try tls.serverName.map { name in
            guard Host(name) != nil else { throw source.invalid("tls.serverName", "is neither a name nor an address") }
            return name
        }
        var isMissing = false
        if case .file(let name, let isOptional) = tls.trust {
            if let problem = FileCheck.problem(naming: name) { throw source.invalid("tls.trust", problem) }
            let path = context.path(name)
            let problem = FileCheck.problem(reading: path)
            // It is read again on every dial, so a file that may appear later does no harm now.
            isMissing = unsafe isOptional && access(path, F_OK) != 0
            if let problem, !isMissing { throw source.invalid("tls.trust", problem) }
            security.trust = .file(path)
        }
        switch (tls.certificate, tls.key) {
        case (nil, nil): break
        case (let certificate?, let key?):
            for (key, name) in [("tls.certificate", certificate), ("tls.key", key)] {
                if let problem = FileCheck.problem(naming: name) { throw source.invalid(key, problem) }
            }
            let files = CertificateFiles(certificate: context.path(certificate), key: context.path(key))
            for (key, path) in [("tls.certificate", files.certificate), ("tls.key", files.key)] {
                if let problem = FileCheck.problem(reading: path) { throw source.invalid(key, problem) }
            }
            security.identity = files
        case (_?, nil): throw source.invalid("tls.certificate", "needs 'key', the file of its private key, beside it")
        case (nil, _?): throw source.invalid("tls.key", "needs 'certificate', the file that it belongs to, beside it")
        }
        // What can be read is read now, so that a bad file is found before anything is dialled.
        if !isMissing || security.identity != nil {
            do {
                var readable = security
                if isMissing { readable.trust = .system }
                _ = try TLSClientCredentials(readable)
            } catch {
                throw source.invalid("tls", error.message)
            }
        }
        return security
    }
}

/// What is said of `earlyData` where it cannot be.
enum EarlyDataOption {
    static let needsTickets = "needs tickets; leave 'tickets: false' out, or this"
    static let needsQUIC = "needs the transport 'quic', which alone can send early data"
}
