internal import DirectCarrier
internal import MemoryTransport
internal import TransportIO
internal import TransportKit

/// The configured order backwards: for a place where UDP is metered, say. A policy is one pure function.
struct LastFirstRacePolicy: RacePolicy {
    let pause: Duration

    var name: String { "last-first" }

    func plan(_ transports: [TransportName], record: PathRecord) -> [Attempt] {
        // Every transport has to be planned; a policy only says in which order, and when.
        transports.reversed().enumerated().map { Attempt($0.element, delay: pause * $0.offset) }
    }
}

@main
struct Main {
    static func main() async throws {
        let policies: [any RacePolicy] = [HeadStartRacePolicy(), LastFirstRacePolicy(pause: .milliseconds(50))]

        // A policy is a value, so its test is a table.
        for policy in policies {
            let plan = policy.plan([.quic, .webSocket], record: PathRecord())
            let words = plan.map { "\($0.transport) after \(Int($0.delay.inMilliseconds)) ms" }
            print("\(policy.name) plans \(words.joined(separator: ", "))")
        }

        // The same values decide in real races, here between two wires of one process.
        let loop = try EventLoop(name: "example")
        let network = MemoryNetwork(time: loop, executor: loop)
        let transports = [TransportName.quic, .webSocket].map { MemoryTransport(network: network, name: $0) }
        let url = try ServiceURL("wss://server.example/echo")
        var listeners: [any Listener] = []
        for transport in transports {
            listeners.append(try await transport.listen(url.endpoint, options: ListenOptions()))
        }
        for policy in policies {
            let carrier = try DirectCarrier(
                url: url, transports: transports, race: policy, context: BuildContext(executor: loop, time: loop))
            let socket = try await carrier.open()
            if let report = carrier.reports.last { print("\(policy.name): \(report.why)") }
            await socket.close()
            await carrier.close()
        }
        for listener in listeners { await listener.close() }
        await loop.shutdown()
    }
}
