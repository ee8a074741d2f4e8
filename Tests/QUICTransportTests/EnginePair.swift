import Foundation
import Testing
import TransportKit
import TransportKitTesting
import TransportTLS

@testable import QUICTransport

/// Two connections and the link between them, in simulated time.
final class EnginePair {
    /// What the link does to datagrams.
    struct Link {
        var delay = Duration.milliseconds(10)
        /// How much later a datagram may come at random; more than the gap between two reorders them.
        var jitter = Duration.zero
        /// The share of datagrams that are lost, in percent.
        var lossPercent = 0
        /// How fast it is; what waits for its turn is dropped where the queue has no room for it.
        var bytesPerSecond: Int?
        var queueBytes = 256 << 10
        var isCut = false
    }

    private struct Flight {
        let due: Instant
        let number: Int
        let toServer: Bool
        /// The client's, as the receiver sees it.
        let address: SocketAddress
        let bytes: Bytes
        /// Whether the client had heard of the server where it was when it sent this.
        var isAnswer = false
    }

    /// What the server got from an address of the client's and sent there, until an answer can have proven the address.
    private struct Account {
        var received = 0
        var sent = 0
        var isProven = false
    }

    static let clientAddress = SocketAddress.loopback(port: 1111)
    static let serverAddress = SocketAddress.loopback(port: 4433)

    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    var link: Link
    /// The address of the client's machine; what leaves from another is lost.
    var machineAddress = clientAddress
    /// What a NAT makes of it, if there is one; what comes to another is lost.
    var outsideAddress: SocketAddress?
    private let mover = Mover()
    let client: QUICConnection
    private(set) var server: QUICConnection?
    let seen = Owner()
    private let serverCredentials: TLSServerCredentials
    private let serverLimits: Limits
    private let keepalive: Keepalive
    private let serverProtocols: [String]
    private let visits: Visits?
    private var random: SeededGenerator
    private var flights: [Flight] = []
    /// When the link has sent what waits for its turn, either way.
    private var (freeToServer, freeToClient) = (Instant.zero, Instant.zero)
    private var sent = 0
    private var wasDropped = false
    private let room = PacketRoom()
    let resetSecret = ResetSecret(key: Bytes("a key"))
    /// Whether the client must prove where it is (RFC 9000 §8.1.2).
    var asksForProof = false
    /// Whether a damaged copy of every datagram arrives before it.
    var flipsBits = false
    /// Bytes that arrived at either end.
    private(set) var delivered = 0
    private var accounts: [SocketAddress: Account] = [:]
    /// The client's addresses at which something of the server's has come.
    private var reached: Set<SocketAddress> = []
    /// How many bytes more than three times what it got the server has sent to an address that cannot have been proven.
    private(set) var overdraft = 0

    /// Plays the listener's part: it keeps what it is told.
    final class Owner: QUICConnectionOwner {
        var targets: [Target] = []
        var ends: [Close] = []
        /// What it does with a target, at once.
        var serve: ((QUICConnection) -> Void)?

        func connectionWantsToSend(_ connection: QUICConnection) {}
        func connectionHandshakeDone(_ connection: QUICConnection) {}
        func connection(_ connection: QUICConnection, asksFor target: Target) {
            targets.append(target)
            serve?(connection)
        }
        func connectionEnded(_ connection: QUICConnection, with close: Close) { ends.append(close) }
    }

    /// Plays the dialling end's part: it moves the connection to where the machine is.
    private final class Mover: QUICConnectionOwner {
        weak var pair: EnginePair?
        var local = EnginePair.clientAddress

        func connectionWantsToSend(_ connection: QUICConnection) {}
        func connectionHandshakeDone(_ connection: QUICConnection) {}
        func connection(_ connection: QUICConnection, asksFor target: Target) {}
        func connectionEnded(_ connection: QUICConnection, with close: Close) {}

        func connectionLooksForPath(_ connection: QUICConnection) -> PathStep {
            guard let pair, pair.machineAddress != local else { return .same }
            guard connection.move(to: pair.machineAddress, remote: EnginePair.serverAddress, pair.now) else {
                return .none
            }
            local = pair.machineAddress
            return .moved
        }
    }

    /// Where the client is, as its peer sees it.
    private var visibleAddress: SocketAddress { outsideAddress ?? machineAddress }

