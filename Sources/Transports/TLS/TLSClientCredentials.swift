internal import CGnuTLS
internal import Glibc
internal import Synchronization
package import TransportKit

/// The rules of one dial, read from its files; any number of sessions may share them.
///
/// Make new ones for every dial: a trust file is then read again, so a renewed one counts at once. The machine's own
/// trust store, which is large, is kept for a few minutes.
package final class TLSClientCredentials: Sendable {
    /// The rules that were asked for.
    package let security: ClientSecurity

    let store: CertificateStore
    /// Where tickets for a quick return are kept; nil for full handshakes only.
    let tickets: TLSTicketStore?
    /// SHA-256 over what the files held, so that a ticket dies with the rules under which it was made (B63).
    let fingerprint: Bytes
    /// The name to ask for where it is not the host that is dialled.
    let serverName: Host?

    /// Reads what the rules name.
    ///
    /// - Throws: ``/TransportKit/TransportError`` with the file and what to do about it.
    package init(_ security: ClientSecurity, tickets: TLSTicketStore? = .shared) throws(TransportError) {
        self.security = security
        self.tickets = tickets
        serverName = try security.serverName.map { (name: String) throws(TransportError) -> Host in
            guard let host = Host(name) else {
                throw TransportError(
                    .misuse, "the server name \"\(name.printable(limit: 120))\" is neither a name nor an address")
            }
            return host
        }
        let trusted = try Self.makeStore(security)
        store = trusted.store
        var seen = trusted.seen
        if let identity = security.identity { seen.append(contentsOf: try store.show(identity)) }
        fingerprint = unsafe seen.withUnsafeBytes { unsafe Bytes.sha256(of: $0) }
    }

    private static func makeStore(_ security: ClientSecurity) throws(TransportError) -> (
        store: CertificateStore, seen: Bytes
    ) {
        // With pins nobody's signature counts, so nothing needs to be read.
        guard security.pins.isEmpty else { return (try CertificateStore(), Bytes()) }
        switch security.trust {
        case .system:
            return (try SystemTrust.store(isShared: security.identity == nil), Bytes())
        case .file(let path):
            let pem = try TLSFile.read(path, what: "the trust file")
            let store = try CertificateStore()
            try store.trust(pem: pem, source: "the trust file \(path)")
            return (store, pem)
        case .pem(let text):
            let store = try CertificateStore()
            try store.trust(pem: Bytes(text), source: "the trusted PEM text")
            return (store, Bytes())
        }
    }
}

/// The machine's trust store, which takes long to read and seldom changes.
private enum SystemTrust {
    private struct Kept {
        var store: CertificateStore
        var since: WallTime
    }

    private static let kept = Mutex<Kept?>(nil)
    private static let lifetime: Int64 = 600

    /// - Parameter isShared: false where the caller will add its own certificate to the store.
    static func store(isShared: Bool) throws(TransportError) -> CertificateStore {
        let now = TLSText.wallNow()
        if isShared, let store = kept.withLock({ $0.flatMap { isFresh($0, now) ? $0.store : nil } }) { return store }
        let store = try CertificateStore()
        try store.trustSystem()
        if isShared { kept.withLock { $0 = Kept(store: store, since: now) } }
        return store
    }

    /// A clock that was set back makes it stale as well.
    private static func isFresh(_ kept: Kept, _ now: WallTime) -> Bool {
        (0..<lifetime).contains(now.seconds - kept.since.seconds)
    }
}
