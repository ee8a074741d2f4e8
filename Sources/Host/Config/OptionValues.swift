internal import TransportKit

/// A URL that is dialled, as an option.
struct DialledURL: Decodable, Sendable {
    let url: ServiceURL

    init(_ url: ServiceURL) { self.url = url }

    init(from decoder: any Decoder) throws {
        url = try ServiceURL(try decoder.singleValueContainer().decode(String.self))
        guard url.endpoint.port > 0 else {
            throw ServiceURL.InvalidURL("has port 0; 1 to 65535 are allowed")
        }
    }
}

/// The hash of a certificate or public key, as an option.
struct Pin: Decodable, Sendable {
    let hash: PublicKeyHash

    init(_ hash: PublicKeyHash) { self.hash = hash }

    struct Invalid: Error, CustomStringConvertible {
        let description = "must be sha256: and 64 hexadecimal digits, the hash of a certificate or of its public key"
    }

    init(from decoder: any Decoder) throws {
        guard let hash = PublicKeyHash(try decoder.singleValueContainer().decode(String.self)) else { throw Invalid() }
        self.hash = hash
    }
}

/// One value, or a list of them.
struct OneOrMore<Element: Decodable & Sendable>: Decodable, Sendable {
    let elements: [Element]

    init(_ elements: [Element]) { self.elements = elements }

    init(from decoder: any Decoder) throws {
        if let decoder = decoder as? ConfigDecoder, case .list = decoder.node.value {
            elements = try decoder.singleValueContainer().decode([Element].self)
        } else {
            elements = [try decoder.singleValueContainer().decode(Element.self)]
        }
    }
}

/// A number of things, at least one, as an option.
struct Count: Decodable, Sendable {
    let value: Int

    init(from decoder: any Decoder) throws {
        let limit = 1 << 30
        if let decoder = decoder as? ConfigDecoder {
            value = try decoder.node.integer(1...limit)
        } else {
            value = try decoder.singleValueContainer().decode(Int.self)
        }
    }
}

/// A number of event loops, each a thread, as an option.
struct LoopCount: Decodable, Sendable {
    let value: Int

    struct Invalid: Error, CustomStringConvertible {
        let description = "must be a whole number from 1 to 64"
    }

    init(from decoder: any Decoder) throws {
        let range = 1...64
        if let decoder = decoder as? ConfigDecoder {
            value = try decoder.node.integer(range)
        } else {
            value = try decoder.singleValueContainer().decode(Int.self)
            guard range.contains(value) else { throw Invalid() }
        }
    }
}

/// A time limit, longer than nothing, as an option.
struct TimeLimit: Decodable, Sendable {
    let value: Duration

    struct Invalid: Error, CustomStringConvertible {
        let description = "must be longer than nothing"
    }

    init(_ value: Duration) { self.value = value }

    init(from decoder: any Decoder) throws {
        value = try decoder.singleValueContainer().decode(Duration.self)
        guard value > .zero else { throw Invalid() }
    }
}

/// Bounds of sockets, as an option; what is left out stays as it is.
struct LimitsOptions: Decodable, Sendable {
    var maxMessageBytes: Count?
    var maxStreams: Count?
    var maxConnections: Count?
    var handshakeTimeout: TimeLimit?
    var linger: TimeLimit?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case maxMessageBytes, maxStreams, maxConnections, handshakeTimeout, linger
    }

    /// Nothing is dialled in less on a network that is worth the name.
    static let leastHandshake = Duration.milliseconds(100)

    func apply(to limits: inout Limits) {
        if let maxMessageBytes { limits.maxMessageBytes = maxMessageBytes.value }
        if let maxStreams { limits.maxStreams = maxStreams.value }
        if let maxConnections { limits.maxConnections = maxConnections.value }
        if let handshakeTimeout { limits.handshakeTimeout = handshakeTimeout.value }
        if let linger { limits.linger = linger.value }
    }
}

extension LimitsOptions {
    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        maxMessageBytes = try values.decodeIfPresent(Count.self, forKey: .maxMessageBytes)
        maxStreams = try values.decodeIfPresent(Count.self, forKey: .maxStreams)
        maxConnections = try values.decodeIfPresent(Count.self, forKey: .maxConnections)
        handshakeTimeout = try values.decodeIfPresent(TimeLimit.self, forKey: .handshakeTimeout)
        linger = try values.decodeIfPresent(TimeLimit.self, forKey: .linger)
        if let handshakeTimeout, handshakeTimeout.value < Self.leastHandshake {
            throw decoder.invalid("handshakeTimeout", "must be at least 100ms")
        }
    }
}

/// How a service proves who it is, as options of a carrier.
struct ClientTLSOptions: Decodable, Sendable {
    /// `system`, a file, or a file that may appear later.
    enum Trust: Decodable, Sendable {
        case system
        case file(String, isOptional: Bool)

        private struct File: Decodable {
            var file: String
            var optional: Bool?

            enum CodingKeys: String, CodingKey, CaseIterable { case file, optional }
        }

        init(from decoder: any Decoder) throws {
            if let decoder = decoder as? ConfigDecoder, case .mapping = decoder.node.value {
                let file = try decoder.singleValueContainer().decode(File.self)
                self = .file(file.file, isOptional: file.optional ?? false)
            } else {
                let text = try decoder.singleValueContainer().decode(String.self)
                self = text == "system" ? .system : .file(text, isOptional: false)
            }
        }
    }

    var trust: Trust?
    var pin: OneOrMore<Pin>?
    var serverName: String?
    var certificate: String?
    var key: String?
    var tickets: Bool?
    var earlyData: Bool?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case trust, pin, serverName, certificate, key, tickets, earlyData
    }
}
