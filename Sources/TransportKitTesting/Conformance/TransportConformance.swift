internal import TransportKit

/// The contract of ``/TransportKit/Transport``, `Socket`, `Stream` and `Listener` as a list of checks.
///
/// Every transport passes it, ours and yours. With Swift Testing it takes one test:
///
/// ```swift
/// @Test(arguments: TransportConformance.checks(for: myTransport))
/// func `My transport keeps the contract`(check: TransportConformance.Check) async throws {
///     try await check.run()
/// }
/// ```
///
/// A check throws a ``ConformanceFailure`` that says which rule was broken and what was seen. It never hangs: a step
/// that outlasts ``TransportUnderTest/patience`` is a failure as well. Checks share nothing and may run side by side; at
/// most six do, however many a test library starts, because a starved check would measure the machine.
public enum TransportConformance {
    /// One rule, for one transport.
    public struct Check: Sendable, CustomStringConvertible {
        /// The rule, as a sentence.
        public let name: String
        /// What must keep it.
        public let subject: TransportUnderTest
        fileprivate let body: @Sendable (CheckRun) async throws -> Void

        /// Sets the transport up, tries the rule, and takes everything down again.
        public func run() async throws {
            let run = CheckRun(subject: subject, rule: name)
            await TransportConformance.gate.enter()
            defer { TransportConformance.gate.leave() }
            do {
                try await body(run)
            } catch let failure as ConformanceFailure {
                throw failure
            } catch {
                throw ConformanceFailure(subject: subject.name, rule: name, what: "an unexpected error: \(error)")
            }
        }

        /// The transport and the rule.
        public var description: String { "\(subject.name): \(name)" }
    }

    /// The checks that apply to a transport.
    public static func checks(for subject: TransportUnderTest) -> [Check] {
        rules.filter { $0.applies(subject) }.map { Check(name: $0.name, subject: subject, body: $0.body) }
    }

    private static let gate = Gate(width: 6)

    private struct Rule: Sendable {
        let name: String
        let applies: @Sendable (TransportUnderTest) -> Bool
        let body: @Sendable (CheckRun) async throws -> Void

        init(
            _ name: String, if applies: @escaping @Sendable (TransportUnderTest) -> Bool = { _ in true },
            _ body: @escaping @Sendable (CheckRun) async throws -> Void
        ) {
            self.name = name
            self.applies = applies
            self.body = body
        }
    }

    private static let hasStreams: @Sendable (TransportUnderTest) -> Bool = { $0.capabilities.contains(.streams) }

    private static let rules: [Rule] =
        messageRules + cancellationRules + closingRules + listenerRules + streamRules + streamEndRules

    private static let messageRules = [
        Rule("messages of 0 B to 1 MiB arrive as they were sent") { try await $0.messageSizes() },
        Rule("a batch keeps its order") { try await $0.batchOrder() },
        Rule("control and bulk each keep their order, in both directions") { try await $0.deliveryOrder() },
        Rule("the batches of many senders stay whole") { try await $0.manySenders() },
        Rule("text arrives as text", if: { $0.capabilities.contains(.text) }) { try await $0.text() },
        Rule("text without the capability is refused and ends nothing", if: { !$0.capabilities.contains(.text) }) {
            try await $0.textRefused()
        },
        Rule("unreliable messages arrive marked, or not at all", if: { $0.capabilities.contains(.datagrams) }) {
            try await $0.datagrams()
        },
        Rule("without datagrams no unreliable message is lost", if: { !$0.capabilities.contains(.datagrams) }) {
            try await $0.unreliableWithoutDatagrams()
        },
        Rule("the first flight is the first message") { try await $0.firstFlight() },
        Rule("a receiver that stops makes the sender wait, and go on when it goes on") {
            try await $0.messageBackPressure()
        },
        Rule("a message above the own limit is refused with 1009 and ends nothing") { try await $0.overlongSend() },
        Rule("a message above the peer's limit ends the socket with 1009") { try await $0.overlongReceive() },
        Rule("a second receive while one waits is misuse") { try await $0.secondReceive() },
    ]

