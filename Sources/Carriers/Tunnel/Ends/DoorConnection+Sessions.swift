internal import TransportKit

extension DoorConnection {
    /// Opens a session of this client and waits until its first message is on its way.
    ///
    /// - Parameters:
    ///   - session: its number.
    ///   - first: its first message; nil where that comes with the first `send`.
    ///   - isAboard: whether the first message rides in message 1 of the link.
    func open(_ session: TunnelSessionID, first: Bytes?, isAboard: Bool) async throws(Close) -> TunnelSocket {
        if let close = over ?? unavailable { throw close }
        let handle = makeHandle(TunnelAddress(session: session), hasBegun: first != nil)
        if let first, !isAboard {
            machine.begin(session, first: first)
            kick()
        }
        do throws(Close) {
            let socket = try await waitUntilDialled()
            if let close = handle.close { throw close }
            arm()
            return makeSocket(handle, over: socket)
        } catch {
            release(handle.id)
            // Nobody else waits for the link.
            if error == .cancelled, handles.isEmpty, !isGreeted { await stop(.cancelled) }
            throw error
        }
    }

    // MARK: - For the socket

    func receive(_ id: UInt64) async throws(Close) -> [Message] {
        guard let handle = handles[id] else { throw .cancelled }
        guard !handle.isReceiving else { throw .misuse("another task receives already") }
        handle.isReceiving = true
        defer { handle.isReceiving = false }
        while true {
            if !handle.rest.isEmpty {
                defer { handle.rest = [] }
                return handle.rest
            }
            if let end = handle.close { throw end }
            let messages = machine.take(handle.address)
            kick()
            if !messages.isEmpty { return messages }
            if let closing = handle.closing { throw closing }
            guard await handle.received.wait() else { throw .cancelled }
        }
    }

    func send(_ messages: [Message], of id: UInt64) async throws(Close) {
        guard let handle = handles[id] else { throw .cancelled }
        if let end = handle.end { throw end }
        var (control, bulk) = (UInt64(0), UInt64(0))
        for message in messages {
            guard message.format == .binary else { throw .misuse("a session through the door has no text messages") }
            let limit = handle.isAnswered ? DoorLimits.framePayload : DoorLimits.firstPayload
            guard message.payload.count <= limit else {
                let reason = "a message has \(message.payload.count) bytes, \(limit) are allowed"
                throw Close(.tooBig, reason: reason, origin: .local)
            }
            guard !message.payload.isEmpty else { throw .misuse("an empty message would end the session") }
            let cost = UInt64(message.payload.count + DoorLimits.frameCost)
            switch message.delivery {
            case .control: control += cost
            case .bulk: bulk += cost
            case .unreliable: break
            }
        }
        try await waitForRoom(handle, control: control, bulk: bulk)
        for message in messages {
            if handle.isAnswered {
                machine.send(message.payload, message.delivery, of: handle.address)
            } else {
                begin(handle, message.payload)
            }
        }
        react()
        kick()
    }

    /// Until the other end has answered, what is sent is the first message of a handshake, and each has a number of its own
    /// (R79): whoever asks again on the standing socket begins another session, and the door forgets the last.
    private func begin(_ handle: TunnelHandle, _ first: Bytes) {
        if handle.hasBegun {
            machine.abandon(handle.address)
            ids[handle.address] = nil
            handle.address = TunnelAddress(session: .random())
            ids[handle.address] = handle.id
        }
        handle.hasBegun = true
        machine.begin(handle.address.session, first: first)
    }

    /// Waits until there is room for a batch, and nobody waits before it. Bulk that the door does not take holds up no
    /// control (R22).
    private func waitForRoom(_ handle: TunnelHandle, control: UInt64, bulk: UInt64) async throws(Close) {
        let sender = TunnelHandle.Sender(signal: Signal(), control: control, bulk: bulk)
        if maySend(sender, of: handle, before: handle.senders.count) { return }
        handle.senders.append(sender)
        blocked.insert(handle.id)
        defer {
            handle.senders.removeAll { $0.signal === sender.signal }
            if handle.senders.isEmpty { blocked.remove(handle.id) }
            wakeSenders(handle)
        }
        while true {
            let isWoken = await sender.signal.wait()
            if let end = handle.end { throw end }
            let place = handle.senders.firstIndex { $0.signal === sender.signal } ?? 0
            if maySend(sender, of: handle, before: place) { return }
            guard isWoken else { throw .cancelled }
        }
    }

