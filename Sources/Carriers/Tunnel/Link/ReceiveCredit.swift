internal import TransportKit

/// How much one session may still send in one direction, at the hop that receives it.
package struct ReceiveCredit: Sendable, Hashable {
    private let window: UInt64
    private var arrivedTotal: UInt64 = 0
    private var passedTotal: UInt64 = 0
    /// What the other end was told it may have sent altogether.
    private var announced: UInt64

    /// Begins with what the handshake said.
    package init(window: UInt32) {
        self.window = UInt64(window)
        announced = UInt64(window)
    }

    /// What has arrived and was not passed on.
    package var held: UInt64 { arrivedTotal - passedTotal }

    /// A frame has arrived.
    ///
    /// - Returns: false where the peer was not given as much: the link ends with 1002 then.
    package mutating func arrived(_ cost: UInt64) -> Bool {
        guard cost <= announced - arrivedTotal else { return false }
        arrivedTotal += cost
        return true
    }

    /// A frame was passed on, or taken by whoever it was for.
    ///
    /// - Returns: the new total to announce, once half of the window has been passed on since the last.
    package mutating func passedOn(_ cost: UInt64) -> UInt64? {
        precondition(cost <= held, "more was passed on than has arrived")
        passedTotal += cost
        let total = min(passedTotal + window, Varint.max)
        guard total - announced >= window / 2 else { return nil }
        announced = total
        return total
    }
}
