import TransportKit

/// One way to break the contract, and the rule of the suite that must notice.
enum Mutation: String, CaseIterable, Sendable, CustomStringConvertible {
    // Messages.
    case losesEmptyMessages, doublesMessages, reversesBatches, letsMessagesOvertake, tearsBatches
    case takesTextForBinary, sendsTextAsBinary, hidesUnreliable, losesUnreliable, forgetsFirstFlight
    case buffersMessagesWithoutBound, endsOnOverlongSend, ignoresLimits, letsTwoReceive
    // Cancellation.
    case neverCancelsReceive, losesOnCancelledReceive, neverCancelsSend, losesOnCancelledAccept
    case failsCancelledDialOtherwise, losesOnCancelledAcceptStream, neverCancelsOpenStream
    case keepsStreamOfCancelledRead, keepsStreamOfCancelledWrite
    // The end.
    case losesCode, losesReason, losesOrigin, sendsSyntheticCodes, cutsReasonsShort, losesLastMessage, closesTwice
    case losesItsWordInSimultaneousClose, takesMessagesAfterClose, leavesReceiveWaiting, leaksSockets
    case neverNoticesSilence
    // Listening.
    case losesTarget, ignoresRoutes, acceptsBackwards, letsTwoAccept, hidesWhyDialFailed, sharesAddress
    case leavesListenerOpen, speaksWithoutClaim, ignoresClaim
    // Streams.
    case numbersStreamsTwice, losesBytes, hangsAbove64Streams, hangsAbove512Streams, buffersBytesWithoutBound
    case sharesOneWindow, ignoresStreamLimit, letsTwoRead, letsTwoWrite
    // The end of streams.
    case closesBothDirections, forgetsEmptyFinish, endsOnlyOnce, losesLastWrite, takesBytesAfterFinish
    case showsResetAsEnd, endsSocketWithStream, losesFinishedStreams

    var description: String { rawValue }

    /// The rule that must notice.
    var brokenRule: String {
        switch self {
        case .losesEmptyMessages, .doublesMessages: "messages of 0 B to 1 MiB arrive as they were sent"
        case .reversesBatches: "a batch keeps its order"
        case .letsMessagesOvertake: "control and bulk each keep their order, in both directions"
        case .tearsBatches: "the batches of many senders stay whole"
        case .takesTextForBinary: "text arrives as text"
        case .sendsTextAsBinary: "text without the capability is refused and ends nothing"
        case .hidesUnreliable: "unreliable messages arrive marked, or not at all"
        case .losesUnreliable: "without datagrams no unreliable message is lost"
        case .forgetsFirstFlight: "the first flight is the first message"
        case .buffersMessagesWithoutBound: "a receiver that stops makes the sender wait, and go on when it goes on"
        case .endsOnOverlongSend: "a message above the own limit is refused with 1009 and ends nothing"
        case .ignoresLimits: "a message above the peer's limit ends the socket with 1009"
        case .letsTwoReceive: "a second receive while one waits is misuse"
        case .neverCancelsReceive, .losesOnCancelledReceive: "a cancelled receive throws and loses nothing"
        case .neverCancelsSend: "a cancelled send has sent all of its batch or none"
        case .losesOnCancelledAccept: "a cancelled accept throws and loses no socket"
        case .failsCancelledDialOtherwise: "a cancelled dial throws or opens, and leaves nothing half open"
        case .losesOnCancelledAcceptStream: "a cancelled acceptStream throws and loses no stream"
        case .neverCancelsOpenStream: "a cancelled openStream throws, and the limit still holds"
        case .keepsStreamOfCancelledRead: "a cancelled read resets the stream"
        case .keepsStreamOfCancelledWrite: "a cancelled write resets the stream"
        case .losesCode, .losesReason, .losesOrigin: "codes and reasons travel from either end"
        case .sendsSyntheticCodes: "codes that only say what one end saw never travel"
        case .cutsReasonsShort: "a long reason is cut at a character"
        case .losesLastMessage: "the last bytes before a close arrive"
        case .closesTwice: "closing twice is harmless and says the same"
        case .losesItsWordInSimultaneousClose: "both ends may close at once"
        case .takesMessagesAfterClose: "after the end every call throws the one close"
        case .leavesReceiveWaiting: "a close ends the calls that wait, at both ends"
        case .leaksSockets: "a socket that nobody holds ends"
        case .neverNoticesSilence: "a peer that vanishes is found out"
        case .losesTarget: "a socket says what it is at both ends"
        case .ignoresRoutes: "a target without a route is refused with its code"
        case .acceptsBackwards: "sockets are accepted in the order they came"
        case .letsTwoAccept: "a second accept while one waits is misuse"
        case .hidesWhyDialFailed: "a dial to nobody fails with a typed error"
        case .sharesAddress: "an address is taken by one listener"
        case .leavesListenerOpen: "a closed listener ends accept, refuses dials and leaves its sockets alone"
        case .speaksWithoutClaim: "a dial whose claim is gone says nothing to the listener"
        case .ignoresClaim: "of two dials with one claim one opens"
        case .numbersStreamsTwice: "streams open from both ends and carry bytes both ways"
        case .losesBytes: "a long stream arrives byte for byte"
        case .hangsAbove64Streams: "100 streams run interleaved"
        case .hangsAbove512Streams: "1,000 streams run interleaved"
        case .buffersBytesWithoutBound:
            "a stream whose reader stops makes the writer wait, and go on when it goes on"
        case .sharesOneWindow: "one stream that is not read does not stop the others"
        case .ignoresStreamLimit: "openStream waits while the peer's limit is reached"
        case .letsTwoRead, .letsTwoWrite: "a second read or write while one waits is misuse"
        case .closesBothDirections: "each direction of a stream ends by itself"
        case .forgetsEmptyFinish: "a stream that ends without a byte ends"
        case .endsOnlyOnce, .losesLastWrite: "the last bytes come before the end, and the end comes every time"
        case .takesBytesAfterFinish: "a write after finish is refused"
        case .showsResetAsEnd, .endsSocketWithStream: "a reset is seen as a reset and costs nothing else"
        case .losesFinishedStreams: "a finished stream outlives the close of its socket"
        }
    }

    /// What the mutant can do.
    var capabilities: Capabilities {
        switch self {
        case .sendsTextAsBinary, .losesUnreliable: []
        default: [.streams, .datagrams, .text]
        }
    }
}