    static let files = Result {
        let folder = FileManager.default.temporaryDirectory.appending(path: "quic-engine-\(getpid())")
        return try SelfSignedCertificate.makeIfMissing(names: ["127.0.0.1"], directory: folder.path)
    }

    init(
        link: Link = Link(), seed: UInt64 = 1, limits: Limits = Limits(), serverLimits: Limits? = nil,
        keepalive: Keepalive = Keepalive(interval: nil), serverProtocols: [String] = [WireNames.alpnPeer],
        security: ClientSecurity? = nil, usualRoundTrip: Duration? = nil, visits: Visits? = nil
    ) throws {
        let files = try Self.files.get()
        self.link = link
        self.keepalive = keepalive
        self.serverProtocols = serverProtocols
        random = SeededGenerator(seed: seed)
        self.serverLimits = serverLimits ?? limits
        self.visits = visits
        serverCredentials = try visits?.server ?? TLSServerCredentials(ServerSecurity(identity: files))
        let credentials = try TLSClientCredentials(
            security ?? ClientSecurity(trust: .file(files.certificate)), tickets: visits?.tickets)
        let tls = try TLSSession.client(
            credentials, host: .ipv4(.loopback), port: visits?.port ?? 4433, protocols: [WireNames.alpnPeer],
            forQUIC: true, earlyData: visits?.words != nil)
        client = try QUICConnection(
            dialling: Self.serverAddress, from: Self.clientAddress, tls: tls, limits: limits, keepalive: keepalive,
            usualRoundTrip: usualRoundTrip, now: now)
        mover.pair = self
        client.owner = mover
        if let words = visits?.words { client.sendEarly(words.target, firstFlight: words.firstFlight) }
    }

    /// What a client says first.
    func firstPacket() throws -> Bytes {
        let batch = try #require(client.nextBatch(into: room.bytes, now: now))
        return Bytes(copying: UnsafeRawBufferPointer(rebasing: room.bytes[batch.range]))
    }

    // MARK: - Running

    /// Lets time pass until `isDone`, or for `limit` of simulated time.
    ///
    /// - Returns: whether it was done.
    @discardableResult
    func run(for limit: Duration = .seconds(60), until isDone: () -> Bool = { false }) throws -> Bool {
        let end = now + limit
        while true {
            try pump()
            if isDone() { return true }
            let next = [flights.map(\.due).min(), client.deadline, server?.deadline].compactMap(\.self).min()
            guard let next, next <= end else {
                now = end
                try pump()
                return isDone()
            }
            // The library does some things only once their time is over.
            now = max(now + .microseconds(1), next)
            let due = flights.filter { $0.due <= now }.sorted { ($0.due, $0.number) < ($1.due, $1.number) }
            flights.removeAll { $0.due <= now }
            for flight in due { try deliver(flight) }
            for connection in [client, server].compactMap(\.self) {
                connection.timeout(now)
                connection.settle(now)
            }
        }
    }

    /// Opens the connection and says the target.
    func open(_ target: String = "/test") throws {
        let isOpen = try run { client.isEstablished && server?.isEstablished == true }
        guard isOpen else {
            throw TransportError(.timedOut, "no handshake; the client ended with \(client.end as Any)")
        }
        client.sendTarget(Target(target) ?? .root, firstFlight: nil)
        try run(for: .seconds(20)) { !seen.targets.isEmpty }
    }

    private func pump() throws {
        for (connection, toServer) in [(client, true), (server, false)] {
            guard let connection else { continue }
            connection.settle(now)
            while let batch = connection.nextBatch(into: room.bytes, now: now) {
                var start = batch.range.lowerBound
                let isHere = toServer ? batch.local == machineAddress : batch.remote == visibleAddress
                while start < batch.range.upperBound {
                    let end = min(start + batch.segmentBytes, batch.range.upperBound)
                    if !toServer, let remote = batch.remote { book(end - start, sentTo: remote) }
                    if isHere { send(UnsafeRawBufferPointer(rebasing: room.bytes[start..<end]), toServer: toServer) }
                    start = end
                }
            }
        }
    }

