import MemoryTransport
import Synchronization
import TransportKit

/// A carrier over one transport whose attempts may be scripted, and which writes down what is asked of it.
final class ScriptedCarrier: Carrier {
    /// What becomes of attempts to open a session.
    enum Script: Sendable {
        case dial
        case fail(Close)
        /// It takes so long and then fails.
        case failLater(Duration, Close)
        /// It waits until it is cancelled.
        case hang
    }

    let name: String
    let capabilities: Capabilities
    let protection: Protection
    private let transport: MemoryTransport
    private let url: ServiceURL
    private let time: any TimeSource
    private let journal: Journal
    private let source = CarrierStateSource()
    private let state = Mutex((script: Script.dial, closeTakes: Duration.zero))

    init(
        _ name: String, transport: MemoryTransport, url: ServiceURL, protection: Protection = .transport,
        time: any TimeSource, journal: Journal
    ) {
        self.name = name
        self.transport = transport
        self.url = url
        self.protection = protection
        self.time = time
        self.journal = journal
        capabilities = transport.capabilities
    }

    var script: Script {
        get { state.withLock { $0.script } }
        set { state.withLock { $0.script = newValue } }
    }

    /// How long `close` takes.
    var closeTakes: Duration {
        get { state.withLock { $0.closeTakes } }
        set { state.withLock { $0.closeTakes = newValue } }
    }

    var states: CarrierStates { source.states }

    func open(firstFlight: Bytes?) async throws(Close) -> any Socket {
        if case .closed(let close) = source.latest { throw close }
        journal.write("\(name) opens", at: time.now())
        switch script {
        case .dial: break
        case .fail(let close): throw close
        case .failLater(let duration, let close):
            guard (try? await time.sleep(for: duration)) != nil else { throw .cancelled }
            throw close
        case .hang:
            _ = await Signal().wait()
            throw .cancelled
        }
        var options = DialOptions()
        options.firstFlight = firstFlight
        do throws(TransportError) {
            let socket = try await transport.dial(url, options: options)
            source.set(.open(CarrierPath(carrier: name, transport: socket.info.transport)))
            return socket
        } catch {
            throw error.code == .cancelled ? .cancelled : .pathLost(error)
        }
    }

    func wake() async { journal.write("\(name) wakes", at: time.now()) }

    func close(_ code: CloseCode, reason: String) async {
        let closeTakes = closeTakes
        if closeTakes > .zero { try? await time.sleep(for: closeTakes) }
        journal.write("\(name) closes", at: time.now())
        source.set(.closed(Close(code, reason: reason, origin: .local)))
    }
}

/// What was done, in order, and when.
final class Journal: Sendable {
    struct Entry: Sendable, Hashable {
        var what: String
        var at: Instant
    }

    private let kept = Mutex<[Entry]>([])

    var entries: [Entry] { kept.withLock { $0 } }
    var words: [String] { entries.map(\.what) }

    func count(of what: String) -> Int { entries.filter { $0.what == what }.count }

    func write(_ what: String, at instant: Instant) { kept.withLock { $0.append(Entry(what: what, at: instant)) } }
}
