import Dispatch
import Foundation
import Glibc
import Testing
import TransportHost

/// B72, B26: the socket that `status` and `explain` ask.
@Suite(.timeLimit(.minutes(1))) struct ControlSocketTests {
    func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    func refusal(_ path: String) -> String? {
        do {
            close(try ControlSocket.bind(path))
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// Connects as a careless client does.
    func connect(_ path: String) -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { room in
            for (index, byte) in path.utf8.enumerated() { room[index] = byte }
        }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        #expect(result == 0)
        return descriptor
    }

    @Test func `What a crashed host has left behind is replaced, and a living one is respected`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let path = "\(folder)/s"
            // Closing it without removing it is what a crash does.
            close(try ControlSocket.bind(path))
            #expect(exists(path))
            let server = try ControlServer(path) { $0 }
            #expect(refusal(path)?.contains("another transportkit answers at \(path)") == true)
            let client = connect(path)
            #expect(send(client, "a\n", 2, 0) == 2)
            var room = [UInt8](repeating: 0, count: 8)
            #expect(recv(client, &room, 8, 0) == 2)
            close(client)
            server.stop()
            #expect(!exists(path))
        }
    }

    @Test func `Whatever else stands there stays, and is named`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let path = "\(folder)/s"
            try write("mine", to: path)
            #expect(refusal(path)?.hasSuffix("a file stands there, and is left alone") == true)
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "mine")
            let link = "\(folder)/l"
            symlink(path, link)
            #expect(refusal(link)?.hasSuffix("a symbolic link stands there, and is left alone") == true)
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == path)
            #expect(refusal(folder)?.hasSuffix("a folder stands there, and is left alone") == true)
            #expect(
                refusal("\(folder)/none/s")
                    == "the control socket \(folder)/none/s cannot be made: the folder \(folder)/none is missing")
            #expect(!exists("\(folder)/none"))
            let long = folder + "/" + String(repeating: "x", count: 107 - folder.utf8.count - 1)
            #expect(refusal(long) == nil)
            #expect(refusal(long + "x")?.contains("the path has 108 bytes, and 107 are allowed") == true)
        }
    }

    @Test(arguments: [mode_t(0), 0o077, 0o777])
    func `Only its owner can open it, whatever the umask`(mask: mode_t) async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let before = umask(mask)
            let result = Result { try ControlSocket.bind("\(folder)/s") }
            umask(before)
            close(try result.get())
            var status = stat()
            #expect(stat("\(folder)/s", &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
        }
    }

    @Test func `A host that is asked by too many says that it is busy, and hides no other`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let path = "\(folder)/control-a.sock"
            let held = DispatchSemaphore(value: 0)
            let server = try ControlServer(path) { line in
                held.wait()
                return line
            }
            let clients = (0..<8).map { _ in connect(path) }
            for client in clients { #expect(send(client, "a\n", 2, 0) == 2) }
            defer {
                for client in clients {
                    held.signal()
                    close(client)
                }
                server.stop()
            }
            let busy = "transportkit: \(path): it is busy: 8 others ask it already; ask again in a few seconds\n"
            func status() async throws -> Program.Ended {
                try await Program.run(
                    ["-c", "RUNTIME_DIRECTORY='\(folder)' exec \"$0\" status", Program.path], executable: "/bin/sh")
            }
            let alone = try await status()
            #expect(alone.code == 1)
            #expect(alone.errors == busy)
            try write("control: control-b.sock\n\(Self.listener(try await freePort()))", to: "\(folder)/b.yaml")
            try await Program.whileRunning(["run", "\(folder)/b.yaml"]) { (host: Program) async throws in
                #expect(try await host.lines(until: "ready") != nil)
                let both = try await status()
                #expect(both.code == 0)
                #expect(both.output.contains("\(folder)/b.yaml"))
                #expect(both.errors == busy)
            }
        }
    }

    @Test func `Hosts are asked at once, so that each has its time to answer`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let (first, second) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            // Each answers once the other was asked, too.
            let servers = try [("a", first, second), ("b", second, first)].map { name, own, other in
                try ControlServer("\(folder)/control-\(name).sock") { _ in
                    own.signal()
                    guard other.wait(timeout: .now() + .seconds(60)) == .success else { return Array("{}".utf8) }
                    return Array(#"{"error":"it is \#(name)"}"#.utf8)
                }
            }
            defer { for server in servers { server.stop() } }
            let ended = try await Program.run(
                ["-c", "RUNTIME_DIRECTORY='\(folder)' exec \"$0\" status", Program.path], executable: "/bin/sh")
            #expect(ended.code == 1)
            #expect(
                ended.errors
                    == "transportkit: \(folder)/control-a.sock: it is a\n\(folder)/control-b.sock: it is b\n")
        }
    }

    static func listener(_ port: UInt16) -> String {
        "listeners: { a: { url: \"ws://127.0.0.1:\(port)\", routes: { /: { service: echo } } } }"
    }

    // B26
    @Test func `Clients that go before they read, say nothing or say too much harm nothing`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            let path = "\(folder)/s"
            // More than a socket buffers, so that the answer is under way when the client goes.
            let answer = [UInt8](repeating: 0x61, count: 4 << 20)
            let server = try ControlServer(path) { _ in answer }
            for _ in 0..<40 {
                let client = connect(path)
                _ = send(client, "a\n", 2, Int32(MSG_NOSIGNAL))
                close(client)
            }
            let flood = connect(path)
            var sent = 0
            let junk = [UInt8](repeating: 0x62, count: 65_536)
            while sent < 1 << 20 {
                let count = send(flood, junk, junk.count, Int32(MSG_NOSIGNAL))
                guard count > 0 else { break }
                sent += count
            }
            #expect(sent < 1 << 20)
            close(flood)
            // It serves so many at a time and tells others in a short line; those that are gone make room.
            var received = 0
            while received < 1000 {
                received = 0
                let client = connect(path)
                _ = send(client, "a\n", 2, Int32(MSG_NOSIGNAL))
                var room = [UInt8](repeating: 0, count: 1 << 20)
                while case let count = recv(client, &room, room.count, 0), count > 0 { received += count }
                close(client)
            }
            #expect(received == answer.count + 1)
            server.stop()
        }
    }
}