    private static let cancellationRules = [
        Rule("a cancelled receive throws and loses nothing") { try await $0.cancelledReceive() },
        Rule("a cancelled send has sent all of its batch or none") { try await $0.cancelledSend() },
        Rule("a cancelled accept throws and loses no socket") { try await $0.cancelledAccept() },
        Rule("a cancelled dial throws or opens, and leaves nothing half open") { try await $0.cancelledDial() },
        Rule("a cancelled acceptStream throws and loses no stream", if: hasStreams) {
            try await $0.cancelledAcceptStream()
        },
        Rule("a cancelled openStream throws, and the limit still holds", if: hasStreams) {
            try await $0.cancelledOpenStream()
        },
        Rule("a cancelled read resets the stream", if: hasStreams) { try await $0.cancelledRead() },
        Rule("a cancelled write resets the stream", if: hasStreams) { try await $0.cancelledWrite() },
    ]

    private static let closingRules = [
        Rule("codes and reasons travel from either end") { try await $0.closeCodes() },
        Rule("codes that only say what one end saw never travel") { try await $0.syntheticCodes() },
        Rule("a long reason is cut at a character") { try await $0.longReason() },
        Rule("the last bytes before a close arrive") { try await $0.lastBytes() },
        Rule("closing twice is harmless and says the same") { try await $0.doubleClose() },
        Rule("both ends may close at once") { try await $0.simultaneousClose() },
        Rule("after the end every call throws the one close") { try await $0.useAfterClose() },
        Rule("a close ends the calls that wait, at both ends") { try await $0.closeWhileWaiting() },
        Rule("a socket that nobody holds ends") { try await $0.droppedSocket() },
        Rule("a peer that vanishes is found out", if: { $0.canVanish }) { try await $0.vanishedPeer() },
    ]

    private static let listenerRules = [
        Rule("a socket says what it is at both ends") { try await $0.socketInfo() },
        Rule("a target without a route is refused with its code") { try await $0.refusedRoute() },
        Rule("sockets are accepted in the order they came") { try await $0.acceptOrder() },
        Rule("a second accept while one waits is misuse") { try await $0.secondAccept() },
        Rule("a dial to nobody fails with a typed error") { try await $0.deadEndpoint() },
        Rule("an address is taken by one listener") { try await $0.addressInUse() },
        Rule("a closed listener ends accept, refuses dials and leaves its sockets alone") {
            try await $0.listenerClose()
        },
        Rule("a dial whose claim is gone says nothing to the listener") { try await $0.claimGone() },
        Rule("of two dials with one claim one opens") { try await $0.claimRace() },
    ]

    private static let streamRules = [
        Rule("streams open from both ends and carry bytes both ways", if: hasStreams) {
            try await $0.streamsBothWays()
        },
        Rule("a long stream arrives byte for byte", if: hasStreams) { try await $0.longStream() },
        Rule("100 streams run interleaved", if: hasStreams) { try await $0.manyStreams(100) },
        Rule("1,000 streams run interleaved", if: hasStreams) { try await $0.manyStreams(1000) },
        Rule("a stream whose reader stops makes the writer wait, and go on when it goes on", if: hasStreams) {
            try await $0.streamBackPressure()
        },
        Rule("one stream that is not read does not stop the others", if: hasStreams) { try await $0.slowStream() },
        Rule("openStream waits while the peer's limit is reached", if: hasStreams) { try await $0.streamLimit() },
        Rule("a second read or write while one waits is misuse", if: hasStreams) { try await $0.secondReadOrWrite() },
    ]

    private static let streamEndRules = [
        Rule("each direction of a stream ends by itself", if: hasStreams) { try await $0.halfClose() },
        Rule("a stream that ends without a byte ends", if: hasStreams) { try await $0.emptyStream() },
        Rule("the last bytes come before the end, and the end comes every time", if: hasStreams) {
            try await $0.endEveryTime()
        },
        Rule("a write after finish is refused", if: hasStreams) { try await $0.writeAfterFinish() },
        Rule("a reset is seen as a reset and costs nothing else", if: hasStreams) { try await $0.resetStream() },
        Rule("a finished stream outlives the close of its socket", if: hasStreams) {
            try await $0.finishedStreamOutlivesClose()
        },
    ]
}

/// A rule that a transport broke.
public struct ConformanceFailure: Error, Sendable, CustomStringConvertible {
    /// The transport.
    public let subject: String
    /// The rule.
    public let rule: String
    /// What was seen.
    public let what: String

    /// The whole story in one line.
    public var description: String { "\(subject) breaks the rule '\(rule)': \(what)" }
}
