internal import TransportKit
internal import TunnelCarrier

/// Sessions: how they begin, carry and end.
extension DoorTable {
    mutating func received(_ frame: TunnelFrame, from link: ClientLink, isDatagram: Bool, now: Instant) {
        guard let device = link.device else { return }
        guard link.phase == .proved else {
            // Replay: until the owner has shown that it is there, nothing but the first frame of message 1 is taken.
            if !isDatagram { close(.client(link), .protocolError, "enter comes first", now: now) }
            return
        }
        let key = SessionKey(device: device, session: frame.session)
        switch frame.kind {
        case .begin:
            return begin(frame, from: link, now: now)
        case .bulk where !link.hasEntered:
            return close(.client(link), .protocolError, "bulk waits for entered", now: now)
        case .control, .bulk, .unreliable:
            break
        }
        guard let session = link.sessions[key] else { return foreign(frame, key, on: .client(link), now: now) }
        guard session.isLive, let box = session.box else { return }
        if frame.isEnd { return end(session, by: .client(link), now: now) }
        guard session.fromClient.arrived(frame.cost) else {
            return close(.client(link), .protocolError, "more was sent in a session than it had credit for", now: now)
        }
        counts.framesToBox += 1
        counts.bytesToBox += frame.payload.count
        let passed = TunnelFrame(
            frame.kind, device: device, session: frame.session, payload: frame.payload.unentangled())
        if !box.outbox.put(passed, of: session.serial) { counts.framesDropped += 1 }
        wake(box)
    }

    mutating func received(_ frame: TunnelFrame, from link: BoxLink, isDatagram: Bool, now: Instant) {
        guard let device = frame.device else { return }
        guard link.phase == .proved else {
            if !isDatagram { close(.box(link), .protocolError, "a box sends no frame before linked", now: now) }
            return
        }
        let key = SessionKey(device: device, session: frame.session)
        guard let session = link.sessions[key] else { return foreign(frame, key, on: .box(link), now: now) }
        guard session.isLive, let client = session.client else { return }
        if frame.isEnd { return end(session, by: .box(link), now: now) }
        guard session.fromBox.arrived(frame.cost) else {
            return close(.box(link), .protocolError, "more was sent in a session than it had credit for", now: now)
        }
        if case .begun = session.phase {
            session.phase = .carrying
            timed[session.serial] = nil
        }
        counts.framesToClient += 1
        counts.bytesToClient += frame.payload.count
        let passed = TunnelFrame(frame.kind, session: frame.session, payload: frame.payload.unentangled())
        if !client.outbox.put(passed, of: session.serial) { counts.framesDropped += 1 }
        wake(client)
    }

    /// A frame of no session: late where the session has ended on this link, else answered with an end.
    private mutating func foreign(_ frame: TunnelFrame, _ key: SessionKey, on party: Party, now: Instant) {
        counts.framesForeign += 1
        switch frame.kind {
        case .unreliable, .begin: return
        case .control, .bulk: break
        }
        if frame.isEnd || party.link.ended.contains(key) { return }
        refuse(key, on: party, now: now)
    }

    /// Answers with an end, except in a home whose box takes no sessions: there the door says nothing (R125).
    private mutating func refuse(_ key: SessionKey, on party: Party, now: Instant) {
        if let box = party.link.home?.box, !box.takesTunnel { return }
        let device = party.leg == .box ? key.device : nil
        say(TunnelFrame.end(device: device, session: key.session).encoded(), to: party.link, now: now)
    }

    // MARK: - Begin

    mutating func begin(_ frame: TunnelFrame, from link: ClientLink, now: Instant) {
        guard let device = link.device else { return }
        let key = SessionKey(device: device, session: frame.session)
        guard link.admission != .waiting, let box = link.home?.box else {
            return refuse(key, on: .client(link), now: now)
        }
        // The name may be in use on another link of the device, of which this may be a replay.
        guard box.takesTunnel, link.sessions[key] == nil, box.sessions[key] == nil, !link.ended.contains(key) else {
            return refuse(key, on: .client(link), now: now)
        }
        guard link.sessions.count < options.sessionsPerDevice, link.phase == .proved || isRoom(forArrivalOf: link),
            reserved + reservation <= options.budget
        else {
            perform(.count("door.sessions.noRoom", 1))
            return refuse(key, on: .client(link), now: now)
        }
        let session = DoorSession(
            serial: makeSerial(), key: key, client: link, box: box, window: window, until: now + Self.answerLimit)
        guard session.fromClient.arrived(frame.cost) else { return }
        reserved += reservation
        sessions[session.serial] = session
        timed[session.serial] = session
        expect(now + Self.answerLimit)
        link.sessions[key] = session
        box.sessions[key] = session
        perform(.gauge("door.sessions", 1))
        perform(.count("door.sessions.begun", 1))
        link.outbox.open(session.serial, SendLane(session: key.session, window: link.window))
        box.outbox.open(
            session.serial, SendLane(device: device, session: key.session, window: box.window))
        let passed = TunnelFrame(
            .begin, device: device, session: frame.session, payload: frame.payload.unentangled())
        box.outbox.put(passed, of: session.serial)
        wake(box)
    }

