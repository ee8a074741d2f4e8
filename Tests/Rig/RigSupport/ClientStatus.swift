internal import Foundation

/// What `transportkit status --json` says of the client, as far as tests look at it.
package struct ClientStatus: Decodable, Sendable {
    package struct Carrier: Decodable, Sendable {
        package let name, text: String
    }

    package struct Path: Decodable, Sendable {
        package let destination: String
        package let winner: String?
        package let demotions: [Demotion]
    }

    package struct Demotion: Decodable, Sendable {
        package let transport, reason: String
        package let since, until: Int
    }

    package let carriers: [Carrier]
    package let paths: [Path]
}

extension Tunnel {
    package func status() async throws -> ClientStatus {
        try JSONDecoder().decode(ClientStatus.self, from: Data(try await ask("status", "--json").utf8))
    }
}
