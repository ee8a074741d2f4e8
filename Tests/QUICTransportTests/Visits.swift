import TransportKit
import TransportTLS

@testable import QUICTransport

/// What a client and a service keep from one pair of connections to the next.
struct Visits {
    let server: TLSServerCredentials
    var tickets = TLSTicketStore()
    var port: UInt16 = 4433
    var takesEarlyData = true
    /// What the client says as early data, where it has a ticket for that.
    var words: (target: Target, firstFlight: Bytes?)?

    init() throws {
        server = try TLSServerCredentials(ServerSecurity(identity: EnginePair.files.get()))
    }

    /// The same with something to say.
    func saying(_ target: String, _ firstFlight: Bytes?) -> Visits {
        var visits = self
        visits.words = (Target(target) ?? .root, firstFlight)
        return visits
    }

    /// A visit that brings tickets and nothing else.
    func first(_ security: ClientSecurity? = nil) throws {
        let pair = try EnginePair(security: security, visits: self)
        try pair.open()
        try pair.run(for: .seconds(1))
    }
}
