import Foundation
import Testing
import TransportHost
import TransportKit

/// What a config may ask for: every error with place, keys, what is wrong and what is allowed (B21).
@Suite struct GraphErrorTests {
    static let carrier = "carriers: { main: { kind: direct, url: \"wss://a.example/forward\" } }\n"

    static let tls = "tls: { selfSigned: localhost, directory: /tmp/none }"

    @Test(arguments: [
        (
            "listener: {}",
            "host.yaml:1:1: listener: unknown key; did you mean 'listeners'? allowed are log, grace, state, control, trace, keys, transports, carriers, box, listeners and forwards"
        ),
        ("log: { level: 5 }", "host.yaml:1:15: log.level: must be debug, info, warning or error, and is '5'"),
        ("log: debug", "host.yaml:1:6: log: must be a mapping, and is text"),
        ("grace: 5 sec", "host.yaml:1:8: grace: must be a duration such as 250ms, 5s, 2m, 1h or 1d, and is '5 sec'"),
        ("carriers: [a]", "host.yaml:1:11: carriers: must be a mapping from names, and is a list"),
        ("forwards: { a: b }", "host.yaml:1:11: forwards: must be a list of forwards, and is a mapping"),
        ("- a", "host.yaml:1:1: must be a mapping, and is a list"),
        ("log: {}", "host.yaml:1:1: there is nothing to run; 'listeners', 'forwards' or 'box' is needed"),
    ])
    func `The top level is checked`(text: String, expected: String) async throws {
        #expect(try await complaints(text) == [expected])
    }

