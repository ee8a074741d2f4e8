internal import TransportKit
internal import TunnelCarrier

/// What clients say, and when they are in.
extension DoorTable {
    mutating func received(_ control: DoorControl, from link: ClientLink, now: Instant) {
        switch (control, link.phase) {
        case (_, .silent), (_, .closed):
            return
        case (.enter, .greeted):
            enter(link, now: now)
        case (.unknown, .greeted), (.unknown, .proved):
            return
        case (.credit(_, let session, let total), .proved):
            guard let device = link.device else { return }
            credit(SessionKey(device: device, session: session), total, from: link)
        case (.check(let nonce), .proved):
            guard let device = link.device, link.home?.clients[device] === link else {
                return close(.client(link), .nobodyThere, "the door does not route by this link", now: now)
            }
            say(.here(nonce: nonce), to: link, now: now)
        case (.enter, .proved):
            close(.client(link), .protocolError, "a client enters once", now: now)
        case (.credit, .greeted), (.check, .greeted):
            close(.client(link), .protocolError, "enter comes first", now: now)
        case (.entered, _), (.box, _), (.roster, _), (.linked, _), (.admit, _), (.revoke, _), (.expect, _),
            (.forget, _), (.here, _):
            close(.client(link), .protocolError, "a client does not say this", now: now)
        }
    }

    /// The owner of the key is there: it takes the place of the device's older link (B10).
    private mutating func enter(_ link: ClientLink, now: Instant) {
        guard let home = link.home, let device = link.device else { return }
        link.phase = .proved
        link.deadline = link.admission == .waiting ? link.waitsUntil : nil
        link.deadline.map { expect($0) }
        unproved -= 1
        home.arrivals[link.id] = nil
        let older = home.clients.updateValue(link, forKey: device)
        if let older {
            perform(.count("door.displaced", 1))
            close(.client(older), .displaced, "a newer link of this device has entered", now: now)
        }
        if link.admission != .waiting { letIn(link, now: now) }
    }

    /// Tells a client that has entered that it is in.
    private mutating func letIn(_ link: ClientLink, now: Instant) {
        guard link.phase == .proved, !link.hasEntered else { return }
        link.hasEntered = true
        perform(.log(.debug, "device \(link.name) has entered \(link.home?.name ?? "")"))
        say(.entered, to: link, now: now)
    }

    /// The box of the home has linked, or has named its devices anew: who may stay?
    mutating func judge(_ link: ClientLink, at box: BoxLink, now: Instant) -> Bool {
        guard let admission = admission(of: link, at: box) else {
            perform(.count("door.revoked", 1))
            close(.client(link), .refused, "refused", now: now)
            return false
        }
        if link.admission == .waiting {
            stopWaiting(link)
            if link.phase == .proved { link.deadline = nil }
        }
        link.admission = admission
        return true
    }

    /// Tells a client that was judged of the box.
    mutating func tell(_ link: ClientLink, of box: BoxLink, now: Instant) {
        say(.box(box.capabilities), to: link, now: now)
        letIn(link, now: now)
    }

    mutating func stopWaiting(_ link: ClientLink) {
        guard link.waitsUntil != nil else { return }
        link.waitsUntil = nil
        waiting -= 1
        perform(.gauge("door.waiting", -1))
    }
}

extension ClientLink {
    /// What log lines call the device.
    var name: String { device.map { "\($0.description.prefix(8))…" } ?? "unknown" }
}
