internal import Synchronization
internal import TransportKit

/// Says once per process that the kernel gives small receive buffers, and what would help (B33).
enum BufferAdvice {
    private static let given = Atomic(false)

    /// Looks at what a socket got of what it wanted.
    static func note(received: Int32, wanted: Int32, log: Log) {
        guard received >= 0, received < wanted, !given.exchange(true, ordering: .relaxed) else { return }
        log.info(
            "the kernel gives a UDP socket \(received) bytes to receive into, \(wanted) would lose less under load: "
                + "sysctl -w net.core.rmem_max=\(wanted)")
    }
}
