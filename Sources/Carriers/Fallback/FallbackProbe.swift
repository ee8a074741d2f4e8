internal import TransportKit

/// A session of the primary that is tried while the secondary carries. Confined to its carrier.
final class FallbackProbe {
    let id: UInt64
    /// Opens it and waits until something arrives, which it returns, or until it ends.
    var task: Task<[Message], Never>?
    var socket: (any Socket)?
    /// Lets it go where nobody takes it.
    var expiry: Task<Void, Never>?

    init(_ id: UInt64) {
        self.id = id
    }
}