    private func maySend(_ sender: TunnelHandle.Sender, of handle: TunnelHandle, before place: Int) -> Bool {
        func hasRoom(_ cost: UInt64, bulk: Bool, _ used: (TunnelHandle.Sender) -> UInt64) -> Bool {
            guard cost > 0 else { return true }
            let waiting = machine.waitingCost(handle.address, bulk: bulk)
            return (waiting == 0 || waiting + cost <= Self.sendLimit)
                && handle.senders[..<place].allSatisfy { used($0) == 0 }
        }
        return hasRoom(sender.control, bulk: false, \.control) && hasRoom(sender.bulk, bulk: true, \.bulk)
    }

    func wakeSenders(_ handle: TunnelHandle) {
        for (place, sender) in handle.senders.enumerated() where maySend(sender, of: handle, before: place) {
            sender.signal.signal()
        }
    }

    // MARK: - The end

    /// Ends a session once what it has accepted has gone, or the linger time is over.
    func close(_ id: UInt64, _ close: Close) async -> Close {
        guard let handle = handles[id] else { return close }
        if handle.end == nil {
            handle.closing = close
            handle.wakeEverybody()
        }
        let deadline = time.now() + Self.linger
        let signal = Signal()
        let timer = Task(executorPreference: executor) { [time] in
            try? await time.sleep(until: deadline)
            signal.signal()
        }
        handle.closers.append(signal)
        defer {
            timer.cancel()
            handle.closers.removeAll { $0 === signal }
        }
        func mayWait() -> Bool { handle.close == nil && time.now() < deadline }
        while mayWait(), waits(handle.address) {
            guard await signal.wait() else { break }
        }
        abandon(handle, close)
        while over == nil, time.now() < deadline, machine.outbox.contains(handle.address) {
            guard await signal.wait() else { break }
        }
        return handle.close ?? close
    }

    /// Ends a session at once: what waits is dropped.
    func abandon(_ handle: TunnelHandle, _ close: Close) {
        guard handle.close == nil else { return }
        end(handle, handle.closing ?? close, rest: machine.abandon(handle.address))
        kick()
    }

    /// Ends the session of a socket at once.
    func abandon(_ id: UInt64, _ close: Close) {
        if let handle = handles[id] { abandon(handle, close) }
    }

    /// Ends a session at once, by its address; not where it is over already.
    func end(_ address: TunnelAddress, _ close: Close) {
        if let handle = handle(of: address) { abandon(handle, close) }
    }

    /// Lets a session go without a word to the other end.
    func letGo(_ address: TunnelAddress, _ close: Close) {
        guard let handle = handle(of: address) else { return }
        machine.forget(address)
        end(handle, close, rest: [])
    }

    private func waits(_ address: TunnelAddress) -> Bool {
        machine.waitingCost(address, bulk: false) > 0 || machine.waitingCost(address, bulk: true) > 0
    }

    /// Nobody holds the socket any more. Called from any thread.
    nonisolated func drop(_ id: UInt64) {
        Task(executorPreference: executor) { await self.release(id) }
    }

    func release(_ id: UInt64) {
        guard let handle = handles[id] else { return }
        abandon(handle, Close(.goingAway, reason: "nobody holds the socket any more", origin: .local))
        handles[id] = nil
        endIfUnused()
    }

    /// Nobody opens sessions any more: the link ends with the last of them.
    func endOnceUnused() {
        isOrphaned = true
        endIfUnused()
    }

    private func endIfUnused() {
        guard isOrphaned, handles.isEmpty else { return }
        let close = Close(.goingAway, reason: "nobody holds the carrier any more", origin: .local)
        Task(executorPreference: executor) { await self.stop(close) }
    }
}
