import Testing
import TransportKit
import TransportTLS

/// Two ends of a TLS stream with memory between them.
final class TLSPair {
    let client: TLSStream
    let server: TLSStream
    /// How many bytes are handed over at once; odd numbers cut records and headers anywhere.
    var chunk = Int.max

    init(client: TLSSession, server: TLSSession) {
        self.client = TLSStream(client)
        self.server = TLSStream(server)
    }

    convenience init(
        _ clientSecurity: ClientSecurity, _ server: TLSServerCredentials, host: String = "door.example",
        port: UInt16 = 443, offering: [String] = [WireNames.alpnHTTP], speaking: [String] = [WireNames.alpnHTTP],
        tickets: TLSTicketStore? = nil
    ) throws {
        let credentials = try TLSClientCredentials(clientSecurity, tickets: tickets)
        let name = try #require(Host(host))
        self.init(
            client: try TLSSession.client(credentials, host: name, port: port, protocols: offering, forQUIC: false),
            server: try TLSSession.server(server, protocols: speaking, forQUIC: false))
    }

    /// Hands over what each end has to say until neither says anything.
    func handshake() -> (client: TransportError?, server: TransportError?) {
        var failures: (client: TransportError?, server: TransportError?)
        var isDone = (client: false, server: false)
        repeat {
            if failures.client == nil { advance(client, &isDone.client, &failures.client) }
            move(client, to: server)
            if failures.server == nil { advance(server, &isDone.server, &failures.server) }
            move(server, to: client)
        } while client.hasOutput || server.hasOutput || needsAnother(&failures, &isDone)
        return failures
    }

    /// One more look at what came last, such as the alert about a client certificate.
    private func needsAnother(
        _ failures: inout (client: TransportError?, server: TransportError?),
        _ isDone: inout (client: Bool, server: Bool)
    ) -> Bool {
        if failures.client == nil { advance(client, &isDone.client, &failures.client) }
        if failures.server == nil { advance(server, &isDone.server, &failures.server) }
        return client.hasOutput || server.hasOutput
    }

    private func advance(_ end: TLSStream, _ isDone: inout Bool, _ failure: inout TransportError?) {
        do throws(TransportError) {
            if !isDone { isDone = try end.advanceHandshake() == .done }
            // Tickets and late alerts are read like data; none comes here.
            if isDone { _ = try end.takePlaintext() }
        } catch {
            failure = error
        }
    }

    /// Moves everything one end has to say, in chunks.
    func move(_ from: TLSStream, to: TLSStream) {
        var bytes = from.takeOutput()
        while !bytes.isEmpty { to.feed(bytes.takeFirst(min(chunk, bytes.count))) }
    }
}
