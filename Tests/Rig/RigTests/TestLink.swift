import RigSupport

/// Two namespaces with one shaped link between them, and a flow of datagrams in each direction.
struct TestLink {
    let a: Namespace
    let b: Namespace
    let shaper: LinkShaper
    let aToB: DatagramFlow
    let bToA: DatagramFlow
}

func withLink<Result>(
    isIPv6: Bool = false, seed: UInt64? = nil, _ body: (TestLink) async throws -> Result
) async throws -> Result {
    try await withRig { rig in
        let a = try await rig.makeNamespace("a")
        let b = try await rig.makeNamespace("b")
        let shaper = try await rig.makeShapedLink(
            Rig.End(a, "link0", "10.99.0.1/30", "fd99::1/64"), Rig.End(b, "link0", "10.99.0.2/30", "fd99::2/64"),
            seed: seed)
        let addresses = isIPv6 ? ["fd99::1", "fd99::2"] : ["10.99.0.1", "10.99.0.2"]
        return try await body(
            TestLink(
                a: a, b: b, shaper: shaper, aToB: try DatagramFlow(from: a, to: b, at: addresses[1]),
                bToA: try DatagramFlow(from: b, to: a, at: addresses[0])))
    }
}

/// Numbered datagrams from one namespace to another.
struct DatagramFlow: Sendable {
    private let namespace: Namespace
    private let address: String
    private let sender: RawSocket
    private let receiver: RawSocket

    var port: UInt16 { receiver.port }

    init(from: Namespace, to: Namespace, at address: String) throws {
        namespace = from
        self.address = address
        receiver = try to.bindUDP(address)
        try receiver.growBuffers(to: 64 << 20)
        sender = try Self.sender(from, address, receiver.port)
    }

    private init(_ flow: DatagramFlow, sender: RawSocket) {
        namespace = flow.namespace
        address = flow.address
        receiver = flow.receiver
        self.sender = sender
    }

    /// The same from another port.
    func withNewSender() throws -> DatagramFlow {
        DatagramFlow(self, sender: try Self.sender(namespace, address, receiver.port))
    }

    private static func sender(_ namespace: Namespace, _ address: String, _ port: UInt16) throws -> RawSocket {
        let sender = try namespace.connectUDP(address, port: port)
        try sender.growBuffers(to: 64 << 20)
        return sender
    }

    private static func datagram(_ number: UInt32, _ bytes: Int) -> [UInt8] {
        var datagram = [UInt8](repeating: 0, count: bytes)
        for index in 0..<4 { datagram[index] = UInt8(truncatingIfNeeded: number >> (8 * UInt32(index))) }
        return datagram
    }

    private static func number(_ datagram: [UInt8]) -> UInt32 {
        datagram.prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Sends `count` datagrams and returns the numbers of those that came, in the order in which they did.
    ///
    /// - Parameter mayRepeat: as many as were sent may not be all.
    func flood(
        _ count: Int, bytes: Int, bitsPerSecond: Double? = nil, mayRepeat: Bool = false
    ) async throws -> [UInt32] {
        let isSent = Watched(false)
        async let sent: Void = blocking {
            defer { isSent.change { $0 = true } }
            let started = ContinuousClock.now
            for number in 0..<count {
                if let bitsPerSecond {
                    let due = started + .seconds(Double(number * (bytes + 28) * 8) / bitsPerSecond)
                    // A hundred packets of 1,400 bytes are 6 ms at 200 Mbit/s: naps of a millisecond do.
                    while ContinuousClock.now < due { pause(due - ContinuousClock.now) }
                } else if number % 128 == 127 {
                    // As fast as the shaper reads, whose queue has room for 10,000.
                    pause(.milliseconds(1))
                }
                try sender.send(Self.datagram(UInt32(number), bytes))
            }
        }
        let arrived = try await blocking {
            var arrived: [UInt32] = []
            while mayRepeat || arrived.count < count {
                // Silence tells something only once everything has left, whatever else the machine is busy with.
                let isLast = isSent.value
                do {
                    arrived.append(Self.number(try receiver.receive(within: .milliseconds(400))))
                } catch let failure as RawSocket.Failure where failure.isTimeout {
                    if isLast { break }
                }
            }
            return arrived
        }
        try await sent
        return arrived
    }

    /// Sends datagrams at a steady pace and returns how many milliseconds each was under way, in order of size.
    func delays(of count: Int, every interval: Duration) async throws -> [Double] {
        try await travel(count, interval, 100).map { Double($0.arrived - $0.left) / 1e6 }.sorted()
    }

    /// Sends datagrams as fast as they go and returns the milliseconds from the first one's departure to the last one's
    /// arrival.
    func span(of count: Int, bytes: Int) async throws -> Double {
        let times = try await travel(count, .zero, bytes)
        return Double((times.map(\.arrived).max() ?? 0) - (times.map(\.left).min() ?? 0)) / 1e6
    }

    private func travel(
        _ count: Int, _ interval: Duration, _ bytes: Int
    ) async throws -> [(left: UInt64, arrived: UInt64)] {
        let departures = Watched([UInt64](repeating: 0, count: count))
        async let sent: Void = blocking {
            let started = ContinuousClock.now
            for number in 0..<count {
                let due = started + interval * number
                while ContinuousClock.now < due { pause(due - ContinuousClock.now) }
                let datagram = Self.datagram(UInt32(number), bytes)
                departures.change { $0[number] = monotonicNanoseconds() }
                try sender.send(datagram)
            }
        }
        let arrivals = try await blocking {
            try (0..<count).map { _ in
                let datagram = try receiver.receiveDatagram(within: .seconds(5))
                return (number: Int(Self.number(datagram.bytes)), at: datagram.arrived)
            }
        }
        try await sent
        let left = departures.value
        return arrivals.map { (left[$0.number], $0.at) }
    }
}
