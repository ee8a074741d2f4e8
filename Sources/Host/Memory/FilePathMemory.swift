internal import Dispatch
internal import Glibc
internal import Synchronization
internal import TransportIO
package import TransportKit
package import TransportTLS

/// A path memory that outlives the process (R54): one file in the state directory.
///
/// Calls never wait for the disk. What has changed is written a moment later by a queue of its own, in one step, so that a
/// reader finds the old file or the new one. Hosts that share a directory write by turns, and each takes over what the
/// others have found out since. A file that cannot be read is a memory that starts empty; one of a newer version is left
/// alone.
package final class FilePathMemory: NetworkMemory {
    private struct State {
        var networks = NetworkTable()
        /// Something is not written yet.
        var isChanged = false
        /// A write is on its way.
        var isScheduled = false

        /// Notes a change; returns whether a write is to be put on its way.
        mutating func changed() -> Bool {
            isChanged = true
            defer { isScheduled = true }
            return !isScheduled
        }
    }

    /// Only the queue touches it, and the initializer before there is one.
    private struct Disk {
        /// Why nothing is ever written; nil where it is.
        var isLeftAlone = false
        /// The last write failed, and that was said.
        var isFailing = false
    }

    private let state = Mutex(State())
    private let disk = Mutex(Disk())
    private let queue = DispatchQueue(label: "transportkit.memory", qos: .utility)
    private let directory: StateDirectory
    private let key: KeyedHash?
    private let time: any TimeSource
    private let log: Log
    private let delay: Duration

    package static let fileName = "paths.json"
    /// A file of 64 networks has a few hundred KiB; this is for one that somebody else wrote.
    private static let sizeLimit = 16 << 20

    private var path: String { directory.file(Self.fileName) }

    /// Reads the memory of a state directory.
    ///
    /// - Parameters:
    ///   - key: names the networks. Where it is gone when something is written, it is written again beside it.
    ///   - delay: how long changes are gathered before they are written.
    package init(
        _ directory: StateDirectory, key: KeyedHash? = nil, time: any TimeSource, log: Log,
        delay: Duration = .seconds(1)
    ) {
        self.directory = directory
        self.key = key
        self.time = time
        self.log = log
        self.delay = delay
        do {
            guard let stored = try load() else { return }
            let now = time.wallNow()
            state.withLock { $0.networks = NetworkTable(stored, at: now) }
        } catch {
            switch error {
            case .newer(let version):
                disk.withLock { $0.isLeftAlone = true }
                log.warning(
                    "\(path) has version \(version), which a newer transportkit wrote: it is left alone, and what wins is "
                        + "remembered until this one stops")
            case .broken:
                log.warning("\(path) cannot be read as what it should be, and is begun anew")
            }
        }
    }

    // MARK: - The memory

    /// The path under which that one is kept; nil where it can never be told any more which network it was.
    package func kept(_ path: PathKey) -> PathKey? {
        state.withLock { $0.networks.kept(path) }
    }

    /// What is known of a path at `now`.
    package func history(of path: PathKey, at now: WallTime) -> PathHistory {
        state.withLock { $0.networks.history(of: path, at: now) }
    }

    /// Changes what is known of a path.
    package func change(_ path: PathKey, at now: WallTime, _ body: (inout PathHistory) -> Void) {
        let schedules = state.withLock { $0.networks.change(path, at: now, body) && $0.changed() }
        if schedules { schedule() }
    }

    /// Everything that is known at `now`.
    package func all(at now: WallTime) -> [PathKey: PathHistory] {
        state.withLock { $0.networks.all(at: now) }
    }

    /// A stay has begun on a network that is known by a vague name only.
    package func began(_ stay: String, under vague: String) {
        state.withLock { $0.networks.began(stay, under: vague) }
    }

    /// The network of a stay is told apart from others now. What was found out under its vague name goes over to it, and
    /// whoever dialled in that stay means this network.
    package func tellApart(_ stay: String, as network: String) {
        let now = time.wallNow()
        let schedules = state.withLock { $0.networks.tellApart(stay, as: network, at: now) && $0.changed() }
        if schedules { schedule() }
    }

    /// The name under which the network of a dial is kept.
    package func name(of network: String) -> String {
        state.withLock { $0.networks.network(of: network) ?? network }
    }

    /// Returns when everything is written, or has failed to be.
    package func flush() async {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                save()
                continuation.resume()
            }
        }
    }

    // MARK: - The file

    private func schedule() {
        queue.asyncAfter(deadline: .now() + .nanoseconds(Int(delay.clampedNanoseconds))) { [weak self] in self?.save() }
    }

    /// Reads the file; nil where there is none.
    private func load() throws(StoredPaths.Unreadable) -> StoredPaths? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw .broken
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0, bytes.count + count <= Self.sizeLimit else { throw .broken }
            if count == 0 { break }
            bytes += chunk[..<count]
        }
        return try StoredPaths(bytes)
    }

    /// On the queue.
    private func save() {
        let isChanged = state.withLock { state in
            state.isScheduled = false
            return state.isChanged
        }
        guard isChanged, !disk.withLock({ $0.isLeftAlone }) else { return }
        do {
            try directory.make()
            try withTurn { () throws(TransportError) in
                try restoreKey()
                try merge()
            }
            if disk.withLock({ exchange(&$0.isFailing, with: false) }) {
                log.info("what wins is kept for the next start again")
            }
        } catch {
            guard !disk.withLock({ exchange(&$0.isFailing, with: true) }) else { return }
            log.warning("what wins is remembered until this one stops, and not kept for the next start: \(error)")
        }
    }

    /// Without the key the file would say nothing to the next start (R58).
    private func restoreKey() throws(TransportError) {
        guard let key, try NetworkKey.restore(key, in: directory) else { return }
        log.info("\(directory.file(NetworkKey.fileName)) was gone, and is written again")
    }

    /// Takes over what others have written since, and writes all of it.
    private func merge() throws(TransportError) {
        var theirs: StoredPaths?
        do {
            theirs = try load()
        } catch {
            if case .newer(let version) = error {
                disk.withLock { $0.isLeftAlone = true }
                log.warning("\(path) now has version \(version), which a newer transportkit wrote: it is left alone")
                return
            }
        }
        let now = time.wallNow()
        let stored = state.withLock { state in
            state.isChanged = false
            if let theirs { state.networks.merge(theirs, at: now) }
            return state.networks.stored
        }
        do throws(TransportError) {
            try TLSFile.write(Bytes(try bytes(of: stored)), to: path, mode: 0o600)
            state.withLock { $0.networks.wrote(stored) }
        } catch {
            // The next change tries again.
            state.withLock { $0.isChanged = true }
            throw error
        }
    }

    private func bytes(of stored: StoredPaths) throws(TransportError) -> [UInt8] {
        do {
            return try stored.encoded()
        } catch {
            throw TransportError(.system, "\(path): \(error)")
        }
    }

    /// Runs `body` while no other host writes here.
    private func withTurn(_ body: () throws(TransportError) -> Void) throws(TransportError) {
        let lock = directory.file("paths.lock")
        let descriptor = unsafe open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw TransportError(errno: errno, doing: "opening \(lock)") }
        // Closing it gives the turn away.
        defer { close(descriptor) }
        var patience = 40
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            // A host that was stopped in the middle of its turn must not keep this one from ending.
            guard errno == EINTR || (errno == EWOULDBLOCK && patience > 0) else {
                throw TransportError(errno: errno, doing: "locking \(lock)")
            }
            patience -= 1
            usleep(25_000)
        }
        try body()
    }
}

private func exchange(_ value: inout Bool, with new: Bool) -> Bool {
    defer { value = new }
    return value
}
