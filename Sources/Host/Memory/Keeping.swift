internal import TransportKit
internal import TransportTLS

/// What a host remembers, and under which key: in its state directory, or for as long as it runs.
struct Keeping: Sendable {
    /// What networks are remembered by.
    let memory: any NetworkMemory
    /// The same where it is kept in a file.
    let file: FilePathMemory?
    /// The name under which a network is kept that dials know by this key.
    func name(of network: String) -> String { memory.name(of: network) }

    /// What networks are named with.
    let hash: KeyedHash

    init(_ directory: StateDirectory?, time: any TimeSource, log: Log) {
        guard let directory else {
            memory = InProcessNetworkMemory(time: time)
            file = nil
            hash = NetworkKey.temporary()
            return
        }
        hash = NetworkKey.load(from: directory, log: log)
        let kept = FilePathMemory(directory, key: hash, time: time, log: log)
        (memory, file) = (kept, kept)
    }
}