    /// Whoever has recorded message 1s can send them again, and takes no more of the device's room than this.
    private func isRoom(forArrivalOf link: ClientLink) -> Bool {
        let others = link.home?.arrivals.values.count { $0.device == link.device && !$0.sessions.isEmpty } ?? 0
        return others < Self.arrivalSessions
    }

    // MARK: - Credit

    mutating func credit(_ key: SessionKey, _ total: UInt64, from link: DoorLink) {
        guard let session = link.sessions[key] else { return }
        link.outbox.credit(total, of: session.serial)
        wake(link)
    }

    /// A wire has taken frames: whoever sent them may send more.
    mutating func giveBack(_ taken: [LinkOutbox<UInt64>.Taken], of party: Party, now: Instant) {
        for taken in taken {
            guard let session = sessions[taken.key], session.isLive, let client = session.client, let box = session.box
            else { continue }
            let key = session.key
            switch party {
            case .box:
                guard let total = session.fromClient.passedOn(taken.cost) else { continue }
                say(.credit(device: nil, session: key.session, total: total), to: client, now: now)
            case .client:
                guard let total = session.fromBox.passedOn(taken.cost) else { continue }
                say(.credit(device: key.device, session: key.session, total: total), to: box, now: now)
            }
        }
    }

    // MARK: - End

    /// One end has ended a session, or has left: what it had sent goes to the other end, and then the end does.
    mutating func end(_ session: DoorSession, by party: Party, now: Instant) {
        guard session.isLive else { return }
        let other: DoorLink?
        switch party {
        case .client: other = session.box
        case .box: other = session.client
        }
        detach(session, from: party.link)
        guard let other else { return forget(session) }
        // Where nothing has gone yet, the other end knows nothing that could end.
        guard party.leg == .box || other.outbox.hasSent(session.serial) else {
            detach(session, from: other)
            return forget(session)
        }
        other.outbox.finish(session.serial)
        session.phase = .ending(until: now + Self.answerLimit)
        timed[session.serial] = session
        expect(now + Self.answerLimit)
        other.endings.append(session)
        wake(other)
    }

    /// Ends a session at both ends, dropping what waits.
    mutating func abort(_ session: DoorSession, now: Instant) {
        for link in [session.client as DoorLink?, session.box as DoorLink?] {
            guard let link else { continue }
            let mustTell = link is ClientLink || link.outbox.hasSent(session.serial)
            detach(session, from: link)
            let device = link is BoxLink ? session.key.device : nil
            if mustTell {
                say(TunnelFrame.end(device: device, session: session.key.session).encoded(), to: link, now: now)
            }
        }
        forget(session)
    }

    /// Sessions whose end has gone are over.
    mutating func settleEndings(of link: DoorLink) {
        for session in link.endings where !link.outbox.contains(session.serial) {
            detach(session, from: link)
            forget(session)
        }
        link.endings.removeAll { $0.phase == .ended }
    }

    /// A link has no part in a session any more.
    func detach(_ session: DoorSession, from link: DoorLink) {
        if link.sessions[session.key] === session {
            link.sessions[session.key] = nil
            link.ended.insert(session.key)
        }
        link.outbox.remove(session.serial)
        if session.client === link { session.client = nil }
        if session.box === link { session.box = nil }
    }

    mutating func forget(_ session: DoorSession) {
        guard session.phase != .ended else { return }
        session.phase = .ended
        sessions[session.serial] = nil
        timed[session.serial] = nil
        reserved -= reservation
        perform(.gauge("door.sessions", -1))
    }
}

extension Bytes {
    /// The bytes by themselves, with room for a header, where they are a small part of something larger: what waits must not
    /// keep alive more than was counted.
    fileprivate func unentangled() -> Bytes {
        let room = headroom + count + tailroom
        guard room > count + count / 4 + 256 else { return self }
        return withUnsafeBytes { Bytes(copying: $0, headroom: 25) }
    }
}
