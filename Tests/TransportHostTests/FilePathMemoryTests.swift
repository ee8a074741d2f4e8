import Foundation
import Glibc
import Testing
import TransportHost
import TransportKit
import TransportTLS

/// The memory on disk: R54, R56, R58, B48.
struct FilePathMemoryTests {
    static let start = WallTime(seconds: 1_800_000_000)
    static let path = PathKey(network: "0123abcd", destination: "door.test:443")

    func memory(_ folder: String, _ time: ManualTime = ManualTime(), _ log: RecordingLog = RecordingLog())
        -> FilePathMemory
    {
        FilePathMemory(StateDirectory(path: folder), time: time, log: Log(sink: log), delay: .seconds(3600))
    }

    /// Demotes QUIC on a path, as an early death does.
    func demote(_ memory: any PathMemory, _ path: PathKey = Self.path, at now: WallTime = Self.start) {
        memory.change(path, at: now) { history in
            history.won(.webSocket, at: now)
            history.measured(roundTrip: .milliseconds(40))
            history.carried(.webSocket, at: now)
            history.apply(.demote(lifetime: .seconds(86_400), kind: .carrying, reason: "it broke"), to: .quic, at: now)
            history.apply(
                .strike(.init(time: now, kind: .opening, reason: "silence")), to: .webSocket, at: now)
        }
    }

    func file(_ folder: String) -> String { "\(folder)/\(FilePathMemory.fileName)" }

