import RigSupport
import Testing

extension RigSuite {
    /// What the shaper promises; the scenarios rely on it.
    @Suite(.timeLimit(.minutes(3))) struct LinkShaperTests {
        @Test func `Twenty milliseconds each way are kept within one`() async throws {
            try await withLink { link in
                try await link.shaper.set(.both, "delay=20ms")
                for flow in [link.aToB, link.bToA] {
                    let delays = try await flow.delays(of: 400, every: .milliseconds(2))
                    #expect(delays.count == 400)
                    #expect(delays[0] >= 20, "a packet came early")
                    #expect(delays[delays.count * 95 / 100] < 21, "p95 of \(summary(delays))")
                }
            }
        }

        @Test(arguments: [1.0, 5.0]) func `Loss is what was asked for`(percent: Double) async throws {
            try await withLink { link in
                try await link.shaper.set(.aToB, "loss=\(percent)%")
                let count = 20_000
                let arrived = try await link.aToB.flood(count, bytes: 100)
                let expected = Double(count) * percent / 100
                let deviation = (expected * (1 - percent / 100)).squareRoot()
                let lost = Double(count - arrived.count)
                #expect(abs(lost - expected) < 5 * deviation, "lost \(lost), expected \(expected) ± \(5 * deviation)")
                #expect(try await link.shaper.report().aToB.lost == count - arrived.count)
                // The other direction has none.
                #expect(try await link.bToA.flood(2_000, bytes: 100).count == 2_000)
            }
        }

        @Test func `The same seed loses the same packets`() async throws {
            func losses() async throws -> [UInt32] {
                try await withLink(seed: 42) { link in
                    try await link.shaper.set(.aToB, "loss=10%")
                    return try await link.aToB.flood(500, bytes: 100)
                }
            }
            let (first, second) = (try await losses(), try await losses())
            #expect(first == second)
        }

        @Test func `Losses come in bursts`() async throws {
            try await withLink { link in
                // Bad spells of 10 packets on average, and all are lost while one lasts.
                try await link.shaper.set(.aToB, "burst=1%,10%")
                let arrived = try await link.aToB.flood(20_000, bytes: 100)
                let lost = 20_000 - arrived.count
                let spells = zip(arrived, arrived.dropFirst()).count { $1 > $0 + 1 }
                #expect((1_000...2_600).contains(lost), "lost \(lost)")
                #expect((7.0...14.0).contains(Double(lost) / Double(spells)), "\(lost) lost in \(spells) spells")
            }
        }

        @Test func `Two hundred megabits per second pass without a loss`() async throws {
            try await withLink { link in
                try await link.shaper.set(.both, "delay=20ms")
                let before = try await link.shaper.report().aToB
                // 2 s at 200 Mbit/s. The shaper must lose nothing in any round; whether the sender gets its turns on a
                // busy machine is not its doing, so one round of three has to reach the rate.
                let count = 200_000_000 * 2 / 8 / 1_428
                var best = 0.0
                for _ in 0..<3 where best < 180e6 {
                    let started = ContinuousClock.now
                    let arrived = try await link.aToB.flood(count, bytes: 1_400, bitsPerSecond: 200e6)
                    #expect(arrived.count == count)
                    best = max(best, Double(count) * 1_428 * 8 / (ContinuousClock.now - started).seconds)
                }
                #expect(best >= 180e6)
                let report = try await link.shaper.report().aToB
                #expect(report.lost + report.overflowed + report.undeliverable == before.undeliverable)
                print("\(Int(best / 1e6)) Mbit/s, and \(report.lateMeanMicroseconds) µs late on average")
            }
        }

        @Test func `A limited rate is kept, and its queue drops what does not fit`() async throws {
            try await withLink { link in
                try await link.shaper.set(.aToB, "rate=8mbit queue=20k")
                // 100 packets of 1,000 bytes at once: 20 fit into the queue; others find room as it empties.
                let arrived = try await link.aToB.flood(100, bytes: 972)
                #expect((20...40).contains(arrived.count), "arrived: \(arrived.count)")
                #expect(arrived.prefix(20) == Array(0..<20)[...], "the tail is dropped")
                try await link.shaper.set(.aToB, "rate=8mbit queue=off")
                // 500,000 bytes at a megabyte per second.
                let span = try await link.aToB.span(of: 500, bytes: 972)
                #expect((499.0...600.0).contains(span), "it took \(span) ms")
            }
        }

        @Test func `Packets are duplicated`() async throws {
            try await withLink { link in
                try await link.shaper.set(.aToB, "duplicate=10%")
                let arrived = try await link.aToB.flood(5_000, bytes: 100, mayRepeat: true)
                let twice = arrived.count - Set(arrived).count
                #expect(Set(arrived).count == 5_000)
                #expect((390...610).contains(twice), "twice: \(twice)")
                #expect(try await link.shaper.report().aToB.duplicated == twice)
            }
        }

        @Test func `Packets that are held back are overtaken, and jitter keeps the order`() async throws {
            try await withLink { link in
                try await link.shaper.set(.aToB, "reorder=5% hold=5ms")
                let arrived = try await link.aToB.flood(5_000, bytes: 100, bitsPerSecond: 4e6)
                #expect(Set(arrived).count == 5_000)
                let late = zip(arrived, arrived.dropFirst()).count { $1 < $0 }
                #expect((100...400).contains(late), "late: \(late)")
                try await link.shaper.reset()
                try await link.shaper.set(.aToB, "delay=5ms jitter=10ms")
                let jittered = try await link.aToB.delays(of: 400, every: .milliseconds(1))
                #expect(jittered[0] >= 5)
                #expect(jittered[399] > 10)
                #expect(try await link.aToB.flood(2_000, bytes: 100, bitsPerSecond: 4e6) == Array(0..<2_000))
            }
        }

        @Test func `What is longer than the packet size vanishes`() async throws {
            try await withLink { link in
                try await link.shaper.set(.aToB, "mtu=1280")
                #expect(try await link.aToB.flood(10, bytes: 1_252).count == 10)
                #expect(try await link.aToB.flood(10, bytes: 1_253).isEmpty)
                #expect(try await link.bToA.flood(10, bytes: 1_253).count == 10)
                #expect(try await link.shaper.report().aToB.tooLong == 10)
            }
        }

        @Test func `A setting changes what comes after it`() async throws {
            try await withLink { link in
                try await link.shaper.set(.both, "delay=50ms")
                #expect(try await link.aToB.delays(of: 20, every: .milliseconds(1))[0] >= 50)
                try await link.shaper.set(.aToB, "delay=5ms")
                let shorter = try await link.aToB.delays(of: 20, every: .milliseconds(1))
                #expect(shorter[0] >= 5)
                #expect(shorter[19] < 40)
                #expect(try await link.bToA.delays(of: 20, every: .milliseconds(1))[0] >= 50)
            }
        }

        @Test func `A black hole swallows one direction or both`() async throws {
            try await withLink { link in
                try await link.shaper.blackhole(.aToB)
                #expect(try await link.aToB.flood(10, bytes: 100).isEmpty)
                #expect(try await link.bToA.flood(10, bytes: 100).count == 10)
                try await link.shaper.blackhole(.aToB, false)
                #expect(try await link.aToB.flood(10, bytes: 100).count == 10)
            }
        }

        @Test func `A flow may have its first packets and no more`() async throws {
            try await withLink { link in
                try await link.shaper.command("drop-after flow=udp:\(link.aToB.port) packets=8")
                #expect(try await link.aToB.flood(20, bytes: 100) == Array(0..<8))
                // Another flow has eight of its own.
                let other = try link.aToB.withNewSender()
                #expect(try await other.flood(20, bytes: 100) == Array(0..<8))
                // And one to another port is not touched.
                #expect(try await link.bToA.flood(20, bytes: 100).count == 20)
                #expect(try await link.shaper.report().rules.map(\.flows) == [2])
            }
        }

        @Test func `Packets are dropped by protocol, size and number`() async throws {
            try await withLink { link in
                let first = try await link.shaper.drop(.aToB, "udp larger=1000")
                #expect(try await link.aToB.flood(5, bytes: 972).count == 5)
                #expect(try await link.aToB.flood(5, bytes: 973).isEmpty)
                try await link.shaper.remove(first)
                let second = try await link.shaper.drop(.both, "udp:\(link.aToB.port) numbers=2,3")
                #expect(try await link.aToB.flood(5, bytes: 973) == [0, 3, 4])
                try await link.shaper.remove(second)
                _ = try await link.shaper.drop(.both, "udp")
                #expect(try await link.bToA.flood(5, bytes: 100).isEmpty)
                // TCP lives on.
                let listener = try link.b.listenTCP("10.99.0.2")
                let client = try await link.a.connectTCP("10.99.0.2", port: listener.port)
                let server = try await blocking { try listener.accept() }
                try await blocking { try client.send([1, 2, 3]) }
                #expect(try await blocking { try server.receive(exactly: 3) } == [1, 2, 3])
            }
        }

        @Test func `IPv6 is read as IPv4 is`() async throws {
            try await withLink(isIPv6: true) { link in
                _ = try await link.shaper.drop(.both, "udp:\(link.aToB.port) after=4")
                let arrived = try await link.aToB.flood(10, bytes: 100)
                #expect(arrived == Array(0..<4))
            }
        }

        @Test func `Each direction counts what it did`() async throws {
            try await withLink { link in
                let before = try await link.shaper.report()
                #expect(try await link.aToB.flood(100, bytes: 72).count == 100)
                try await link.shaper.blackhole(.bToA)
                #expect(try await link.bToA.flood(50, bytes: 72).isEmpty)
                let after = try await link.shaper.report()
                #expect(after.aToB.udp - before.aToB.udp == 100)
                #expect(after.aToB.delivered - before.aToB.delivered >= 100)
                #expect(after.aToB.bytes - before.aToB.bytes >= 10_000)
                #expect(after.bToA.blackholed >= 50)
                #expect(after.bToA.delivered == before.bToA.delivered)
            }
        }

        @Test func `A wrong command is answered with an error and changes nothing`() async throws {
            let wrong = [
                "", "shape", "set", "set c delay=1ms", "set both", "set both delay", "set both delay=20",
                "set both delay=-1ms", "set both delay=nan", "set both loss=1", "set both loss=101%",
                "set both loss=50% mtu=x", "set both rate=0", "set both burst=5%", "set both speed=1", "blackhole both",
                "blackhole up on", "drop both", "drop both sctp", "drop both udp:0", "drop both udp:70000",
                "drop both udp numbers=0", "drop both udp after=x", "drop-after flow=udp:1", "remove 1", "remove",
                "counters now", "set both " + String(repeating: "delay=1ms ", count: 500),
            ]
            try await withLink { link in
                for words in wrong {
                    await #expect(throws: RigFailure.self, "\(words)") { try await link.shaper.command(words) }
                }
                // Whatever stood before a mistake did not happen, and the next command is heard.
                let arrived = try await link.aToB.flood(100, bytes: 1_400)
                #expect(arrived.count == 100)
                #expect(try await link.shaper.report().rules.isEmpty)
            }
        }
    }
}

private func summary(_ delays: [Double]) -> String {
    "p50 \(delays[delays.count / 2]) p95 \(delays[delays.count * 95 / 100]) worst \(delays[delays.count - 1]) ms"
}
