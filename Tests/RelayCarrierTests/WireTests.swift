import NoiseCarrier
import Testing
import TransportKit

@testable import RelayCarrier

/// The wire of the relay against what others have written down (part 2.1).
@Suite struct WireTests {
    private let handles: Vectors.Handles
    private let contract: Vectors.Contract

    init() throws {
        handles = try Vectors.read("rendezvous-handles.json")
        contract = try Vectors.read("relay-contract.json")
    }

    // R96
    @Test func `The handles of another implementation come out`() throws {
        let secret = try #require(RelaySecret(handles.secret))
        #expect(RelaySettings().info == handles.infoPrefix)
        #expect(RelaySecret.leastLength == handles.minSecretBytes)
        #expect(!handles.handles.isEmpty)
        for vector in handles.handles {
            #expect(secret.handle(of: vector.epoch, info: handles.infoPrefix).text == vector.handle)
        }
        #expect(secret.handle(of: 0, info: "other/") != secret.handle(of: 0, info: handles.infoPrefix))
    }

    @Test func `Epochs are floored before 1970 too`() {
        #expect(RelayEpoch.seconds * 1000 == handles.epochMs)
        for vector in handles.currentEpoch {
            // The clock here has whole seconds, floored.
            let seconds = (Double(vector.nowMs) / 1000).rounded(.down)
            #expect(RelayEpoch.current(at: WallTime(seconds: Int64(seconds))) == vector.epoch, "\(vector.nowMs) ms")
        }
    }

    // R105, and the fault that an empty reason was taken for epoch 0.
    @Test func `An announced epoch corrects the clock by one at most`() {
        let adoption = handles.adoptEpoch
        var clock = EpochClock(farthest: contract.client.maxEpochCorrection)
        let wall = WallTime.epoch(adoption.localEpoch, 5)
        for step in adoption.steps {
            clock.announced(step.announced, at: wall)
            #expect(clock.offset == step.offset, "after '\(step.announced)'")
        }
        for nonsense in ["+101", "-99", "1e2", "0x65", "٩٩", "99 ", "101.0", "9223372036854775808"] {
            clock.announced(nonsense, at: wall)
            #expect(clock.offset == 1, "after '\(nonsense)'")
        }
        clock.announced("99", at: wall)
        #expect(clock.epoch(at: wall) == 99)
        // It is kept as an offset, not as an epoch.
        #expect(clock.epoch(at: .epoch(adoption.localEpoch + 7)) == adoption.localEpoch + 6)
        var early = EpochClock(farthest: 1)
        early.announced("", at: .epoch(0))
        early.announced("1", at: .epoch(0))
        early.announced("", at: .epoch(0))
        #expect(early.offset == 1)
    }

    @Test func `Join paths are taken and refused as the contract says`() throws {
        for vector in contract.joinAccept {
            let target = try #require(Target(vector.path))
            let join = try #require(RelayJoin(path: target.path), "\(vector.path)")
            #expect(join.epoch == vector.epoch)
            #expect(join.role.rawValue == vector.role)
            #expect(join.path == target.path)
        }
        let handle = String(repeating: "a", count: 32)
        let more = [
            "/r/12/\(handle)/app/", "/r/12/\(handle)/app/x", "//r/12/\(handle)/app", "/r//\(handle)/app",
            "/r/+1/\(handle)/app",
            "/r/9007199254740992/\(handle)/app", "/r/1.0/\(handle)/app", "/r/12/\(handle)a/app", "/r/12/\(handle)/App",
            "/r/",
        ]
        for path in contract.joinRefuse + more { #expect(RelayJoin(path: path) == nil, "\(path)") }
        #expect(RelayJoin(path: "/r/9007199254740991/\(handle)/app") != nil)
    }

    @Test func `The words are those of the contract`() {
        #expect(contract.controlWords == [RelayWire.Word.ready, .gone].map(\.rawValue))
        #expect(RelayWire.isClaim("deadman 0123456789abcdef0123456789abcdef"))
        for other in ["deadman", "deadman 0123", "deadman 0123456789ABCDEF0123456789ABCDEF", "ready", ""] {
            #expect(!RelayWire.isClaim(other))
        }
    }

    @Test func `The defaults are those of the contract`() {
        let settings = RelaySettings()
        #expect(settings.backoff.base == .milliseconds(contract.client.backoffBaseMs))
        #expect(settings.backoff.cap == .milliseconds(contract.client.backoffCapMs))
        #expect(settings.backoff.resetAfter == .milliseconds(contract.box.backoffResetAfterConnectedMs))
        #expect(settings.corrections == contract.client.correctionLimit)
        #expect(settings.farthestEpoch == contract.client.maxEpochCorrection)
        #expect(settings.youngDial == .milliseconds(contract.client.wakeKeepsDialYoungerThanMs))
        #expect(settings.maxFrameBytes == 65_536)
        for (role, milliseconds) in contract.client.rotateJitterMs {
            var plan = JoinPlan(role == "box" ? .box : .app, settings: settings)
            let turned = Close(.epochTurned, reason: "1", origin: .remote)
            #expect(plan.ended(turned, wall: .epoch(1), random: { 1 }) == .milliseconds(milliseconds))
        }
    }

    @Test func `A secret is read from both its forms, and shows in none of its own`() throws {
        let hex = try #require(RelaySecret(handles.secret + "\n"))
        let base64 = try #require(RelaySecret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"))
        #expect(hex.handle(of: 7, info: "x") == base64.handle(of: 7, info: "x"))
        for bad in ["", "00", String(repeating: "0", count: 30), "not a secret at all!", "AAECAwQFBgcICQoLDA0"] {
            #expect(RelaySecret(bad) == nil, "\(bad)")
        }
        #expect("\(hex)\(String(reflecting: hex))" == "a relay secreta relay secret")
        #expect(Mirror(reflecting: hex).children.isEmpty)
    }
}
