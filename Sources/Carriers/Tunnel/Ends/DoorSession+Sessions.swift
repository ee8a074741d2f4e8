internal import TransportKit

extension DoorSession {
    /// Begins a session of this client: its first message goes as soon as message 2 is in (R78).
    mutating func begin(_ session: TunnelSessionID, first: Bytes) {
        let address = TunnelAddress(session: session)
        flows[address] = TunnelFlow(window: end.window)
        if isGreeted { openLane(address) }
        send(TunnelFrame(.begin, session: session, payload: first))
    }

    /// Sends a message of a session, in its turn.
    mutating func send(_ payload: Bytes, _ delivery: Delivery, of address: TunnelAddress) {
        let kind: TunnelFrame.Kind =
            switch delivery {
            case .control: .control
            case .bulk: .bulk
            case .unreliable: .unreliable
            }
        send(TunnelFrame(kind, device: address.device, session: address.session, payload: payload))
    }

    private mutating func send(_ frame: TunnelFrame) {
        let address = TunnelAddress(of: frame)
        let mayGo =
            switch frame.kind {
            case .begin, .control: isGreeted
            case .bulk, .unreliable: stands
            }
        if mayGo {
            outbox.put(frame, of: address)
        } else if flows[address]?.hold(frame) == false {
            dropped += 1
        }
    }

    /// Hands over what was kept and may be sent by now.
    mutating func releaseEarly() {
        for address in flows.keys {
            for frame in flows[address]?.release() ?? [] { send(frame) }
        }
    }

    /// How much of a session waits to be sent: bulk, or all else.
    func waitingCost(_ address: TunnelAddress, bulk: Bool) -> UInt64 {
        let ofBulk = outbox.waitingBulkCost(of: address)
        let early = flows[address]?.earlyCost(bulk: bulk) ?? 0
        return early + (bulk ? ofBulk : outbox.waitingCost(of: address) - ofBulk)
    }

    /// Takes what has arrived for a session, and gives the credit back.
    mutating func take(_ address: TunnelAddress) -> [Message] {
        guard let (messages, total) = flows[address]?.take() else { return [] }
        if let total { say(.credit(device: address.device, session: address.session, total: total)) }
        return messages
    }

    /// Ends a session from here: what waits is dropped, and the door hears of it if it can know of the session.
    ///
    /// - Returns: what had arrived and was not taken.
    @discardableResult
    mutating func abandon(_ address: TunnelAddress) -> [Message] {
        guard let flow = flows[address] else { return [] }
        let isKnown = end.sends.isBoxLeg || outbox.hasSent(address)
        guard isGreeted, isKnown else {
            forget(address)
            return flow.arrived
        }
        // The lane stays until its end has gone.
        outbox.abandon(address)
        forgetFlow(address)
        return flow.arrived
    }
}
