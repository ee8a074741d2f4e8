import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting

@testable import RelayCarrier
@testable import RelayService

/// A box that says nothing (R72, R73): the fault of a silence after a handshake that was never ended.
@Suite struct SilenceTests {
    @Test func `A handshake that nobody answers is tried again on the standing socket`() throws {
        let world = try RelayWorld()
        try world.run {
            try await world.start()
            let box = try await world.join(.box)
            let carrier = world.noise(over: try world.carrier())
            let start = world.simulation.time.now()
            let opening = world.simulation.start { try? await carrier.open() }
            let first = try await box.next(.binary)
            let second = try await box.next(.binary)
            #expect(first.count == 96 && second.count == 96)
            // Each handshake is new (R69).
            #expect(first != second)
            let waited = world.simulation.time.now() - start
            #expect((.seconds(12) ... .seconds(15)).contains(waited), "\(waited)")
            let answer = try ResponderHandshake(key: world.box, reading: second).answer()
            try await box.send(Message(answer.message2))
            let socket = try #require(await opening.value)
            // The client and the box have dialled once each.
            #expect(world.dials == 2)
            await socket.close()
            await carrier.close()
            await box.close()
            await world.stop()
        }
    }
}
