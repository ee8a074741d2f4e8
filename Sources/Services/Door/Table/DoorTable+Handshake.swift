internal import NoiseCarrier
internal import TransportKit
internal import TunnelCarrier

/// The first message of a link, and the answer.
extension DoorTable {
    /// A message has arrived. What breaks the wire ends the link.
    mutating func received(_ message: Message, on id: UInt64, now: Instant) {
        guard let party = links[id] else { return }
        let isDatagram = message.delivery == .unreliable
        if message.format == .text {
            return close(party, .unsupported, "text messages are not used here", now: now)
        }
        do throws(DoorWireError) {
            let read = try DoorMessage.decode(message.payload, party.leg.reads, isDatagram: isDatagram)
            switch (read, party.link.phase) {
            case (_, .closed), (.unknown, .greeted), (.unknown, .proved):
                return
            case (.handshake(let message), .silent):
                shakeHands(message, with: party, now: now)
            case (_, .silent):
                // A frame may have overtaken message 1.
                if !isDatagram { close(party, .protocolError, "message 1 comes first", now: now) }
            case (.handshake, .greeted), (.handshake, .proved):
                close(party, .protocolError, "there is one handshake for each link", now: now)
            case (.sealed(let sealed), .greeted), (.sealed(let sealed), .proved):
                open(sealed, of: party, now: now)
            case (.frame(let frame), .greeted), (.frame(let frame), .proved):
                switch party {
                case .client(let link): received(frame, from: link, isDatagram: isDatagram, now: now)
                case .box(let link): received(frame, from: link, isDatagram: isDatagram, now: now)
                }
            }
        } catch {
            // A datagram that cannot be read is dropped.
            if isDatagram { return }
            let isTooLong = error.fault == .tooLong && error.message == "message"
            close(party, isTooLong ? .tooBig : .protocolError, "\(error)", now: now)
        }
    }

    private mutating func open(_ sealed: Bytes, of party: Party, now: Instant) {
        do throws(ControlSealError) {
            guard let control = try party.link.openSealed(sealed) else { return }
            switch party {
            case .client(let link): received(control, from: link, now: now)
            case .box(let link): received(control, from: link, now: now)
            }
        } catch {
            close(party, .protocolError, "\(error)", now: now)
        }
    }

    private mutating func shakeHands(_ message: Bytes, with party: Party, now: Instant) {
        guard limits.begin(party.link.address, now: now) else {
            perform(.count("door.handshakes.tooMany", 1))
            return close(party, .busy, "too many handshakes from this address", now: now)
        }
        for key in keys {
            if let handshake = try? ResponderHandshake(key: key, prologue: party.leg.reads.prologue, reading: message) {
                return answer(handshake, of: party, now: now)
            }
        }
        perform(.count("door.handshakes.unread", 1))
        close(party, .refused, "refused", now: now)
    }

    private mutating func answer(_ handshake: consuming ResponderHandshake, of party: Party, now: Instant) {
        let (peer, payload) = (handshake.peer, handshake.payload)
        do throws(DoorWireError) {
            switch party {
            case .client(let link):
                let hello = try ClientHello(payload)
                guard let welcome = greet(link, hello, device: DeviceID(of: peer), now: now) else { return }
                guard finish(handshake, welcome.encoded(), of: party, now: now) else { return }
                if let tun = hello.tun { begin(tun, from: link, now: now) }
            case .box(let link):
                let hello = try BoxHello(payload)
                let id = HomeID(of: peer)
                guard directory.serves(id) else { return refuse(party, now: now) }
                link.window = hello.window
                link.capabilities = hello.capabilities
                guard finish(handshake, BoxWelcome(window: window).encoded(), of: party, now: now) else { return }
                let home = home(id)
                home.boxArrivals += 1
                link.home = home
            }
        } catch {
            close(party, .protocolError, "\(error)", now: now)
        }
    }

    /// Decides about a client as far as that can be decided; nil where it was refused.
    private mutating func greet(
        _ link: ClientLink, _ hello: ClientHello, device: DeviceID, now: Instant
    ) -> ClientWelcome? {
        guard directory.serves(hello.home) else {
            refuse(.client(link), now: now)
            return nil
        }
        link.window = hello.window
        link.pair = hello.pair
        link.device = device
        let box = homes[hello.home]?.box
        if let box {
            guard let admission = admission(of: link, at: box) else {
                refuse(.client(link), now: now)
                return nil
            }
            link.admission = admission
        } else {
            let others = homes[hello.home]?.allClients.count { $0.admission == .waiting } ?? 0
            guard waiting < options.waitingClients, others < options.waitingClientsPerHome else {
                perform(.count("door.waiting.tooMany", 1))
                close(.client(link), .busy, "too many clients wait for a box", now: now)
                return nil
            }
            waiting += 1
            perform(.gauge("door.waiting", 1))
            link.waitsUntil = now + Self.waitingLimit
        }
        let home = home(hello.home)
        link.home = home
        home.arrivals[link.id] = link
        return ClientWelcome(window: window, box: box?.capabilities)
    }

    private mutating func finish(
        _ handshake: consuming ResponderHandshake, _ welcome: Bytes, of party: Party, now: Instant
    ) -> Bool {
        do throws(NoiseError) {
            let answer = try handshake.answer(payload: welcome)
            let message = DoorMessage.handshake(answer.message2).encoded()
            party.link.seal = ControlSeal(answer.begin(), reads: party.leg.reads)
            party.link.phase = .greeted
            party.link.deadline = now + Self.handshakeLimit
            expect(now + Self.handshakeLimit)
            say(message, to: party.link, now: now)
            return true
        } catch {
            // Nothing can be agreed on with the key that it showed.
            refuse(party, now: now)
            return false
        }
    }

    /// What lets a client in where a box is linked; nil refuses it.
    func admission(of link: ClientLink, at box: BoxLink) -> ClientLink.Admission? {
        if let device = link.device, box.roster.contains(device) { return .listed }
        if let pair = link.pair, box.expects(pair) { return .paired(pair) }
        return nil
    }

    /// Closes with 4403; whoever it is does not learn why.
    mutating func refuse(_ party: Party, now: Instant) {
        perform(.count("door.refused", 1))
        close(party, .refused, "refused", now: now)
    }
}

extension DoorTable.Party {
    var leg: DoorLeg {
        switch self {
        case .client: .app
        case .box: .box
        }
    }
}

extension DoorLink {
    func openSealed(_ sealed: Bytes) throws(ControlSealError) -> DoorControl? {
        try seal?.open(sealed)
    }
}
