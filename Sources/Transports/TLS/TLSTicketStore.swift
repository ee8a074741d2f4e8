internal import Synchronization
package import TransportKit

/// The tickets with which a client resumes TLS (R26), in memory.
///
/// A ticket belongs to one destination, reached under one set of rules for one protocol, and is given out once
/// (RFC 8446 §C.4). With other pins, another trust file or another name there is none (B63).
package final class TLSTicketStore: Sendable {
    /// The store that dials use unless they bring their own.
    package static let shared = TLSTicketStore()

    /// What a ticket is good for.
    package struct Key: Hashable, Sendable {
        /// Who was dialled.
        package let host: Host
        /// The port that was dialled.
        package let port: UInt16
        /// The ALPN names that were offered.
        package let protocols: [String]
        /// Whether it was over QUIC.
        package let isQUIC: Bool
        /// The rules.
        package let security: ClientSecurity
        /// SHA-256 over what the rules' files held.
        package let fingerprint: Bytes

        /// Names a destination under its rules.
        package init(
            host: Host, port: UInt16, protocols: [String], isQUIC: Bool, security: ClientSecurity, fingerprint: Bytes
        ) {
            self.host = host
            self.port = port
            self.protocols = protocols
            self.isQUIC = isQUIC
            self.security = security
            self.fingerprint = fingerprint
        }
    }

    /// A ticket as it is kept and given out.
    package struct Ticket: Sendable {
        /// What GnuTLS resumes the session from.
        package let data: Bytes
        /// What the service said of itself, for those who want to send it early data; nil where the ticket allows none.
        package let early: Bytes?
        /// When it came: by a clock that was set back it is no ticket.
        let notBefore: WallTime
        let notAfter: WallTime
    }

    private struct State {
        var tickets: [Key: [Ticket]] = [:]
        /// From the destination that was used longest ago to the latest.
        var order: [Key] = []
    }

    private static let ticketsPerKey = 4
    private let maxDestinations: Int
    private let state = Mutex(State())

    /// Makes an empty store that forgets the destination used longest ago when it has more than `maxDestinations`.
    package init(maxDestinations: Int = 256) {
        precondition(maxDestinations > 0, "a store for nothing keeps nothing")
        self.maxDestinations = maxDestinations
    }

    /// How many tickets are kept.
    package var count: Int { state.withLock { $0.tickets.values.reduce(0) { $0 + $1.count } } }

    /// Forgets everything.
    package func removeAll() {
        state.withLock { $0 = State() }
    }

    /// Keeps a ticket until `notAfter`; of several for one destination the latest few.
    package func keep(
        _ data: Bytes, for key: Key, notBefore: WallTime = WallTime(seconds: .min), notAfter: WallTime,
        early: Bytes? = nil
    ) {
        state.withLock { state in
            state.order.removeAll { $0 == key }
            state.order.append(key)
            var tickets = state.tickets[key] ?? []
            tickets.append(Ticket(data: data, early: early, notBefore: notBefore, notAfter: notAfter))
            state.tickets[key] = tickets.suffix(Self.ticketsPerKey)
            if state.order.count > maxDestinations { state.tickets[state.order.removeFirst()] = nil }
        }
    }

    /// Takes the latest ticket that is still good out of the store.
    package func take(_ key: Key, now: WallTime) -> Ticket? {
        state.withLock { state in
            var tickets = (state.tickets[key] ?? []).filter { now >= $0.notBefore && now < $0.notAfter }
            let ticket = tickets.popLast()
            state.tickets[key] = tickets.isEmpty ? nil : tickets
            if tickets.isEmpty { state.order.removeAll { $0 == key } }
            return ticket
        }
    }
}