    // R54
    @Test func `What was found out survives a restart, to the last field`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let first = memory("\(folder)/a/b")
            demote(first)
            let known = first.history(of: Self.path, at: Self.start)
            await first.flush()
            let second = memory("\(folder)/a/b")
            #expect(second.history(of: Self.path, at: Self.start) == known)
            #expect(known.transports[.quic]?.demotion?.reason == "it broke")
            // R48, R59: it ends after its day, to the second, also where the host did not run in between.
            let end = Self.start + .seconds(86_400)
            #expect(second.history(of: Self.path, at: end + .seconds(-1))[.quic].demotion != nil)
            #expect(memory("\(folder)/a/b", ManualTime(wall: end)).all(at: end).isEmpty)
            var status = stat()
            #expect(stat(file("\(folder)/a/b"), &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            #expect(stat("\(folder)/a", &status) == 0)
            #expect(status.st_mode & 0o777 == 0o700)
        }
    }

    // B34
    @Test func `A failure that nothing has come of is not kept`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let first = memory(folder)
            first.change(Self.path, at: Self.start) { history in
                history[.quic].lastFailure = Self.start
                history[.quic].lastProbe = Self.start
                history[.webSocket].lastFailure = Self.start
            }
            #expect(!first.history(of: Self.path, at: Self.start).isEmpty)
            await first.flush()
            #expect(memory(folder).all(at: Self.start).isEmpty)
            #expect(try !String(contentsOfFile: file(folder), encoding: .utf8).contains(Self.path.destination))
            // Beside something that was found out it is.
            first.change(Self.path, at: Self.start) { $0.won(.webSocket, at: Self.start) }
            await first.flush()
            #expect(memory(folder).history(of: Self.path, at: Self.start)[.quic].lastFailure == Self.start)
        }
    }

    @Test func `Changes are gathered, written in one step and leave no other file`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let kept = FilePathMemory(
                StateDirectory(path: folder), time: ManualTime(), log: Log(), delay: .milliseconds(20))
            for index in 0..<1000 {
                kept.change(Self.path, at: Self.start) { $0.measured(roundTrip: .milliseconds(index)) }
            }
            await kept.flush()
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["paths.json", "paths.lock"])
            let written = try Data(contentsOf: URL(fileURLWithPath: file(folder)))
            await kept.flush()
            #expect(try Data(contentsOf: URL(fileURLWithPath: file(folder))) == written)
        }
    }

    @Test(arguments: [
        "", "{", "null", "[]", "{\"version\":1}", "{\"version\":\"1\"}", "{\"version\":1,\"paths\":7,\"aliases\":{}}",
        "{\"version\":0,\"paths\":[],\"aliases\":{}}", String(repeating: "[", count: 100_000),
        String(repeating: "\0", count: 4096),
    ])
    func `A file that is none is replaced at the next change, and said once`(text: String) async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            try write(text, to: file(folder))
            let log = RecordingLog()
            let kept = memory(folder, ManualTime(), log)
            #expect(kept.all(at: Self.start).isEmpty)
            demote(kept)
            await kept.flush()
            #expect(log.lines.count == 1)
            #expect(log.lines.first?.message.contains("begun anew") == true)
            #expect(memory(folder).history(of: Self.path, at: Self.start)[.quic].demotion != nil)
        }
    }

    @Test func `A file cut off anywhere is survived`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let kept = memory(folder)
            demote(kept)
            await kept.flush()
            let whole = try Data(contentsOf: URL(fileURLWithPath: file(folder)))
            for count in stride(from: 0, to: whole.count, by: 7) {
                try whole.prefix(count).write(to: URL(fileURLWithPath: file(folder)))
                _ = memory(folder).all(at: Self.start)
            }
        }
    }

    @Test func `Numbers that no host writes harm nothing`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let extremes = ["\(Int64.min)", "-1", "0", "\(Int64.max)"]
            for since in extremes {
                for until in extremes {
                    try write(
                        """
                        {"version":1,"aliases":{},"paths":[{"network":"n","destination":"d","changed":\(since),
                        "winner":{"transport":"quic","since":\(since),"until":\(until)},"roundTripMicroseconds":\(until),
                        "transports":{"quic":{"demotion":{"since":\(since),"until":\(until),"kind":"carrying","reason":"r"},
                        "demotionsInARow":\(until),"lastFailure":\(since),"lastProbe":\(until),
                        "strikes":[{"time":\(since),"kind":"opening","reason":"r"},{"time":1,"kind":"?","reason":"r"}]}}}]}
                        """, to: file(folder))
                    let kept = memory(folder)
                    let known = kept.history(of: PathKey(network: "n", destination: "d"), at: Self.start)
                    // R54: nothing lasts longer from now than its own lifetime.
                    let day = Self.start + .seconds(86_400)
                    #expect(known[.quic].demotion.map { $0.until <= day } ?? true)
                    #expect(known.winner.map { $0.until <= day } ?? true)
                    _ = EvidenceDemotionPolicy().judge(
                        .ended(.init(transport: .quic, close: .pathLost(.init(.idle, "x")), sinceFirstMessage: nil)),
                        history: known, at: Self.start, fraction: 0.5)
                    kept.change(PathKey(network: "n", destination: "e"), at: Self.start) {
                        $0.won(.quic, at: Self.start)
                    }
                    await kept.flush()
                }
            }
        }
    }

    @Test func `A file of a newer version is left alone, to the byte`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let text = "{\"version\":2,\"paths\":\"otherwise\"}"
            try write(text, to: file(folder))
            let log = RecordingLog()
            let kept = memory(folder, ManualTime(), log)
            demote(kept)
            await kept.flush()
            #expect(kept.history(of: Self.path, at: Self.start)[.quic].demotion != nil)
            #expect(try String(contentsOfFile: file(folder), encoding: .utf8) == text)
            #expect(log.lines.map(\.level) == [.warning])
        }
    }

    @Test func `A newer program that comes while this one runs is left alone too`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let kept = memory(folder)
            demote(kept)
            await kept.flush()
            let text = "{\"version\":3}"
            try write(text, to: file(folder))
            demote(kept)
            await kept.flush()
            #expect(try String(contentsOfFile: file(folder), encoding: .utf8) == text)
        }
    }

    @Test func `A place that takes nothing is said once, and again when it does`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let log = RecordingLog()
            // A file stands where the folder should be: root, who may write everywhere, cannot write there either.
            try write("", to: "\(folder)/state")
            let kept = memory("\(folder)/state", ManualTime(), log)
            for _ in 0..<3 {
                demote(kept)
                await kept.flush()
            }
            #expect(log.lines.map(\.level) == [.warning])
            #expect(kept.history(of: Self.path, at: Self.start)[.quic].demotion != nil)
            unlink("\(folder)/state")
            demote(kept)
            await kept.flush()
            #expect(log.lines.map(\.level) == [.warning, .info])
            #expect(memory("\(folder)/state").history(of: Self.path, at: Self.start)[.quic].demotion != nil)
        }
    }

    @Test func `10,000 networks are cut to the 64 that changed last`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let paths = (0..<10_000).map { index in
                """
                {"network":"n\(index)","destination":"d","changed":\(Self.start.seconds - 10_000 + Int64(index)),
                "winner":{"transport":"quic","since":1799999000,"until":1800080000},"transports":{}}
                """
            }
            try write(
                "{\"version\":1,\"aliases\":{},\"paths\":[\(paths.joined(separator: ","))]}", to: file(folder))
            let kept = memory(folder)
            #expect(kept.all(at: Self.start).count == 64)
            #expect(kept.all(at: Self.start).keys.contains(PathKey(network: "n9999", destination: "d")))
            demote(kept)
            await kept.flush()
            let size = try FileManager.default.attributesOfItem(atPath: file(folder))[.size] as? Int
            #expect((size ?? .max) < 64 * 1024)
        }
    }

    @Test func `10,000 vague names are cut to as many as there are networks`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let aliases = (0..<10_000).map { "\"v\($0)\":\"n\($0 % 2)\"" }.joined(separator: ",")
            let paths = (0..<2).map { index in
                """
                {"network":"n\(index)","destination":"d","changed":\(Self.start.seconds - 10 + Int64(index)),
                "winner":{"transport":"quic","since":1799999000,"until":1800080000},"transports":{}}
                """
            }.joined(separator: ",")
            let text = "{\"version\":1,\"aliases\":{\(aliases)},\"paths\":[\(paths)]}"
            func stored() throws -> [String: String] {
                struct Stored: Decodable { var aliases: [String: String] }
                return try JSONDecoder().decode(
                    Stored.self, from: Data(contentsOf: URL(fileURLWithPath: file(folder)))
                ).aliases
            }
            try write(text, to: file(folder))
            let kept = memory(folder)
            demote(kept)
            await kept.flush()
            // Those of the network that changed last.
            #expect(try stored().count == 64 && Set(stored().values) == ["n1"])
            // The other host writes as many again, and this one finds names of its own.
            try write(text, to: file(folder))
            demote(kept, PathKey(network: "full", destination: "d"), at: Self.start)
            for index in 0..<100 { kept.tellApart("own\(index)", as: "full") }
            await kept.flush()
            #expect(try stored().count == 64 && Set(stored().values) == ["full"])
            #expect(kept.name(of: "own99") == "full")
        }
    }

    @Test func `What cannot be locked is named`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            // Root may open every file, but no folder for writing.
            #expect(mkdir("\(folder)/paths.lock", 0o700) == 0)
            let log = RecordingLog()
            let kept = memory(folder, ManualTime(), log)
            demote(kept)
            await kept.flush()
            #expect(log.lines.count == 1)
            #expect(log.lines.first?.message.contains("opening \(folder)/paths.lock: ") == true)
        }
    }

    // R54
    @Test func `A clock that stood in the future keeps nothing for years`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let future = Self.start + .seconds(10 * 365 * 86_400)
            let ahead = memory(folder, ManualTime(wall: future))
            demote(ahead, at: future)
            await ahead.flush()
            let time = ManualTime(wall: Self.start)
            let corrected = memory(folder, time)
            let demotion = corrected.history(of: Self.path, at: Self.start)[.quic].demotion
            #expect(demotion?.until == Self.start + .seconds(86_400))
            corrected.change(PathKey(network: "n", destination: "d"), at: Self.start) { $0.won(.quic, at: Self.start) }
            await corrected.flush()
            let later = Self.start + .seconds(86_400)
            #expect(memory(folder, ManualTime(wall: later)).all(at: later).isEmpty)
        }
    }

    @Test func `Two hosts that share a directory keep what both have found out`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let time = ManualTime()
            let hosts = [memory(folder, time), memory(folder, time)]
            await withDiscardingTaskGroup { group in
                for (index, host) in hosts.enumerated() {
                    group.addTask {
                        for round in 0..<40 {
                            demote(host, PathKey(network: "n\(index)", destination: "d\(round)"))
                            await host.flush()
                        }
                    }
                }
            }
            let known = memory(folder).all(at: Self.start)
            #expect(known.count == 80)
            // The later word on one path wins, whoever writes it.
            demote(hosts[0])
            time.advance(by: .seconds(5))
            demote(hosts[1], at: Self.start + .seconds(5))
            await hosts[1].flush()
            hosts[0].change(PathKey(network: "x", destination: "y"), at: Self.start) { $0.won(.quic, at: Self.start) }
            await hosts[0].flush()
            let now = Self.start + .seconds(5)
            #expect(
                memory(folder, ManualTime(wall: now)).history(of: Self.path, at: now)[.quic].demotion?.since == now)
        }
    }

    // R54
    @Test func `What one host finds out of a path the other does not erase, nor bring back`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let time = ManualTime()
            let hosts = [memory(folder, time), memory(folder, time)]
            func write(_ host: Int, _ change: @escaping (inout PathHistory) -> Void) async -> PathHistory {
                time.advance(by: .seconds(60))
                hosts[host].change(Self.path, at: time.wallNow(), change)
                await hosts[host].flush()
                return memory(folder, time).history(of: Self.path, at: time.wallNow())
            }
            func strike(_ reason: String) -> Verdict {
                .strike(.init(time: time.wallNow(), kind: .opening, reason: reason))
            }
            // The other host did not know of any of it when it wrote.
            _ = await write(0) { $0.apply(strike("first"), to: .quic, at: time.wallNow()) }
            var known = await write(1) { $0.won(.webSocket, at: time.wallNow()) }
            #expect(known[.quic].strikes.map(\.reason) == ["first"] && known.winner?.transport == .webSocket)
            known = await write(0) { history in
                history.measured(roundTrip: .nanoseconds(40_000_001))
                history.apply(
                    .demote(lifetime: .seconds(3600), kind: .opening, reason: "twice"), to: .quic, at: time.wallNow())
            }
            #expect(known[.quic].demotion?.reason == "twice" && known[.quic].strikes.isEmpty)
            known = await write(1) { $0.apply(strike("other"), to: .webSocket, at: time.wallNow()) }
            #expect(known[.quic].demotion?.reason == "twice" && known[.quic].demotionsInARow == 1)
            #expect(known[.quic].strikes.isEmpty && known[.quic].isUnproven)
            #expect(known.smoothedRoundTrip == .milliseconds(40) && known[.webSocket].strikes.count == 1)
            // What is lifted stays so, also where the file still has it.
            known = await write(1) { $0.apply(.lift, to: .quic, at: time.wallNow()) }
            #expect(known[.quic].demotion == nil)
            known = await write(0) { $0.measured(roundTrip: .milliseconds(40)) }
            #expect(known[.quic].demotion == nil && known.winner?.transport == .webSocket)
            known = await write(0) { $0.won(.quic, at: time.wallNow()) }
            #expect(known.winner?.transport == .quic)
            #expect(hosts[0].history(of: Self.path, at: time.wallNow()) == known)
            // Of two demotions that neither knew of, the one that ends later.
            hosts[0].change(Self.path, at: time.wallNow()) { history in
                history.apply(
                    .demote(lifetime: .seconds(7200), kind: .carrying, reason: "long"), to: .quic, at: time.wallNow())
            }
            _ = await write(1) { history in
                history.apply(
                    .demote(lifetime: .seconds(600), kind: .opening, reason: "short"), to: .quic, at: time.wallNow())
            }
            known = await write(0) { $0[.quic].lastProbe = time.wallNow() }
            #expect(known[.quic].demotion?.reason == "long")
        }
    }

    // R57
    @Test func `What comes in under a vague name goes to the network, and erases nothing there`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let kept = memory(folder, ManualTime(wall: Self.start + .seconds(60)))
            func path(_ network: String) -> PathKey { PathKey(network: network, destination: "d") }
            kept.tellApart("vague", as: "full")
            demote(kept, path("full"))
            await kept.flush()
            // The other host has not told it apart.
            let other = memory("\(folder)/other")
            other.change(path("vague"), at: Self.start + .seconds(9)) { $0.won(.quic, at: Self.start + .seconds(9)) }
            await other.flush()
            try FileManager.default.removeItem(atPath: file(folder))
            try FileManager.default.copyItem(atPath: file("\(folder)/other"), toPath: file(folder))
            kept.change(PathKey(network: "x", destination: "y"), at: Self.start) { $0.won(.quic, at: Self.start) }
            await kept.flush()
            #expect(kept.all(at: Self.start).keys.map(\.network).sorted() == ["full", "x"])
            #expect(kept.history(of: path("full"), at: Self.start).winner?.transport == .quic)
            #expect(kept.history(of: path("full"), at: Self.start)[.quic].demotion != nil)
        }
    }

    // R57
    @Test func `A network that is told apart takes over what was found out under its vague name`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let kept = memory(folder)
            let (vague, full) = ("vague", "full")
            func path(_ network: String) -> PathKey { PathKey(network: network, destination: "d") }
            demote(kept, path(vague))
            kept.tellApart(vague, as: full)
            await kept.flush()
            // What is written knows both names, also the first time.
            #expect(memory(folder).name(of: vague) == full)
            #expect(kept.history(of: path(full), at: Self.start)[.quic].demotion != nil)
            #expect(kept.all(at: Self.start).keys.map(\.network) == [full])
            // Whoever dialled under the vague name means the network.
            kept.change(path(vague), at: Self.start) { $0.apply(.clear, to: .quic, at: Self.start) }
            #expect(kept.history(of: path(full), at: Self.start)[.quic].demotion == nil)
            #expect(kept.name(of: vague) == full)
            await kept.flush()
            // After a boot the router is not known yet: the network that last had this name is the best guess.
            let next = memory(folder)
            #expect(next.history(of: path(vague), at: Self.start).winner?.transport == .webSocket)
            next.tellApart(vague, as: "elsewhere")
            #expect(next.history(of: path(vague), at: Self.start).isEmpty)
            #expect(next.history(of: path(full), at: Self.start).winner?.transport == .webSocket)
        }
    }

    /// A memory in a file, and one of a host that keeps nothing.
    func withMemories(_ body: (any NetworkMemory) throws -> Void) async throws {
        try await withTemporaryFolder { (folder: String) async throws in try body(memory(folder)) }
        try body(InProcessNetworkMemory(time: ManualTime()))
    }

    // R54, B48
    @Test func `What outlives a stay is charged to its network, not to the next of that vague name`() async throws {
        try await withMemories { kept in
            func path(_ network: String) -> PathKey { PathKey(network: network, destination: "d") }
            kept.began("vague", under: "vague")
            kept.tellApart("vague", as: "home")
            kept.began("vague#2", under: "vague")
            // Until it is told apart, the best guess.
            #expect(kept.name(of: "vague#2") == "home")
            kept.tellApart("vague#2", as: "office")
            demote(kept, path("vague"))
            #expect(kept.history(of: path("home"), at: Self.start)[.quic].demotion != nil)
            #expect(kept.history(of: path("office"), at: Self.start).isEmpty)
            #expect(kept.kept(path("vague")) == path("home"))
            #expect(kept.kept(path("vague#2")) == path("office"))
            kept.began("vague#3", under: "vague")
            #expect(kept.name(of: "vague#3") == "office")
        }
    }

    // R54, B48
    @Test func `A stay that was never told apart blames no network once its name means another`() async throws {
        try await withMemories { kept in
            func path(_ network: String) -> PathKey { PathKey(network: network, destination: "d") }
            kept.began("vague", under: "vague")
            kept.began("vague#2", under: "vague")
            kept.tellApart("vague#2", as: "office")
            #expect(kept.kept(path("vague")) == nil)
            demote(kept, path("vague"))
            #expect(kept.all(at: Self.start).isEmpty)
            #expect(kept.history(of: path("vague"), at: Self.start).isEmpty)
            // The stay that goes on is on that network.
            demote(kept, path("vague#2"))
            #expect(kept.all(at: Self.start).keys.map(\.network) == ["office"])
        }
    }

    // R58
    @Test func `The key is drawn once per installation, readable by nobody else`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let directory = StateDirectory(path: "\(folder)/state")
            let name = NetworkKey.load(from: directory, log: Log()).name("eth0/192.0.2.1")
            #expect(NetworkKey.load(from: directory, log: Log()).name("eth0/192.0.2.1") == name)
            #expect(
                NetworkKey.load(from: StateDirectory(path: "\(folder)/other"), log: Log()).name("eth0/192.0.2.1")
                    != name)
            let file = "\(folder)/state/network.key"
            var status = stat()
            #expect(stat(file, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["network.key"])
            // One that is cut off is drawn anew, and stays then.
            truncate(file, 5)
            let renewed = NetworkKey.load(from: directory, log: Log()).name("eth0/192.0.2.1")
            #expect(renewed != name)
            #expect(NetworkKey.load(from: directory, log: Log()).name("eth0/192.0.2.1") == renewed)
        }
    }

    // R58, B48
    @Test(arguments: [
        "is missing", "is no key: it has 5 bytes", "is no key: it has 33 bytes", "is no key: it has 0 bytes",
    ])
    func `A key that is lost or damaged is drawn anew, and said once`(problem: String) async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let directory = StateDirectory(path: folder)
            let log = RecordingLog()
            let name = NetworkKey.load(from: directory, log: Log(sink: log)).name("eth0/192.0.2.1")
            #expect(log.lines.isEmpty)
            let kept = memory(folder)
            demote(kept)
            await kept.flush()
            let key = "\(folder)/network.key"
            if problem == "is missing" {
                unlink(key)
            } else {
                try write(String(repeating: "k", count: Int(problem.split(separator: " ")[5]) ?? 0), to: key)
            }
            let renewed = NetworkKey.load(from: directory, log: Log(sink: log)).name("eth0/192.0.2.1")
            #expect(renewed != name)
            #expect(NetworkKey.load(from: directory, log: Log(sink: log)).name("eth0/192.0.2.1") == renewed)
            #expect(log.lines.map(\.level) == [.warning])
            let words = try #require(log.lines.first?.message)
            #expect(words.hasPrefix("\(key) \(problem)"))
            #expect(words.hasSuffix("; a new key is drawn, and what paths.json says of networks is forgotten"))
        }
    }

    // R58, B48
    @Test(arguments: ["is a folder", "is a link", "is no regular file"])
    func `What stands in the key's place stays there, and every start says so once`(problem: String) async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let key = "\(folder)/network.key"
            switch problem {
            case "is a folder": #expect(mkdir(key, 0o700) == 0)
            case "is a link":
                try write(String(repeating: "k", count: 32), to: "\(folder)/elsewhere")
                #expect(symlink("\(folder)/elsewhere", key) == 0)
            default: #expect(mkfifo(key, 0o600) == 0)
            }
            for _ in 0..<2 {
                let log = RecordingLog()
                _ = NetworkKey.load(from: StateDirectory(path: folder), log: Log(sink: log))
                #expect(log.lines.map(\.level) == [.warning])
                let words = try #require(log.lines.first?.message)
                #expect(words.hasPrefix("\(key) \(problem)"))
                #expect(words.hasSuffix("what is remembered says nothing to the next start until that is mended"))
            }
            var status = stat()
            #expect(lstat(key, &status) == 0 && status.st_mode & S_IFMT != S_IFREG)
        }
    }

    // R58, B48
    @Test func `A state directory that is deleted while the host runs comes back with its key`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let directory = StateDirectory(path: "\(folder)/state")
            let log = RecordingLog()
            let key = NetworkKey.load(from: directory, log: Log(sink: log))
            let name = try #require(key.name("eth0/192.0.2.1"))
            let kept = FilePathMemory(
                directory, key: key, time: ManualTime(), log: Log(sink: log), delay: .seconds(3600))
            demote(kept, PathKey(network: name, destination: "d"))
            await kept.flush()
            try FileManager.default.removeItem(atPath: directory.path)
            for round in 0..<2 {
                demote(kept, PathKey(network: name, destination: "d\(round)"))
                await kept.flush()
            }
            #expect(log.lines.map(\.message) == ["\(directory.path)/network.key was gone, and is written again"])
            let next = NetworkKey.load(from: directory, log: Log(sink: log))
            #expect(next.name("eth0/192.0.2.1") == name)
            #expect(memory(directory.path).all(at: Self.start).count == 3)
            #expect(log.lines.count == 1)
            // What stands in its place is left alone.
            #expect(unlink("\(directory.path)/network.key") == 0 && mkdir("\(directory.path)/network.key", 0o700) == 0)
            demote(kept)
            await kept.flush()
            #expect(log.lines.count == 1)
        }
    }

    // R58
    @Test func `No file tells where the machine has been`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let directory = StateDirectory(path: folder)
            let name = try #require(NetworkKey.load(from: directory, log: Log()).name("wlan0/192.168.77.1/02:00:5e"))
            let kept = memory(folder)
            demote(kept, PathKey(network: name, destination: "d"))
            await kept.flush()
            let text = try String(contentsOfFile: file(folder), encoding: .utf8)
            #expect(text.contains(name))
            #expect(!text.contains("wlan0"))
            #expect(!text.contains("192.168.77.1"))
        }
    }

    @Test func `The state directory is where the system says`() {
        func path(_ variables: [String: String]) -> String? { StateDirectory.usual { variables[$0] }?.path }
        #expect(path(["STATE_DIRECTORY": "/var/lib/tk:/var/lib/b", "HOME": "/root"]) == "/var/lib/tk")
        #expect(path(["XDG_STATE_HOME": "/s", "HOME": "/root"]) == "/s/transportkit")
        #expect(path(["XDG_STATE_HOME": "s", "HOME": "/root"]) == "/root/.local/state/transportkit")
        #expect(path(["HOME": ""]) == nil)
        #expect(path([:]) == nil)
    }
}