    @Test(arguments: [
        ("{}", "carriers.a: 'kind' is missing; name one of direct, fallback, mux, noise, relay or tunnel"),
        (
            "{ kind: diect }",
            "carriers.a.kind: there is no kind of carrier 'diect'; did you mean 'direct'? known are direct, fallback, mux, noise, relay and tunnel"
        ),
        ("{ kind: direct }", "carriers.a: 'url' is missing"),
        (
            "{ kind: direct, url: 5 }",
            "carriers.a.url: must be text, and is a number; put it in quotes if it is meant as text"
        ),
        ("{ kind: direct, url: }", "carriers.a.url: must be text, and is empty"),
        (
            "{ kind: direct, url: \"http://a\" }",
            "carriers.a.url: the URL has an unknown scheme; wss:// and ws:// are allowed"
        ),
        ("{ kind: direct, url: \"wss://a:0\" }", "carriers.a.url: the URL has port 0; 1 to 65535 are allowed"),
        (
            "{ kind: direct, url: \"wss://a:70000\" }",
            "carriers.a.url: the URL has a bad port; 0 to 65535 are allowed, 0 only to listen"
        ),
        (
            "{ kind: direct, url: \"wss://a:-1\" }",
            "carriers.a.url: the URL has a bad port; 0 to 65535 are allowed, 0 only to listen"
        ),
        (
            "{ kind: direct, url: \"wss://a\", transports: quic }",
            "carriers.a.transports: must be a list of values, and is text"
        ),
        (
            "{ kind: direct, url: \"wss://a\", transports: [] }",
            "carriers.a.transports: names no transport; one at least is needed"
        ),
        (
            "{ kind: direct, url: \"wss://a\", transports: [quic, quick] }",
            "carriers.a.transports[1]: there is no transport 'quick'; did you mean 'quic'? known are memory, quic and websocket"
        ),
        (
            "{ kind: direct, url: \"wss://a\", transports: [quic, quic] }",
            "carriers.a.transports[1]: 'quic' stands here a second time; once is enough"
        ),
        (
            "{ kind: direct, url: \"ws://a\", transports: [quic] }",
            "carriers.a.transports[0]: QUIC has no form without TLS; write wss:// or leave it out"
        ),
        (
            "{ kind: direct, url: \"wss://a\", race: headstart }",
            "carriers.a.race: there is no race policy 'headstart'; did you mean 'head-start'? known are adaptive, head-start, ordered and parallel"
        ),
        (
            "{ kind: direct, url: \"wss://a\", demotion: week }",
            "carriers.a.demotion: there is no demotion policy 'week'; known are day, evidence and none"
        ),
        (
            "{ kind: direct, url: \"wss://a\", tls: { pin: abc } }",
            "carriers.a.tls.pin: must be sha256: and 64 hexadecimal digits, the hash of a certificate or of its public key"
        ),
        (
            "{ kind: direct, url: \"wss://a\", tls: { trust: /nonexistent.pem } }",
            "carriers.a.tls.trust: the file /nonexistent.pem does not exist"
        ),
        (
            "{ kind: direct, url: \"wss://a\", tls: { trust: /tmp } }",
            "carriers.a.tls.trust: /tmp is a folder; a file is needed"
        ),
        ("{ kind: direct, url: \"wss://a\", tls: { trust: /etc/hostname } }", nil),
        (
            "{ kind: direct, url: \"wss://a\", tls: { certificate: a.pem } }",
            "carriers.a.tls.certificate: needs 'key', the file of its private key, beside it"
        ),
        (
            "{ kind: direct, url: \"wss://a\", tls: { serverName: \"a b\" } }",
            "carriers.a.tls.serverName: is neither a name nor an address"
        ),
        (
            "{ kind: direct, url: \"ws://a\", tls: {} }",
            "carriers.a.tls: is of no use with ws://; write wss:// or leave it out"
        ),
        (
            "{ kind: direct, url: \"wss://a\", limits: { maxStreams: \"5\" } }",
            "carriers.a.limits.maxStreams: must be a whole number from 1 to 1073741824, and is text; write it without quotes"
        ),
        (
            "{ kind: direct, url: \"wss://a\", limits: { maxStreams: 0 } }",
            "carriers.a.limits.maxStreams: must be a whole number from 1 to 1073741824, and is '0'"
        ),
        (
            "{ kind: direct, url: \"wss://a\", limits: { handshakeTimeout: 5 } }",
            "carriers.a.limits.handshakeTimeout: must be a duration such as 250ms, 5s, 2m, 1h or 1d, and is '5'"
        ),
        (
            "{ kind: direct, url: \"wss://a\", keepalive: { idleTimeout: 0s } }",
            "carriers.a.keepalive.idleTimeout: must be at least 1s"
        ),
        (
            "{ kind: direct, url: \"wss://a\", keepalive: { intervall: 5s } }",
            "carriers.a.keepalive.intervall: unknown key; did you mean 'interval'? allowed are interval, idleTimeout, "
                + "probeAfter and lostAfter"
        ),
        (
            "{ kind: direct, url: \"wss://a\", urls: 5 }",
            "carriers.a.urls: unknown key; did you mean 'url'? allowed are kind, url, transports, race, demotion, tls, limits and keepalive"
        ),
        ("{ kind: mux }", "carriers.a: 'over' is missing"),
        ("{ kind: fallback, primary: a }", "carriers.a: 'secondary' is missing"),
        (
            "{ kind: fallback, primary: b, secondary: b }",
            "carriers.a.secondary: 'b' is the primary; name another carrier"
        ),
        (
            "{ kind: fallback, primary: b, secondary: c }",
            "carriers.a.primary: there is no carrier 'b'; did you mean 'a'? known are a"
        ),
        (
            "{ kind: fallback, primary: a, secondary: c }",
            "carriers.a.primary: the carriers go in a circle: a → a"
        ),
        (
            "{ kind: fallback, primary: b, secondary: c, recovery: 50ms }",
            "carriers.a.recovery: must be at least 100ms"
        ),
        (
            "{ kind: fallback, primary: b, secondary: c, switchBack: { probe: 1ms } }",
            "carriers.a.switchBack.probe: must be at least 1s"
        ),
        (
            "{ kind: fallback, primary: b, secondary: c, switchBack: { dwel: 1s } }",
            "carriers.a.switchBack.dwel: unknown key; did you mean 'dwell'? allowed are probe and dwell"
        ),
        ("{ kind: mux, over: b }", "carriers.a.over: there is no carrier 'b'; did you mean 'a'? known are a"),
        ("{ kind: mux, over: a }", "carriers.a.over: the carriers go in a circle: a → a"),
    ])
    func `A carrier is checked`(options: String, expected: String?) async throws {
        let found = try await complaints(
            "forwards: [{ listen: \"tcp://127.0.0.1:1\", carrier: a, to: \"tcp://x:1\" }]\ncarriers:\n  a: \(options)\n"
        )
        guard let expected else {
            // A file that is there but holds no certificate: the words are the TLS module's own.
            #expect(found?.count == 1 && found?[0].contains("carriers.a.tls: ") == true, "\(found ?? [])")
            return
        }
        let words = try #require(found?.first)
        #expect(found?.count == 1, "\(found ?? [])")
        // The place is the line of the carrier; its column depends on the value.
        #expect(words.hasPrefix("host.yaml:3:"))
        #expect(words.split(separator: " ", maxSplits: 1)[1] == expected)
    }

