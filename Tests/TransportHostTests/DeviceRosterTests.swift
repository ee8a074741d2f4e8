import Foundation
import NoiseCarrier
import Testing
import TransportHost
import TransportKit
import TunnelCarrier

/// The devices of a box, and the codes with which new ones come.
@Suite struct DeviceRosterTests {
    private let time = ManualTime()
    private let box = StaticPrivateKey().publicKey
    private let log = RecordingLog()

    private func roster(_ folder: String?) -> DeviceRoster {
        DeviceRoster(
            of: HomeID(of: box), in: folder.map { StateDirectory(path: $0) }, time: time, log: Log(sink: log))
    }

    private func file(_ folder: String) -> String { "\(folder)/devices-\(HomeID(of: box)).json" }

    // R88
    @Test func `A code admits one device, once, within ten minutes`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let roster = roster(folder)
            let (first, second, third) = (key(), key(), key())
            #expect(await !roster.admits(first, code: Bytes()))
            #expect(await !roster.admits(first, code: Bytes(repeating: 1, count: 16)))
            let code = try roster.makeCode().code
            #expect(await roster.admits(first, code: code))
            #expect(await !roster.admits(second, code: code))
            #expect(await roster.admits(first, code: Bytes()))
            #expect(await roster.roster() == [first])
            let late = try roster.makeCode().code
            time.advance(by: DeviceRoster.codeLifetime - .seconds(1))
            #expect(await roster.admits(second, code: late))
            let tooLate = try roster.makeCode().code
            time.advance(by: DeviceRoster.codeLifetime)
            // Neither does one that is over let in whoever shows another.
            #expect(await !roster.admits(third, code: Bytes(repeating: 1, count: 16)))
            #expect(await !roster.admits(third, code: tooLate))
            #expect(await roster.roster() == [first, second])
        }
    }

    @Test func `Whoever is known uses a fresh code up too, and the oldest of nine is dropped`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let roster = roster(folder)
            let known = key()
            #expect(try await roster.admits(known, code: roster.makeCode().code))
            let code = try roster.makeCode().code
            #expect(await roster.admits(known, code: code))
            #expect(await !roster.admits(key(), code: code))
            let codes = try (0..<9).map { _ in try roster.makeCode() }
            #expect(codes.last?.dropped == codes.first?.code)
            #expect(await !roster.admits(key(), code: codes[0].code))
            #expect(await roster.admits(key(), code: codes[8].code))
        }
    }

    @Test func `Devices outlive a restart with their names, and a revoked one does not`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let (one, two) = (key(), key())
            let first = roster(folder)
            for key in [one, two] { #expect(try await first.admits(key, code: first.makeCode().code)) }
            #expect(try await first.name("\(one)", "phone") == one)
            #expect(FileManager.default.fileExists(atPath: file(folder)))
            let second = roster(folder)
            #expect(second.devices.map(\.name) == ["phone", nil])
            #expect(try await second.revoke("phone") == one)
            let third = roster(folder)
            #expect(await third.roster() == [two])
            #expect(await !third.admits(one, code: Bytes()))
            #expect(log.lines.allSatisfy { !$0.message.contains("cannot") })
        }
    }

    @Test func `A device is named by its key, the beginning of it, or its name, and by nothing that means two`()
        async throws
    {
        try await withTemporaryFolder { (folder: String) async throws in
            let roster = roster(folder)
            let keys = (0..<3).map { _ in key() }
            for key in keys { #expect(try await roster.admits(key, code: roster.makeCode().code)) }
            #expect(try await roster.name(String("\(keys[1])".prefix(12)), "tablet") == keys[1])
            for word in ["", "abc", "nobody", "\(key())"] {
                await #expect(throws: DeviceRoster.Failure.self) { try await roster.revoke(word) }
            }
            await #expect(throws: DeviceRoster.Failure.self) { try await roster.name("\(keys[0])", "tablet") }
            await #expect(throws: DeviceRoster.Failure.self) { try await roster.name("\(keys[0])", "a\u{1b}[2J") }
            #expect(roster.devices.count == 3)
        }
    }

    @Test(arguments: ["", "{", "[]", #"{"version":1}"#, #"{"version":1,"devices":[{"key":"x","added":1}]}"#])
    func `A damaged file is set aside with a warning`(text: String) async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            try write(text, to: file(folder))
            let roster = roster(folder)
            #expect(await roster.roster().isEmpty)
            #expect(log.lines.count == 1 && log.lines[0].level == .warning)
            #expect(try String(contentsOfFile: file(folder) + ".damaged", encoding: .utf8) == text)
            let first = key()
            #expect(try await roster.admits(first, code: roster.makeCode().code))
            #expect(await self.roster(folder).roster() == [first])
        }
    }

    @Test func `A file of a newer version is left alone, and lets nobody in`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let text = #"{"version":2,"devices":{}}"#
            try write(text, to: file(folder))
            let roster = roster(folder)
            #expect(throws: DeviceRoster.Failure.self) { try roster.makeCode() }
            #expect(await !roster.admits(key(), code: Bytes(repeating: 0, count: 16)))
            #expect(try String(contentsOfFile: file(folder), encoding: .utf8) == text)
        }
    }

    @Test func `What cannot be kept is not done`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            // A file stands where the folder should be.
            try write("", to: "\(folder)/state")
            let roster = roster("\(folder)/state")
            #expect(try await !roster.admits(key(), code: roster.makeCode().code))
            #expect(await roster.roster().isEmpty)
        }
    }

    @Test func `Without a state directory devices last as long as the host`() async throws {
        let roster = roster(nil)
        let first = key()
        #expect(try await roster.admits(first, code: roster.makeCode().code))
        #expect(await roster.roster() == [first])
        #expect(log.lines.count == 2)
    }

    private func key() -> StaticPublicKey { StaticPrivateKey().publicKey }
}
