internal import TransportKit

/// The contract of ``/TransportKit/Carrier`` as a list of checks.
///
/// Every carrier passes it, ours and yours. With Swift Testing it takes one test:
///
/// ```swift
/// @Test(arguments: CarrierConformance.checks(for: myCarrier))
/// func `My carrier keeps the contract`(check: CarrierConformance.Check) async throws {
///     try await check.run()
/// }
/// ```
///
/// A check throws a ``ConformanceFailure`` that says which rule was broken and what was seen, and never hangs. What the sockets
/// of its sessions can do is the affair of ``TransportConformance``.
public enum CarrierConformance {
    /// One rule, for one carrier.
    public struct Check: Sendable, CustomStringConvertible {
        /// The rule, as a sentence.
        public let name: String
        /// What must keep it.
        public let subject: CarrierUnderTest
        fileprivate let body: @Sendable (CarrierRun) async throws -> Void

        /// Sets the carrier up, tries the rule, and takes everything down again.
        public func run() async throws {
            let run = CarrierRun(subject: subject, rule: name)
            await CarrierConformance.gate.enter()
            defer { CarrierConformance.gate.leave() }
            do {
                try await body(run)
            } catch let failure as ConformanceFailure {
                throw failure
            } catch {
                throw ConformanceFailure(subject: subject.name, rule: name, what: "an unexpected error: \(error)")
            }
        }

        /// The carrier and the rule.
        public var description: String { "\(subject.name): \(name)" }
    }

    /// The checks that apply to a carrier.
    ///
    /// - Parameter subject: the carrier.
    public static func checks(for subject: CarrierUnderTest) -> [Check] {
        rules.filter { $0.isForMany.map { $0 == subject.hasRoomForMany } ?? true }
            .map { Check(name: $0.name, subject: subject, body: $0.body) }
    }

    private static let gate = Gate(width: 6)

    private struct Rule: Sendable {
        let name: String
        /// Whether it applies only where there is room for several sessions, or only where there is none.
        let isForMany: Bool?
        let body: @Sendable (CarrierRun) async throws -> Void

        init(_ name: String, isForMany: Bool? = nil, _ body: @escaping @Sendable (CarrierRun) async throws -> Void) {
            self.name = name
            self.isForMany = isForMany
            self.body = body
        }
    }

    private static let rules = [
        Rule("making a carrier opens nothing") { try await $0.opensNothing() },
        Rule("a session talks both ways") { try await $0.talks() },
        Rule("the first flight is the first message") { try await $0.firstFlight() },
        Rule("nothing is left of the last session") { try await $0.nothingLeft() },
        Rule("a session can do no more than the carrier says, and is protected no less") {
            try await $0.declared()
        },
        Rule("the state follows the sessions") { try await $0.states() },
        Rule("whoever looks gets the latest state first, and the end last") { try await $0.watching() },
        Rule("a cancelled open throws, and the next one opens") { try await $0.cancelledOpen() },
        Rule("an open waits out a silence") { try await $0.waitingOpen() },
        Rule("a wake loses no open, and the next one opens too") { try await $0.wake() },
        Rule("sessions stand beside each other", isForMany: true) { try await $0.manySessions() },
        Rule("a second session displaces the first", isForMany: false) { try await $0.displaced() },
        Rule("a close ends the sessions with its code and reason") { try await $0.closeSessions() },
        Rule("after a close every open throws it, and closing again is harmless") { try await $0.closedForGood() },
        Rule("a close ends an open that waits") { try await $0.closeWhileOpening() },
        Rule("a session that nobody holds ends") { try await $0.droppedSession() },
    ]
}
