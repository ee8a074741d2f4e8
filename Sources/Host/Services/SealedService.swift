internal import MuxCarrier
internal import NoiseCarrier
internal import TransportKit

/// Puts a service behind an end-to-end session: answers the handshakes of the peers that are listed, gives the session
/// streams, and hands it on.
struct SealedService<Inner: Service>: Service {
    private let inner: Inner
    private let acceptor: NoiseAcceptor
    private let multiplexer: YamuxMultiplexer
    private let limits: Limits
    private let log: Log

    init(
        _ inner: Inner, key: StaticPrivateKey, peers: [StaticPublicKey], prologue: String?, limits: Limits,
        context: BuildContext
    ) {
        self.inner = inner
        self.limits = limits
        log = context.log.named("noise")
        let admitted = Set(peers)
        acceptor = NoiseAcceptor(
            key: key, settings: NoiseSettings(prologueText: prologue), executor: context.executor, time: context.time,
            metrics: context.metrics
        ) { peer, _ in admitted.contains(peer) }
        multiplexer = YamuxMultiplexer(executor: context.executor, time: context.time)
    }

    func serve(_ socket: any Socket, target: Target) async {
        let sealed: NoiseSocket
        do throws(Close) {
            sealed = try await acceptor.accept(socket)
        } catch {
            log.debug("no session with a peer on \(target): \(error)")
            return
        }
        let session = await multiplexer.wrap(sealed, isDialer: false, limits: limits)
        await inner.serve(session, target: target)
        await session.close(.normal, reason: "")
    }
}

extension SealedService: GracefulService where Inner: GracefulService {
    func beginGracefulShutdown() { inner.beginGracefulShutdown() }
}