    // B21
    @Test(arguments: [
        (
            "state: None",
            "8: state: must be a folder, or none, and is 'None'; write none, or './None' for one of that name"
        ),
        ("state: ~/x", "8: state: \(shell)"), ("state: ~root", "8: state: \(shell)"),
        ("state: \"\"", "8: state: is empty; a name is needed"),
        ("state: 7", "8: state: must be a folder, or none, and is a number; put it in quotes if it is meant as text"),
        ("control: \"\"", "10: control: is empty; a name is needed"),
        (
            "control: NONE",
            "10: control: must be a path, or none, and is 'NONE'; write none, or './NONE' for one of that name"
        ),
        ("control: ~/s", "10: control: \(shell)"),
        (
            "control: \(String(repeating: "ä", count: 54))",
            "10: control: must be a path of at most 107 bytes, and with its folder has COUNT; a socket takes no more"
        ),
        ("trace: \"\"", "8: trace: is empty; a name is needed"),
        ("trace: ~/t", "8: trace: \(shell)"),
        (
            "trace: None",
            "8: trace: must be a file name, or none, and is 'None'; write none, or './None' for one of that name"
        ),
        ("trace: none", nil), ("state: none", nil), ("control: none", nil), ("state: ./~/None", nil),
    ])
    func `The files of a host are checked by name`(line: String, expected: String?) async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            // Names are counted with the folder at which they start.
            let count = "\(folder)/".utf8.count + 108
            let found = try await complaints("\(line)\n\(Self.listener)", folder: folder)
            #expect(found == expected.map { ["host.yaml:1:\($0.replacing("COUNT", with: "\(count)"))"] })
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
        }
    }

    private static let shell =
        "begins with ~, which a shell replaces and a config file does not; write the whole path"
    private static let listener =
        "listeners: { a: { url: \"ws://127.0.0.1:1\", routes: { /: { service: echo } } } }\n"

    // B21
    @Test func `A file that the shell would find is refused wherever a file is named`() async throws {
        let found = try await complaints(
            """
            forwards: [{ listen: "tcp://127.0.0.1:3", carrier: a, to: "tcp://x:1" }]
            carriers:
              a: { kind: direct, url: "wss://a", tls: { trust: { file: "~/a.pem", optional: true } } }
              b: { kind: direct, url: "wss://a", tls: { certificate: c.pem, key: ~/k.pem } }
            listeners:
              a: { url: "wss://127.0.0.1:1", tls: { selfSigned: x, directory: ~/d }, routes: { /: { service: echo } } }
              b: { url: "wss://127.0.0.1:2", tls: { certificate: ~/c.pem, key: k }, routes: { /: { service: echo } } }
            """)
        #expect(
            found == [
                "host.yaml:3:52: carriers.a.tls.trust: \(Self.shell)",
                "host.yaml:4:70: carriers.b.tls.key: \(Self.shell)",
                "host.yaml:6:67: listeners.a.tls.directory: \(Self.shell)",
                "host.yaml:7:54: listeners.b.tls.certificate: \(Self.shell)",
            ])
    }

    // B21
    @Test func `What is there and is no trace is not written to`() async throws {
        try await withTemporaryFolder { (folder: String) async throws in
            func complaint(_ name: String, state: String = "none") async throws -> [String]? {
                try await complaints("trace: \(name)\nstate: \(state)\n\(Self.listener)", folder: folder)
            }
            let observation = PathObservation(
                time: WallTime(seconds: 1_800_000_000), path: PathKey(network: "n", destination: "d"), dial: "1",
                event: .dialled([.init(.quic, .opened, took: nil)], winner: .quic, after: nil, roundTrip: nil))
            let line = Trace.line(observation)
            for (name, text) in [
                ("new", nil), ("empty", ""), ("blank", "\n\n"), ("good", "\n\(line)\n{"), ("one", line),
                ("half", "\(line.dropLast(9))\n\(line)\n"), ("torn", "\(line.prefix(30))"), ("brace", "{"),
            ] {
                if let text { try write(text, to: "\(folder)/\(name)") }
                #expect(try await complaint(name) == nil, "\(name)")
            }
            let key = String(repeating: "k", count: 32)
            let long = String(repeating: "{", count: 3 << 20)
            for (name, text) in [
                ("key", key), ("host.yaml", "{}\n"), ("long", long), ("json", "{\"listeners\":{}}"),
            ] {
                try write(text, to: "\(folder)/\(name)")
                #expect(
                    try await complaint(name) == [
                        "host.yaml:1:8: trace: the file \(folder)/\(name) is there and is no trace, so nothing is added to it; name another"
                    ])
                #expect(try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8) == text)
            }
            try FileManager.default.createDirectory(atPath: "\(folder)/d", withIntermediateDirectories: false)
            #expect(try await complaint("d") == ["host.yaml:1:8: trace: \(folder)/d is a folder; a file is needed"])
            #expect(
                try await complaint("m/t") == ["host.yaml:1:8: trace: the folder \(folder)/m does not exist"])
            // The first run makes its state directory.
            #expect(try await complaint("m/t", state: "m") == nil)
        }
    }

    // R33, B05, B21
    @Test(arguments: [
        (
            "interval: 60s, idleTimeout: 3s",
            "46: a.keepalive.idleTimeout: must be at least 500ms longer than 'interval', which is 60 s; a ping is given that long for its answer"
        ),
        (
            "interval: 2s, idleTimeout: 2400ms",
            "45: a.keepalive.idleTimeout: must be at least 500ms longer than 'interval', which is 2 s; a ping is given that long for its answer"
        ),
        (
            "idleTimeout: 15s",
            "31: a.keepalive.idleTimeout: must be at least 500ms longer than 'interval', which is 15 s unless said otherwise; a ping is given that long for its answer"
        ),
        (
            "interval: 45s",
            "28: a.keepalive.interval: must be at least 500ms shorter than 'idleTimeout', which is 45 s unless said otherwise; a ping is given that long for its answer"
        ),
        ("interval: 1ms", "28: a.keepalive.interval: must be at least 100ms, or 0s for no pings"),
        ("idleTimeout: 1ms", "31: a.keepalive.idleTimeout: must be at least 1s"),
        ("probeAfter: 0s", "30: a.keepalive.probeAfter: must be at least 100ms"),
        ("lostAfter: 1ms", "29: a.keepalive.lostAfter: must be at least 500ms, or 0s to leave it to 'idleTimeout'"),
        (
            "probeAfter: 6s, lostAfter: 6s",
            "45: a.keepalive.lostAfter: must be at least 500ms longer than 'probeAfter', which is 6 s; a ping is given that long for its answer"
        ),
        (
            "probeAfter: 10s",
            "30: a.keepalive.probeAfter: must be at least 500ms shorter than 'lostAfter', which is 5 s unless said otherwise; a ping is given that long for its answer"
        ),
        (
            "lostAfter: 3s",
            "29: a.keepalive.lostAfter: must be at least 500ms longer than 'probeAfter', which is 3 s unless said otherwise; a ping is given that long for its answer"
        ),
        (
            "lostAfter: 46s",
            "29: a.keepalive.lostAfter: must not be longer than 'idleTimeout', which is 45 s unless said otherwise"
        ),
        (
            "interval: 1s, idleTimeout: 4s, probeAfter: 4100ms",
            "61: a.keepalive.probeAfter: must not be longer than 'idleTimeout', which is 4 s"
        ),
        (
            "interval: 0s, lostAfter: 5s",
            "43: a.keepalive.lostAfter: is of no use without pings; leave it out, or give 'interval' a time"
        ),
        (
            "interval: 0s, probeAfter: 5s",
            "44: a.keepalive.probeAfter: is of no use without pings; leave it out, or give 'interval' a time"
        ),
        (
            "lostAfter: 0s, probeAfter: 5s",
            "45: a.keepalive.probeAfter: is of no use where 'lostAfter' is 0s; leave one of the two out"
        ),
        ("", nil), ("interval: 44500ms", nil), ("interval: 2s, idleTimeout: 6s", nil), ("lostAfter: 0s", nil),
        ("interval: 0s, idleTimeout: 2s, lostAfter: 0s", nil), ("probeAfter: 44s, lostAfter: 45s", nil),
        ("interval: 100ms, idleTimeout: 1s, probeAfter: 100ms, lostAfter: 600ms", nil),
    ])
    func `A keepalive that would give up a healthy session, or could do nothing, is refused`(
        options: String, expected: String?
    ) async throws {
        for section in ["carriers", "listeners"] {
            let isCarrier = section == "carriers"
            let found = try await complaints(
                isCarrier
                    ? """
                    forwards: [{ listen: "tcp://127.0.0.1:1", carrier: a, to: "tcp://x:1" }]
                    carriers: { a: { kind: direct, url: "wss://a",
                        keepalive: { \(options) } } }
                    """
                    : """
                    log: {}
                    listeners: { a: { url: "ws://127.0.0.1:1", routes: { /: { service: echo } },
                        keepalive: { \(options) } } }
                    """)
            #expect(
                found
                    == expected.map { words in
                        let parts = words.split(separator: " ", maxSplits: 1)
                        return ["host.yaml:3:\(parts[0]) \(section).\(parts[1])"]
                    })
        }
    }

    @Test func `A dial is given no time in which none can be done`() async throws {
        let found = try await complaints(
            """
            forwards: [{ listen: "tcp://127.0.0.1:1", carrier: a, to: "tcp://x:1" }]
            carriers: { a: { kind: direct, url: "wss://a", limits: { handshakeTimeout: 99ms } } }
            listeners: { b: { limits: { handshakeTimeout: 1ms },
                url: "ws://127.0.0.1:2", routes: { /: { service: forward, allow: [], connectTimeout: 1ms } } } }
            """)
        #expect(
            found == [
                "host.yaml:2:76: carriers.a.limits.handshakeTimeout: must be at least 100ms",
                "host.yaml:3:47: listeners.b.limits.handshakeTimeout: must be at least 100ms",
                "host.yaml:4:90: listeners.b.routes./.connectTimeout: must be at least 100ms",
            ])
    }

    @Test(arguments: [
        ("loops: 1", nil), ("loops: 64", nil),
        ("loops: 0", "42: transports.quic.loops: must be a whole number from 1 to 64, and is '0'"),
        ("loops: 65", "42: transports.quic.loops: must be a whole number from 1 to 64, and is '65'"),
        ("loops: -1", "42: transports.quic.loops: must be a whole number from 1 to 64, and is '-1'"),
        ("loops: two", "42: transports.quic.loops: must be a whole number from 1 to 64, and is 'two'"),
        (
            "loops: \"2\"",
            "42: transports.quic.loops: must be a whole number from 1 to 64, and is text; write it without quotes"
        ),
        ("loops: [2]", "42: transports.quic.loops: must be a whole number from 1 to 64, and is a list"),
        ("loop: 2", "35: transports.quic.loop: unknown key; did you mean 'loops'? allowed are kind and loops"),
    ])
    func `The loops of QUIC are checked`(option: String, expected: String?) async throws {
        let found = try await complaints(
            """
            forwards: [{ listen: "tcp://127.0.0.1:1", carrier: main, to: "tcp://x:1" }]
            transports: { quic: { kind: quic, \(option) } }
            carriers: { main: { kind: direct, url: "wss://a.example", transports: [websocket] } }
            """)
        #expect(found == expected.map { ["host.yaml:2:\($0)"] })
    }

    @Test(arguments: [
        (
            "{}",
            [
                "7: listeners.a: 'url' is missing; write wss://address:port",
                "7: listeners.a: 'routes' is missing; map a path to a service",
            ]
        ),
        (
            "{ url: \"wss://127.0.0.1:0\", \(tls), routes: { /: { service: echo } } }",
            ["14: listeners.a.url: the URL has port 0; 1 to 65535 are allowed"]
        ),
        (
            "{ url: \"wss://127.0.0.1:1/x\", \(tls), routes: { /: { service: echo } } }",
            ["14: listeners.a.url: the URL of a listener has no path; paths stand under 'routes'"]
        ),
        (
            "{ url: \"wss://127.0.0.1:1\", routes: { /: { service: echo } } }",
            [
                "7: listeners.a: 'tls' is missing; wss:// needs { certificate: file, key: file } or { selfSigned: [names], directory: folder }"
            ]
        ),
        (
            "{ url: \"wss://127.0.0.1:1\", tls: {}, routes: { /: { service: echo } } }",
            [
                "40: listeners.a.tls: needs 'certificate' and 'key', each naming a PEM file, or 'selfSigned' and 'directory'"
            ]
        ),
        (
            "{ url: \"wss://127.0.0.1:1\", tls: { certificate: /nonexistent, key: /x }, routes: { /: { service: echo } } }",
            ["55: listeners.a.tls.certificate: the file /nonexistent does not exist"]
        ),
        (
            "{ url: \"wss://127.0.0.1:1\", tls: { selfSigned: x }, routes: { /: { service: echo } } }",
            ["40: listeners.a.tls: 'directory' is missing; it says where the certificate is kept"]
        ),
        (
            "{ url: \"wss://127.0.0.1:1\", tls: { selfSigned: \"a b\", directory: d }, routes: { /: { service: echo } } }",
            ["54: listeners.a.tls.selfSigned: is neither a name nor an address"]
        ),
        (
            "{ url: \"wss://127.0.0.1:1\", \(tls), routes: {} }",
            ["97: listeners.a.routes: holds no route; map a path such as /echo to { service: echo }"]
        ),
        (
            "{ url: \"wss://127.0.0.1:1\", \(tls), routes: { x: { service: echo } } }",
            ["99: listeners.a.routes.x: is no path; it must begin with / and hold no space, ? or #"]
        ),
        (
            "{ url: \"wss://127.0.0.1:1\", \(tls), routes: { /: { service: ecko } } }",
            [
                "113: listeners.a.routes./.service: there is no service 'ecko'; did you mean 'echo'? known are door.app, door.box, echo, forward and relay"
            ]
        ),
        (
            "{ url: \"wss://127.0.0.1:1\", \(tls), routes: { /: { service: echo, allow: [] } } }",
            ["119: listeners.a.routes./.allow: unknown key; allowed are service and noise"]
        ),
        (
            "{ url: \"wss://127.0.0.1:1\", \(tls), routes: { /: { service: forward } } }",
            ["102: listeners.a.routes./: 'allow' is missing"]
        ),
        (
            "{ url: \"wss://127.0.0.1:1\", \(tls), routes: { /: { service: forward, allow: [\"tcp://a\"] } } }",
            ["130: listeners.a.routes./.allow[0]: the URL has no port; tcp://host:port is allowed"]
        ),
        (
            "{ url: \"ws://127.0.0.1:1\", transports: [quic], routes: { /: { service: echo } } }",
            ["47: listeners.a.transports[0]: QUIC has no form without TLS; write wss:// or leave it out"]
        ),
    ])
    func `A listener is checked`(options: String, expected: [String]) async throws {
        let found = try await complaints("listeners:\n   a: \(options)\n")
        #expect(found == expected.map { "host.yaml:2:\($0)" })
    }

    @Test(arguments: [
        (
            "{}",
            [
                "13: forwards[0]: 'listen' is missing; write tcp://address:port",
                "13: forwards[0]: 'carrier' is missing; name one of 'carriers'",
                "13: forwards[0]: 'to' is missing; write tcp://host:port, as the other end reaches it, or a box's service by name",
            ]
        ),
        (
            "{ listen: \"tcp://127.0.0.1:1\", carrier: mian, to: \"tcp://b:1\" }",
            ["53: forwards[0].carrier: there is no carrier 'mian'; did you mean 'main'? known are main"]
        ),
        (
            "{ listen: \"127.0.0.1:1\", carrier: main, to: \"tcp://b:1\" }",
            ["23: forwards[0].listen: the URL must have the form tcp://host:port"]
        ),
        (
            "{ listen: \"tcp://127.0.0.1:0\", carrier: main, to: \"tcp://b:0\" }",
            [
                "23: forwards[0].listen: the URL has port 0; 1 to 65535 are allowed",
                "63: forwards[0].to: the URL has port 0; 1 to 65535 are allowed",
            ]
        ),
        (
            "{ listen: \"tcp://127.0.0.1:1\", carrier: main, to: \"tcp://b:1\", optional: yes }",
            ["86: forwards[0].optional: must be true or false, and is 'yes'"]
        ),
        (
            "{ listen: \"tcp://127.0.0.1:1\", carrier: main, to: \"tcp://b:1/x\" }",
            ["63: forwards[0].to: the URL has a path; tcp://host:port is all that is allowed"]
        ),
    ])
    func `A forward is checked`(options: String, expected: [String]) async throws {
        let found = try await complaints(Self.carrier + "forwards: [ \(options) ]\n")
        #expect(found == expected.map { "host.yaml:2:\($0)" })
    }

    @Test func `Two who want one port are told apart`() async throws {
        let text = """
            carriers: { main: { kind: direct, url: "wss://a.example" } }
            listeners:
              a: { url: "wss://127.0.0.1:8443", \(Self.tls), routes: { /: { service: echo } } }
              b: { url: "wss://0.0.0.0:8443", \(Self.tls), routes: { /: { service: echo } } }
              c: { url: "wss://127.0.0.2:8443", transports: [quic], \(Self.tls), routes: { /: { service: echo } } }
            forwards:
              - { listen: "tcp://localhost:8443", carrier: main, to: "tcp://b:1" }
              - { listen: "tcp://127.0.0.1:9000", carrier: main, to: "tcp://b:1" }
              - { listen: "tcp://127.0.0.1:9000", carrier: main, to: "tcp://b:2" }
              - { listen: "tcp://127.0.0.2:9000", carrier: main, to: "tcp://b:3" }
            """
        #expect(
            try await complaints(text) == [
                "host.yaml:4:13: listeners.b.url: TCP port 8443 is taken by listeners.a.url in line 3; choose another port or address",
                "host.yaml:7:15: forwards[0].listen: TCP port 8443 is taken by listeners.a.url in line 3; choose another port or address",
                "host.yaml:9:15: forwards[2].listen: TCP port 9000 is taken by forwards[1].listen in line 8; choose another port or address",
            ])
    }

    @Test func `Carriers that go in a circle are named in their order, once`() async throws {
        let text = """
            carriers:
              a: { kind: mux, over: b }
              b: { kind: mux, over: c }
              c: { kind: mux, over: a }
            forwards: [{ listen: "tcp://127.0.0.1:1", carrier: b, to: "tcp://b:1" }]
            """
        #expect(
            try await complaints(text) == [
                "host.yaml:4:25: carriers.c.over: the carriers go in a circle: a → b → c → a"
            ])
    }

    // R114
    @Test func `What a fallback closes is nobody else's`() async throws {
        let text = """
            carriers:
              door: { kind: direct, url: "wss://door.example" }
              home: { kind: mux, over: door }
              spare: { kind: mux, over: door }
              main: { kind: fallback, primary: home, secondary: spare }
            forwards:
              - { listen: "tcp://127.0.0.1:1", carrier: main, to: "tcp://b:1" }
              - { listen: "tcp://127.0.0.1:2", carrier: home, to: "tcp://b:1" }
            """
        #expect(
            try await complaints(text) == [
                "host.yaml:5:36: carriers.main.primary: 'home' is closed when it is given up, and 'door' with it, which "
                    + "'spare' needs; write a carrier of its own for each",
                "host.yaml:8:45: forwards[1].carrier: the carrier 'home' is closed when 'main' gives it up; name another carrier",
            ])
    }

    @Test func `The two carriers of a fallback protect alike`() async throws {
        let text = """
            carriers:
              home: { kind: direct, url: "wss://door.example" }
              spare: { kind: direct, url: "ws://door.example" }
              main: { kind: fallback, primary: home, secondary: spare, recovery: 2s }
            forwards: [{ listen: "tcp://127.0.0.1:1", carrier: main, to: "tcp://b:1" }]
            """
        #expect(
            try await complaints(text) == [
                "host.yaml:4:53: carriers.main.secondary: home and spare do not protect alike (home: transport, spare: none)"
            ])
    }

    @Test func `A route that needs streams is refused where there are none, a forward gets its own`()
        async throws
    {
        let text = """
            carriers: { plain: { kind: direct, url: "wss://a", transports: [words] } }
            listeners:
              a: { url: "wss://127.0.0.1:1", transports: [words], \(Self.tls), routes: { /f: { service: forward, allow: [] } } }
            forwards: [{ listen: "tcp://127.0.0.1:2", carrier: plain, to: "tcp://b:1" }]
            """
        let found = try await complaints(text) { registry in
            try registry.register(transport: "words") { _, _ in WordsTransport() }
        }
        #expect(
            found == [
                "host.yaml:3:123: listeners.a.routes./f: needs streams, which the transport 'words' of the listener has not: it has text"
            ])
    }

    @Test func `One run reports the errors of every section`() async throws {
        let text = """
            log: { level: loud }
            grace: soon
            carriers:
              a: { kind: direct, url: "ftp://x" }
              b: { kind: mux, over: a }
            listeners:
              l: { url: "wss://[::1", \(Self.tls), routes: { /: { service: ecko } } }
            forwards:
              - { listen: 5, carrier: b, to: 6 }
            """
        let places = try await complaints(text)?.map { $0.split(separator: " ")[1].dropLast() }
        #expect(
            places == [
                "log.level", "grace", "carriers.a.url", "listeners.l.url", "listeners.l.routes./.service",
                "forwards[0].listen", "forwards[0].to",
            ])
    }

    @Test func `A plug-in's own options are checked like ours`() async throws {
        struct Options: Decodable {
            var name: String
            var count: Int?
            var nested: [String: Int]?
        }
        let text = """
            carriers:
              a: { kind: probe, nam: x, nested: { p: 1, q: z }, extra: 1 }
              b: { kind: probe, name: x, count: 1.5 }
              c: { kind: probe, name: x, nested: { p: 1 } }
            """
        let found = try await complaints(text) { registry in
            try registry.register(carrier: "probe") { source, _ in
                let options = try source.decode(Options.self)
                throw source.invalid("nested.p", "is \(options.nested?["p"] ?? 0), and 2 is allowed")
            }
        }
        #expect(
            found == [
                "host.yaml:2:6: carriers.a: 'name' is missing",
                "host.yaml:2:21: carriers.a.nam: unknown key; did you mean 'name'? allowed are kind and name",
                "host.yaml:2:53: carriers.a.extra: unknown key; allowed are kind and name",
                "host.yaml:3:37: carriers.b.count: must be a whole number, and is '1.5'",
                "host.yaml:4:43: carriers.c.nested.p: is 1, and 2 is allowed",
            ])
    }

    @Test func `A name that a plug-in takes twice is an error of the program`() throws {
        var registry = Registry()
        try registry.register(service: "x") { _, _ in EchoService() }
        #expect(throws: RegistryError("the service 'x' is registered already")) {
            try registry.register(service: "x") { _, _ in EchoService() }
        }
    }
}

/// A transport with text and nothing else, which is never dialled.
private struct WordsTransport: Transport {
    var name: TransportName { "words" }
    var capabilities: Capabilities { .text }

    func dial(_ url: ServiceURL, options: DialOptions) async throws(TransportError) -> any Socket {
        throw TransportError(.unsupported, "words alone")
    }

    func listen(_ endpoint: Endpoint, options: ListenOptions) async throws(TransportError) -> any Listener {
        throw TransportError(.unsupported, "words alone")
    }
}
