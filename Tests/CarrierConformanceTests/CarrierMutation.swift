/// One way to break the contract of carriers, and the rule of the suite that must notice.
enum CarrierMutation: String, CaseIterable, Sendable, CustomStringConvertible {
    case opensEarly, mutesSessions, forgetsFirstFlight, doublesFirstFlight, handsOutTheSameAgain
    case hidesCapabilities, overstatesProtection, showsNoState, neverEndsItsStates
    case neverCancelsOpen, failsCancelledOpenOtherwise, givesUpInSilence, failsOpensOnWake
    case endsOtherSessions, neverDisplaces, leavesSessions, losesReason, opensAfterClose, leavesOpensWaiting
    case keepsSessions

    var description: String { rawValue }

    /// The rule that must notice.
    var brokenRule: String {
        switch self {
        case .opensEarly: "making a carrier opens nothing"
        case .mutesSessions: "a session talks both ways"
        case .forgetsFirstFlight, .doublesFirstFlight: "the first flight is the first message"
        case .handsOutTheSameAgain: "nothing is left of the last session"
        case .hidesCapabilities, .overstatesProtection:
            "a session can do no more than the carrier says, and is protected no less"
        case .showsNoState: "the state follows the sessions"
        case .neverEndsItsStates: "whoever looks gets the latest state first, and the end last"
        case .neverCancelsOpen, .failsCancelledOpenOtherwise: "a cancelled open throws, and the next one opens"
        case .givesUpInSilence: "an open waits out a silence"
        case .failsOpensOnWake: "a wake loses no open, and the next one opens too"
        case .endsOtherSessions: "sessions stand beside each other"
        case .neverDisplaces: "a second session displaces the first"
        case .leavesSessions, .losesReason: "a close ends the sessions with its code and reason"
        case .opensAfterClose: "after a close every open throws it, and closing again is harmless"
        case .leavesOpensWaiting: "a close ends an open that waits"
        case .keepsSessions: "a session that nobody holds ends"
        }
    }
}
