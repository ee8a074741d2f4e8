import TransportIO
import TransportKit
import WebSocketTransport

/// Both ends of an echo, for suites that test ours.
enum EchoPeer {
    /// Room for the largest case.
    static var limits: Limits {
        var limits = Limits()
        limits.maxMessageBytes = 32 << 20
        return limits
    }

    static func withLoop<Result>(_ body: (EventLoop) async throws -> Result) async throws -> Result {
        let loop = try EventLoop(name: "echo")
        do {
            let result = try await body(loop)
            await loop.shutdown()
            return result
        } catch {
            await loop.shutdown()
            throw error
        }
    }

    /// Answers every message with itself until the listener closes.
    static func serve(_ listener: any Listener) async {
        await withDiscardingTaskGroup { group in
            while let socket = try? await listener.accept() {
                group.addTask { await echo(socket) }
            }
        }
    }

    /// Answers every message with itself until the peer closes.
    static func echo(_ socket: any Socket) async {
        do {
            while true { try await socket.send(socket.receive()) }
        } catch {
            await socket.close()
        }
    }

    /// Runs every case that an Autobahn server has, and makes it write its report.
    static func dialEveryCase(_ transport: WebSocketTransport, _ endpoint: Endpoint, agent: String) async throws {
        let counter = try await dial(transport, endpoint, "/getCaseCount")
        let count = try await counter.receive().first.flatMap { String(validating: $0.payload) }.flatMap { Int($0) }
        await counter.close()
        for number in 1...(count ?? 1) {
            await echo(try await dial(transport, endpoint, "/runCase?case=\(number)&agent=\(agent)"))
        }
        let reporter = try await dial(transport, endpoint, "/updateReports?agent=\(agent)")
        await echo(reporter)
    }

    private static func dial(
        _ transport: WebSocketTransport, _ endpoint: Endpoint, _ target: String
    ) async throws -> any Socket {
        var options = DialOptions()
        options.limits = limits
        return try await transport.dial(ServiceURL(endpoint, target: Target(target) ?? .root), options: options)
    }
}
