import TransportHost
import TransportIO
import TransportKit

extension FuzzTarget {
    /// A config file: what is wrong with it is said with its place, and nothing is opened.
    static let config = FuzzTarget(name: "config") {
        [
            """
            log: { level: debug }
            grace: 5s
            carriers:
              main: { kind: direct, url: "wss://door.example:443/forward", transports: [quic, websocket], race: adaptive }
            forwards:
              - { listen: "tcp://127.0.0.1:8080", carrier: main, to: "tcp://127.0.0.1:80" }
            """,
            """
            listeners:
              public:
                url: "wss://0.0.0.0:8443"
                tls: { selfSigned: [door.example] }
                routes:
                  /echo: echo
                  /forward: { service: forward, allow: ["tcp://127.0.0.1:9001"], connectTimeout: 2s }
            """,
            #"{ "carriers": { "a": { "kind": "mux", "over": "b" } }, "forwards": [1, null, "x"] }"#,
            "a: &x [*x]\n? !!str key\n: |\n  text\n",
        ].map { Bytes($0) }
    } run: { input in
        guard let parts = ConfigParts.shared else { throw Broken(description: "no loop can be made") }
        do {
            let configuration = try HostConfiguration(text: input.text(), name: "fuzz.yaml", folder: "/nonexistent")
            _ = try HostGraph(configuration, registry: parts.registry, context: parts.context)
        } catch let errors as ConfigErrors {
            try demand(!errors.errors.isEmpty, "a config is refused without a reason")
            for error in errors.errors {
                try demand(!error.message.isEmpty, "an error without words at \(error.place)")
                try demand((error.place.line ?? 1) > 0 && (error.place.column ?? 1) > 0, "a place of \(error.place)")
            }
        }
    }
}

private struct ConfigParts {
    let registry: Registry
    let context: BuildContext

    static let shared: ConfigParts? = try? ConfigParts()

    init() throws {
        // It lives as long as the process.
        let loop = try EventLoop(name: "fuzz")
        registry = try StandardRegistry.make(loop: loop)
        context = BuildContext(executor: loop, time: loop)
    }
}
