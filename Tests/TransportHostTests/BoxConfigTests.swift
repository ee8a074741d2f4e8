import Foundation
import NoiseCarrier
import Testing
import TransportHost
import TransportKit
import TunnelCarrier

/// What a config may say of a door, a box and a tunnel (B21).
@Suite struct BoxConfigTests {
    private static let peer = StaticPrivateKey().publicKey
    private static let home = HomeID(of: peer)

    private func complaints(_ text: String) async throws -> [String]? {
        try await withTemporaryFolder { (folder: String) async throws in
            for name in ["a.key", "b.key", "c.key"] { _ = try KeyFile.make("\(folder)/\(name)") }
            let filled = text.replacing("PEER", with: "\"\(Self.peer)\"").replacing("HOME", with: "\"\(Self.home)\"")
            return try await TransportHostTests.complaints(filled, folder: folder)
        }
    }

    private func box(_ rest: String, door: String = "url: \"wss://a\"", keys: String = "keys: { device: a.key }")
        -> String
    {
        "\(keys)\ncarriers: { door: { kind: direct, \(door) } }\nbox:\n  { \(rest) }\n"
    }

    @Test(arguments: [
        ("door: door, doorKeys: PEER, services: { web: \"tcp://b:80\" }", nil),
        ("door: door, doorKeys: [PEER], services: { web: \"tcp://b:80\" }, url: \"wss://b/x\"", nil),
        (
            "door: dor, doorKeys: PEER, services: { web: \"tcp://b:80\" }",
            "box.door: there is no carrier 'dor'; did you mean 'door'?"
        ),
        ("door: door, doorKeys: [], services: { web: \"tcp://b:80\" }", "box.doorKeys: names 0 keys; a door has one"),
        ("door: door, doorKeys: [PEER, PEER], services: { web: \"tcp://b:80\" }", "box.doorKeys: names a key twice"),
        ("door: door, doorKeys: x, services: { web: \"tcp://b:80\" }", "box.doorKeys: must be a public key as"),
        ("door: door, doorKeys: PEER, services: {}", "box.services: offers nothing; map a name"),
        ("door: door, doorKeys: PEER, services: { Web: \"tcp://b:80\" }", "box.services.Web: is no name of a service"),
        (
            "door: door, doorKeys: PEER, services: { web: \"b:80\" }",
            "box.services.web: the URL must have the form tcp://"
        ),
        ("door: door, doorKeys: PEER", "box: 'services' is missing"),
        (
            "door: door, doorKeys: PEER, service: {}, services: { web: \"tcp://b:80\" }",
            "box.service: unknown key; did you mean 'services'?"
        ),
        ("door: door, doorKeys: PEER, services: { web: \"tcp://b:80\" }, url: x", "box.url: the URL has no scheme"),
    ])
    func `A box is checked`(options: String, expected: String?) async throws {
        let found = try await complaints(box(options))
        #expect(found?.count == (expected == nil ? nil : 1), "\(found ?? [])")
        if let expected { #expect(found?[0].contains(expected) == true, "\(found ?? [])") }
    }

    @Test func `A box needs a key, and a door whose clients can be told where it is`() async throws {
        let good = "door: door, doorKeys: PEER, services: { web: \"tcp://b:80\" }"
        let keyless = try await complaints(box(good, keys: "log: {}"))
        #expect(
            keyless?.count == 1 && keyless?[0].contains("box: needs the key of this machine") == true,
            "\(keyless ?? [])")
        let odd = try await complaints(box(good, door: "url: \"wss://a/boxes\""))
        #expect(
            odd?.count == 1 && odd?[0].contains("box: 'url' is missing; 'door' does not say where") == true,
            "\(odd ?? [])")
    }

    // R3
    @Test func `What leads to a door leads nowhere else`() async throws {
        let found = try await complaints(
            """
            keys: { device: a.key }
            carriers:
              door: { kind: direct, url: "wss://a" }
              tunnel: { kind: tunnel, through: door, doorKeys: PEER, home: HOME }
              home: { kind: noise, over: tunnel, peer: PEER }
              other: { kind: noise, over: door, peer: PEER }
            forwards:
              - { listen: "tcp://127.0.0.1:1", carrier: home, to: web }
              - { listen: "tcp://127.0.0.1:2", carrier: door, to: web }
            """)
        #expect(
            found == [
                "host.yaml:6:31: carriers.other.over: the carrier 'door' leads a tunnel to its door and nowhere else; name another",
                "host.yaml:9:45: forwards[1].carrier: the carrier 'door' leads a tunnel to its door and nowhere else; name another",
            ])
    }

    // R95
    @Test func `A tunnel leads to the home of the box above it`() async throws {
        let other = StaticPrivateKey().publicKey
        let found = try await complaints(
            """
            keys: { device: a.key }
            carriers:
              door: { kind: direct, url: "wss://a" }
              tunnel: { kind: tunnel, through: door, doorKeys: PEER, home: HOME }
              home: { kind: noise, over: tunnel, peer: "\(other)" }
            forwards: [{ listen: "tcp://127.0.0.1:1", carrier: home, to: web }]
            """)
        #expect(
            found == [
                "host.yaml:5:44: carriers.home.peer: has the home \(HomeID(of: other)), and 'tunnel' leads to \(Self.home); one of the two is wrong"
            ])
    }

    @Test(arguments: [
        ("through: dor, doorKeys: PEER, home: HOME", "through: there is no carrier 'dor'"),
        ("through: door, doorKeys: [PEER, PEER], home: HOME", "doorKeys: names a key twice"),
        ("through: door, doorKeys: PEER, home: home", "home: must be the id of a home: 26 characters"),
        ("through: door, doorKeys: PEER", "'home' is missing"),
        ("doorKeys: PEER, home: HOME", "'through' is missing"),
    ])
    func `A tunnel is checked`(options: String, expected: String) async throws {
        let found = try await complaints(
            """
            keys: { device: a.key }
            carriers:
              door: { kind: direct, url: "wss://a" }
              main: { kind: tunnel, \(options) }
            forwards: [{ listen: "tcp://127.0.0.1:1", carrier: main, to: web }]
            """)
        #expect(found?.count == 1 && found?[0].contains(expected) == true, "\(found ?? [])")
    }

    // R128
    @Test(arguments: [
        ("keys: [a.key]", "keys: [a.key]", nil),
        ("keys: a.key", "keys: [a.key, b.key]", "keys: stand beside other options"),
        ("keys: [a.key, b.key]", "keys: [a.key, b.key]", nil), ("keys: []", "keys: []", "keys: names 0 files"),
        ("keys: [a.key], links: 0", "keys: [a.key], links: 0", "links: is 0; 1 to"),
        ("keys: [none.key]", "keys: [none.key]", "keys: the file FOLDER"),
        ("key: a.key", "keys: a.key", "'keys' is missing"),
    ])
    func `The two routes of a door are one door`(app: String, box: String, expected: String?) async throws {
        let found = try await complaints(
            """
            listeners:
              a:
                url: "ws://127.0.0.1:1"
                routes:
                  /v1/app: { service: door.app, \(app) }
                  /v1/box: { service: door.box, \(box) }
            """)
        #expect((found == nil) == (expected == nil), "\(found ?? [])")
        if let expected {
            #expect(found?.contains { $0.contains(expected.replacing("FOLDER", with: "")) } == true, "\(found ?? [])")
        }
    }
}
