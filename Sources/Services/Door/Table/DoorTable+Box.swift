internal import NoiseCarrier
internal import TransportKit
internal import TunnelCarrier

/// What boxes say: who belongs to a home, and who else may come.
extension DoorTable {
    mutating func received(_ control: DoorControl, from link: BoxLink, now: Instant) {
        switch (control, link.phase) {
        case (_, .silent), (_, .closed), (.unknown, .greeted), (.unknown, .proved):
            return
        case (.roster(let keys, let more), .greeted), (.roster(let keys, let more), .proved):
            roster(keys, more: more, from: link, now: now)
        case (.admit, .greeted), (.revoke, .greeted), (.credit, .greeted):
            close(.box(link), .protocolError, "a roster comes first", now: now)
        case (.admit(let keys), .proved):
            guard link.parts == nil else { return interrupted(link, now: now) }
            admit(keys, from: link, now: now)
        case (.revoke(let keys), .proved):
            guard link.parts == nil else { return interrupted(link, now: now) }
            revoke(keys, from: link, now: now)
        case (.expect(let hash, let seconds), .greeted), (.expect(let hash, let seconds), .proved):
            expectPairing(hash, until: now + .seconds(Int64(seconds)), from: link, now: now)
        case (.forget(let hash), .greeted), (.forget(let hash), .proved):
            link.expected.removeAll { $0.hash == hash }
            judgePaired(at: link, now: now)
        case (.credit(let device, let session, let total), .proved):
            guard let device else { return }
            credit(SessionKey(device: device, session: session), total, from: link)
        case (.check(let nonce), .greeted), (.check(let nonce), .proved):
            // B40: the table that routes is what answers.
            guard link.home?.box === link else {
                return close(.box(link), .nobodyThere, "the door does not route by this link", now: now)
            }
            say(.here(nonce: nonce), to: link, now: now)
        case (.enter, _), (.entered, _), (.box, _), (.linked, _), (.here, _):
            close(.box(link), .protocolError, "a box does not say this", now: now)
        }
    }

    private mutating func interrupted(_ link: BoxLink, now: Instant) {
        close(.box(link), .protocolError, "a roster in parts is not interrupted", now: now)
    }

    private mutating func roster(_ keys: DeviceKeys, more: Bool, from link: BoxLink, now: Instant) {
        var parts: Set<DeviceID> = []
        swap(&parts, &link.partsOrEmpty)
        for key in keys.keys { parts.insert(DeviceID(of: key)) }
        guard parts.count <= options.devices else {
            return close(.box(link), .policy, "the door takes \(options.devices) devices of a home", now: now)
        }
        if more {
            link.parts = parts
            if link.deadline == nil { link.deadline = now + Self.handshakeLimit }
            link.deadline.map { expect($0) }
            return
        }
        link.parts = nil
        link.deadline = nil
        link.roster = parts
        if link.phase == .greeted {
            linked(link, now: now)
        } else {
            judgeAll(at: link, now: now)
        }
    }

    /// The roster is whole: the home is served over this link, and over no older one (R126).
    private mutating func linked(_ link: BoxLink, now: Instant) {
        guard let home = link.home else { return }
        link.phase = .proved
        unproved -= 1
        home.boxArrivals -= 1
        let older = home.box
        home.box = link
        if let older {
            perform(.count("door.displaced", 1))
            close(.box(older), .displaced, "a newer link of this box is there", now: now)
        }
        directory.linked(home.id)
        perform(.log(.info, "the box of \(home.name) has linked, with \(link.roster.count) devices"))
        say(.linked, to: link, now: now)
        for client in home.allClients where judge(client, at: link, now: now) { tell(client, of: link, now: now) }
    }

    private mutating func admit(_ keys: DeviceKeys, from link: BoxLink, now: Instant) {
        for key in keys.keys { link.roster.insert(DeviceID(of: key)) }
        guard link.roster.count <= options.devices else {
            return close(.box(link), .policy, "the door takes \(options.devices) devices of a home", now: now)
        }
        judgeAll(at: link, now: now)
    }

    /// R124: a device that has left the home has left the door, however it came in.
    private mutating func revoke(_ keys: DeviceKeys, from link: BoxLink, now: Instant) {
        let revoked = Set(keys.keys.map { DeviceID(of: $0) })
        link.roster.subtract(revoked)
        guard link.home?.box === link, let home = link.home else { return }
        for client in home.allClients where client.device.map({ revoked.contains($0) }) ?? false {
            perform(.count("door.revoked", 1))
            close(.client(client), .refused, "refused", now: now)
        }
    }

    private mutating func expectPairing(_ hash: PairingHash, until: Instant, from link: BoxLink, now: Instant) {
        link.expected.removeAll { $0.hash == hash }
        link.expected.append(BoxLink.Expectation(hash: hash, until: until))
        expect(until)
        guard link.expected.count > options.pairingCodes else { return }
        link.expected.removeFirst()
        judgePaired(at: link, now: now)
    }

    /// Whoever is in by a code that is no longer expected, and was not admitted, has to go.
    mutating func judgePaired(at link: BoxLink, now: Instant) {
        guard let home = link.home, home.box === link else { return }
        for client in home.allClients {
            switch client.admission {
            case .waiting, .listed: break
            case .paired: _ = judge(client, at: link, now: now)
            }
        }
    }

    private mutating func judgeAll(at link: BoxLink, now: Instant) {
        guard let home = link.home, home.box === link else { return }
        for client in home.allClients { _ = judge(client, at: link, now: now) }
    }
}

extension BoxLink {
    /// The parts that have come, for a roster that goes on.
    fileprivate var partsOrEmpty: Set<DeviceID> {
        get { parts ?? [] }
        set { parts = newValue }
    }
}
