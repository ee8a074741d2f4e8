internal import Synchronization
internal import TransportKit

/// One end of a yamux stream. Dropping it before it is over resets it.
final class MuxStream: Stream {
    private let number: UInt32
    private let core: MuxCore
    private let waiters: StreamWaiters
    private let isReading = Atomic(false)
    private let isWriting = Atomic(false)

    init(id: UInt32, core: MuxCore, waiters: StreamWaiters) {
        number = id
        self.core = core
        self.waiters = waiters
    }

    deinit {
        core.release(number)
    }

    var id: UInt64 { UInt64(number) }

    func read(upTo limit: Int) async throws(StreamError) -> Bytes? {
        guard limit > 0 else { throw .misuse("a read wants at least one byte") }
        guard !isReading.exchange(true, ordering: .acquiring) else { throw .misuse("another task reads already") }
        defer { isReading.store(false, ordering: .releasing) }
        return try await core.read(number, upTo: limit, waiters)
    }

    func write(_ bytes: Bytes) async throws(StreamError) {
        guard !isWriting.exchange(true, ordering: .acquiring) else { throw .misuse("another task writes already") }
        defer { isWriting.store(false, ordering: .releasing) }
        try await core.write(bytes, to: number, waiters)
    }

    func finish() async throws(StreamError) {
        try await core.finish(number)
    }

    func reset(_ code: UInt64) async {
        await core.reset(number)
    }
}

/// What wakes the reader and the writer of one stream.
final class StreamWaiters: Sendable {
    let readable = Signal()
    let writable = Signal()
}
