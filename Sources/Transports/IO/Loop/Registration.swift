/// What a descriptor is ready for, or is watched for.
package struct Readiness: OptionSet, Sendable {
    /// The bits as epoll has them.
    package let rawValue: UInt32

    /// Makes a set from its bits.
    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// A read would not block.
    package static let readable = Readiness(rawValue: 0x001)
    /// A write would not block.
    package static let writable = Readiness(rawValue: 0x004)
    /// The descriptor has an error to tell. Always watched for.
    package static let failed = Readiness(rawValue: 0x008)
    /// Both directions have ended. Always watched for.
    package static let hungUp = Readiness(rawValue: 0x010)
    /// The peer has ended its direction.
    package static let peerFinished = Readiness(rawValue: 0x2000)
}

/// Whoever owns a registered descriptor.
package protocol DescriptorHandler: AnyObject {
    /// The descriptor is ready. Called on the loop, again in every turn while it stays so, or, if it was registered as
    /// edge-triggered, once each time it becomes so.
    func ready(_ readiness: Readiness)

    /// The loop has been shut down, and the descriptor is not watched any more. Called on the loop, once.
    func loopStopped()
}

/// A descriptor's place in its loop, confined to the loop's thread.
package final class Registration {
    private let core: LoopCore
    private let descriptor: Int32
    private let token: UInt64
    private let edgeTriggered: Bool
    private var interest: Readiness
    private var isCancelled = false

    init(core: LoopCore, descriptor: Int32, token: UInt64, interest: Readiness, edgeTriggered: Bool) {
        self.core = core
        self.descriptor = descriptor
        self.token = token
        self.interest = interest
        self.edgeTriggered = edgeTriggered
    }

    /// Watches for something else from now on.
    package func watch(_ interest: Readiness) {
        guard !isCancelled, interest != self.interest else { return }
        self.interest = interest
        core.change(descriptor, interest: interest, edgeTriggered: edgeTriggered, token: token)
    }

    /// Ends the watch; the handler is not called any more. A second call does nothing.
    package func cancel() {
        guard !isCancelled else { return }
        isCancelled = true
        core.unregister(descriptor, token: token)
    }
}
