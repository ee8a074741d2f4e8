internal import CLinux
internal import Synchronization
public import TransportKit

/// Turns hosts into addresses, as the machine is configured to (`/etc/hosts`, DNS, whatever nsswitch.conf names).
public enum Resolver {
    /// A function that looks a name up and may block.
    package typealias Lookup = @Sendable (_ name: String, _ port: UInt16) throws(TransportError) -> [SocketAddress]

    /// Looks a host up.
    ///
    /// A written-out address needs no lookup. Otherwise the system is asked on a thread of its own, every time anew (B17),
    /// and IPv6 and IPv4 addresses are interleaved, the system's favourite first (RFC 8305 §4). While the resolver gives
    /// no answer, a name has the addresses that it had last, for a day at most.
    ///
    /// - Throws: ``/TransportKit/TransportError/Code/nameNotFound`` where there is no address, ``/TransportKit/TransportError/Code/timedOut`` after
    ///   `timeout`, ``/TransportKit/TransportError/Code/cancelled`` as soon as the task is cancelled.
    public static func addresses(
        of host: Host, port: UInt16, timeout: Duration = .seconds(10)
    ) async throws(TransportError) -> [SocketAddress] {
        try await addresses(
            of: host, port: port, timeout: timeout, time: MachineTime(), known: .shared, lookup: systemLookup)
    }

    /// Looks up the one address to bind or to connect to: the first that ``addresses(of:port:timeout:)`` finds.
    public static func address(of host: Host, port: UInt16) async throws(TransportError) -> SocketAddress {
        // A lookup that finds none has thrown.
        try await addresses(of: host, port: port)[0]
    }

    /// How long the resolver may take where there is something to go on with.
    private static let patience = Duration.seconds(2)
    /// EAI_AGAIN: the name may exist, and nobody could say so.
    private static let temporaryFailure: UInt64 = 3

    /// Looks a host up by means of `lookup`, in the time of `time`.
    package static func addresses(
        of host: Host, port: UInt16, timeout: Duration, time: any TimeSource,
        known: KnownAddresses = KnownAddresses(), lookup: @escaping Lookup
    ) async throws(TransportError) -> [SocketAddress] {
        switch host {
        case .ipv4(let address):
            return [SocketAddress(.ipv4(address), port: port)]
        case .ipv6(let address, let scope):
            return [SocketAddress(.ipv6(address, scopeID: try scopeID(scope)), port: port)]
        case .name(let name):
            let doing = "looking up \(name)"
            let last = known.last(name, port: port, at: time.now())
            let limit = last == nil ? timeout : min(timeout, patience)
            do throws(TransportError) {
                let found = try await withTimeout(limit, time: time, doing: doing) {
                    () async throws(TransportError) in
                    try await onThread(doing: doing) { () throws(TransportError) in try lookup(name, port) }
                }
                let addresses = interleaved(found)
                guard !addresses.isEmpty else { throw TransportError(.nameNotFound, "\(name) has no address") }
                known.note(name, addresses, at: time.now())
                return addresses
            } catch {
                guard let last, error.code == .timedOut || error.number == temporaryFailure else { throw error }
                return last
            }
        }
    }

    /// The addresses without doubles, families by turns, beginning with that of the first.
    package static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        var seen: Set<SocketAddress> = []
        let unique = addresses.filter { seen.insert($0).inserted }
        guard let first = unique.first else { return [] }
        let preferred = unique.filter { $0.isIPv6 == first.isIPv6 }
        let others = unique.filter { $0.isIPv6 != first.isIPv6 }
        return (0..<max(preferred.count, others.count)).flatMap { index in
            [preferred, others].compactMap { $0.indices.contains(index) ? $0[index] : nil }
        }
    }

    private static func scopeID(_ scope: String?) throws(TransportError) -> UInt32 {
        guard let scope else { return 0 }
        if let number = UInt32(scope) { return number }
        let number = unsafe scope.withCString { unsafe tk_interface_index($0) }
        guard number > 0 else { throw TransportError(.unreachable, "there is no network interface \(scope)") }
        return number
    }

    // MARK: - The system

    private static let systemLookup: Lookup = { name, port throws(TransportError) in
        var room = Array(repeating: tk_address(), count: 64)
        let count = unsafe name.withCString { unsafe tk_resolve($0, port, &room, Int32(room.count)) }
        guard count >= 0 else {
            let words = unsafe String(cString: tk_resolve_error(count))
            throw TransportError(.nameNotFound, "looking up \(name): \(words)", number: UInt64(count.magnitude))
        }
        return room.prefix(Int(count)).compactMap { SocketAddress($0) }
    }

    private static let lookupsRunning = Atomic(0)
    /// A resolver that has gone silent must not fill the process with threads.
    private static let lookupLimit = 64

    private static func onThread(
        doing: String, _ work: @escaping @Sendable () throws(TransportError) -> [SocketAddress]
    ) async throws(TransportError) -> [SocketAddress] {
        guard lookupsRunning.add(1, ordering: .relaxed).newValue <= lookupLimit else {
            lookupsRunning.subtract(1, ordering: .relaxed)
            throw TransportError(.resources, "\(doing): \(lookupLimit) lookups are waiting for the resolver already")
        }
        let answer = Answer()
        let started = startThread(named: "resolver") {
            let result = Result(catching: work)
            answer.result.withLock { $0 = result }
            answer.ready.signal()
            lookupsRunning.subtract(1, ordering: .relaxed)
        }
        guard started == 0 else {
            lookupsRunning.subtract(1, ordering: .relaxed)
            throw TransportError(errno: started, doing: doing)
        }
        // The thread cannot be stopped; whoever gives up leaves it its answer.
        guard await answer.ready.wait(), let result = answer.result.withLock({ $0 }) else {
            throw TransportError(.cancelled, "\(doing) was cancelled")
        }
        return try result.get()
    }

    private final class Answer: Sendable {
        let ready = Signal()
        let result = Mutex<Result<[SocketAddress], TransportError>?>(nil)
    }
}
