internal import Synchronization
internal import TransportIO
internal import TransportKit

/// A TCP service that answers with the bytes it gets, and ends its direction when the peer has ended its own.
package final class EchoService: Sendable {
    package let port: UInt16
    private let accepted = Atomic(0)
    /// How many connections have come.
    package var connections: Int { accepted.load(ordering: .relaxed) }

    /// Starts it inside `namespace`, until the rig is removed.
    package init(in namespace: Namespace, port: UInt16, rig: Rig) async throws {
        let loop = try await namespace.makeLoop()
        let listener = try await TCPListener.bind(.loopback(port: port), loop: loop)
        self.port = listener.localAddress.port
        rig.run { [self] in
            await withDiscardingTaskGroup { group in
                while let connection = try? await listener.accept() {
                    accepted.add(1, ordering: .relaxed)
                    group.addTask { await Self.echo(connection) }
                }
                group.cancelAll()
            }
        }
    }

    private static func echo(_ connection: TCPConnection) async {
        do {
            while let bytes = try await connection.read(upTo: 65_536) { try await connection.write(bytes) }
            try await connection.finish()
        } catch {
            // The peer ended it; there is nobody to tell.
            await connection.reset()
        }
        await connection.close()
    }
}