    /// Puts a datagram on the link.
    func send(_ bytes: UnsafeRawBufferPointer, toServer: Bool) {
        sent += 1
        guard !link.isCut, Int.random(in: 0..<100, using: &random) >= link.lossPercent else { return }
        guard let turn = turn(of: bytes.count, toServer: toServer) else { return }
        let jitter = link.jitter.clampedNanoseconds
        let address = toServer ? visibleAddress : machineAddress
        let extra = jitter > 0 ? Duration.nanoseconds(Int64.random(in: 0..<jitter, using: &random)) : .zero
        if flipsBits {
            // A copy with one wrong bit travels ahead.
            var wrong = Bytes(copying: bytes)
            let place = Int.random(in: 0..<max(wrong.count, 1), using: &random)
            if place < wrong.count { wrong[place] ^= 1 << UInt8.random(in: 0..<8, using: &random) }
            flights.append(
                Flight(due: turn + link.delay, number: sent, toServer: toServer, address: address, bytes: wrong))
        }
        flights.append(
            Flight(
                due: turn + link.delay + extra, number: sent, toServer: toServer, address: address,
                bytes: Bytes(copying: bytes), isAnswer: toServer && reached.contains(address)))
    }

    /// RFC 9000 §8: three times what came, until the address is proven.
    private func book(_ count: Int, sentTo address: SocketAddress) {
        accounts[address, default: Account()].sent += count
        guard let account = accounts[address], !account.isProven else { return }
        overdraft = max(overdraft, account.sent - 3 * account.received)
    }

    /// When the link has sent a datagram of so many bytes; nil where its queue is full.
    private func turn(of count: Int, toServer: Bool) -> Instant? {
        guard let rate = link.bytesPerSecond else { return now }
        let free = max(toServer ? freeToServer : freeToClient, now)
        let queued = (free - now).clampedNanoseconds * Int64(rate) / 1_000_000_000
        guard queued + Int64(count) <= link.queueBytes else { return nil }
        let turn = free + .nanoseconds(Int64(count) * 1_000_000_000 / Int64(rate))
        if toServer { freeToServer = turn } else { freeToClient = turn }
        return turn
    }

    private func deliver(_ flight: Flight) throws {
        delivered += flight.bytes.count
        if flight.toServer {
            accounts[flight.address, default: Account()].received += flight.bytes.count
            if flight.isAnswer { accounts[flight.address]?.isProven = true }
        } else {
            reached.insert(visibleAddress)
        }
        try flight.bytes.withUnsafeBytes { bytes in
            if flight.toServer {
                if server == nil, asksForProof, !resetSecret.isProven(bytes, from: flight.address, now: now) {
                    guard let retry = resetSecret.retry(for: bytes, from: flight.address, now: now) else { return }
                    return retry.withUnsafeBytes { send($0, toServer: false) }
                }
                if server == nil, !wasDropped, QUICConnection.canBegin(with: bytes) {
                    let tls = try TLSSession.server(
                        serverCredentials, protocols: serverProtocols, forQUIC: true,
                        earlyData: visits?.takesEarlyData ?? false)
                    server = try QUICConnection(
                        accepting: bytes, from: flight.address, to: Self.serverAddress, tls: tls,
                        resetSecret: resetSecret, limits: serverLimits, keepalive: keepalive, now: now)
                    server?.owner = seen
                }
                server?.receive(bytes, from: flight.address, to: Self.serverAddress, ecn: 0, now: now)
            } else {
                client.receive(bytes, from: Self.serverAddress, to: flight.address, ecn: 0, now: now)
            }
        }
    }

    /// The NAT forgets the client and makes another address of it; what is on its way to the old one is lost.
    func rebind(to address: SocketAddress) {
        outsideAddress = address
        flights.removeAll { !$0.toServer }
    }

    /// Forgets the server, as a crash does.
    func dropServer() {
        server = nil
        wasDropped = true
    }
}

extension QUICConnection {
    /// Sends and says whether it was accepted.
    @discardableResult
    func trySend(_ messages: Message...) -> Bool {
        if case .accepted = send(messages, waiter: Signal()) { true } else { false }
    }

    /// What has arrived, taken.
    func takeMessages() async -> [Message] {
        guard let arrived = await inbox.takeNow() else { return [] }
        taken(arrived)
        return arrived.map(\.message)
    }
}

extension Inbox {
    /// What is here, without waiting.
    func takeNow() async -> [Element]? {
        let task = Task { try await takeAll() }
        task.cancel()
        return try? await task.value
    }
}
