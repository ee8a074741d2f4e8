internal import TransportKit

extension CheckRun {
    /// Closes one end and says what the other end got to know.
    private func told(
        _ code: CloseCode, _ reason: String, from: any Socket, to: any Socket
    ) async throws -> Close {
        async let own = within("closing with \(code)") { await from.close(code, reason: reason) }
        let told = try await close(of: "receiving the close") { () async throws(Close) in try await to.receive() }
        let result = try await own
        try expect(
            result.code == code && result.reason == reason && result.origin == .local,
            "the closing end returned \(result), \(result.origin)")
        return told
    }

    func closeCodes() async throws {
        let codes: [(CloseCode, String)] = [
            (.normal, ""), (.normal, "done"), (.goingAway, "stopping"), (.policy, "a rule"), (.internalError, "oops"),
            (.refused, "not admitted"), (.nobodyThere, ""), (.epochTurned, "412345"), (.busy, "grüße"),
            (CloseCode(rawValue: 4999), "a service's own"),
            (.displaced, String(repeating: "r", count: Close.reasonLimit)),
        ]
        for (code, reason) in codes {
            for fromDialer in [true, false] {
                try await withConversation { talk in
                    let (from, to) = talk.directions[fromDialer ? 0 : 1]
                    let told = try await told(code, reason, from: from, to: to)
                    try expect(
                        told.code == code && told.reason == reason && told.origin == .remote,
                        "\(code) '\(reason)' arrived as \(told), \(told.origin)")
                }
            }
        }
    }

    func syntheticCodes() async throws {
        for code in [CloseCode.noneGiven, .pathLost] {
            try await withConversation { talk in
                let told = try await told(code, "", from: talk.near, to: talk.far)
                try expect(told.code == .noneGiven, "\(code) must not travel (R120), and arrived as \(told)")
            }
        }
    }

    func longReason() async throws {
        let reason = String(repeating: "ä", count: 200)
        try await withConversation { talk in
            let told = try await told(.policy, reason, from: talk.near, to: talk.far)
            let kept = String(repeating: "ä", count: Close.reasonLimit / 2)
            try expect(told.code == .policy && told.reason == kept, "a long reason arrived as \(told)")
        }
    }

    func lastBytes() async throws {
        for size in [1, 1 << 20] {
            for delivery in [Delivery.control, .bulk] {
                for fromDialer in [true, false] {
                    try await withConversation { talk in
                        let (from, to) = talk.directions[fromDialer ? 0 : 1]
                        let sent = [Message(Pattern.bytes(size), delivery: delivery), Message(Bytes("tail"))]
                        async let closing = within("sending and closing") { () async throws -> Close in
                            try await from.send(sent)
                            return await from.close(.normal, reason: "all sent")
                        }
                        // B13
                        let received = try await receive(2, at: to)
                        try expect(
                            Set(received.map(\.payload)) == Set(sent.map(\.payload)),
                            "the last \(size) bytes before the close arrived as something else")
                        let told = try await close(of: "receiving the close") { () async throws(Close) in
                            try await to.receive()
                        }
                        try expect(told.code == .normal, "after the last bytes came \(told), not 1000")
                        let own = try await closing
                        try expect(own.code == .normal, "the close that delivered everything returned \(own)")
                    }
                }
            }
        }
    }

    func doubleClose() async throws {
        for fromDialer in [true, false] {
            try await withConversation { talk in
                let (from, to) = talk.directions[fromDialer ? 0 : 1]
                async let side = within("a close beside the first") { await from.close(.policy, reason: "same time") }
                async let first = within("the first close") { await from.close(.policy, reason: "same time") }
                let closes = try await [side, first]
                let later = try await within("a later close") { await from.close(.internalError, reason: "late") }
                try expect(
                    closes.allSatisfy { $0 == later } && later.code == .policy,
                    "closing again said \(later) where the end was \(closes[0])")
                let told = try await close(of: "receiving the close") { () async throws(Close) in
                    try await to.receive()
                }
                try expect(told.code == .policy, "the peer was told \(told)")
                // The end that was told has its end too: its own close does not change that.
                let answer = try await within("closing the other end") { await to.close(.normal, reason: "mine") }
                try expect(answer == told, "the other end ended with \(told) and then says \(answer)")
            }
        }
    }

    func simultaneousClose() async throws {
        try await withConversation { talk in
            async let one = within("closing the dialer") { await talk.near.close(.policy, reason: "one") }
            async let other = within("closing the listener's end") { await talk.far.close(.busy, reason: "other") }
            for (end, own) in try await [one, other].enumerated() {
                try expect(
                    [.policy, .busy].contains(own.code), "closed by both at once, end \(end) ended with \(own)")
            }
        }
    }

    func useAfterClose() async throws {
        try await withConversation { talk in
            let (near, far) = try await openStreamsWherePossible(talk)
            try await within("closing") { await talk.near.close(.policy, reason: "over") }
            for socket in [talk.near, talk.far] {
                let end = try await close(of: "receive after the end") { () async throws(Close) in
                    try await socket.receive()
                }
                try expect(end.code == .policy && end.reason == "over", "the end was \(end)")
                for _ in 0..<2 {
                    let send = try await close(of: "send after the end") { () async throws(Close) in
                        try await socket.send(Message([1]))
                    }
                    let receive = try await close(of: "receive after the end") { () async throws(Close) in
                        try await socket.receive()
                    }
                    var closes = [send, receive]
                    if subject.capabilities.contains(.streams) {
                        closes.append(
                            try await close(of: "openStream after the end") { () async throws(Close) in
                                try await socket.openStream()
                            })
                        closes.append(
                            try await close(of: "acceptStream after the end") { () async throws(Close) in
                                try await socket.acceptStream()
                            })
                    }
                    closes.append(try await within("close after the end") { await socket.close() })
                    for close in closes {
                        try expect(close == end, "after the end \(end), \(end.origin), came \(close), \(close.origin)")
                    }
                }
            }
            for stream in [near, far].compactMap({ $0 }) {
                let error = try await streamError(of: "a write after the end") { () async throws(StreamError) in
                    try await stream.write([1])
                }
                try expect(
                    error.close?.code == .policy || error.resetCode != nil,
                    "a stream of an ended socket said '\(error)'")
            }
        }
    }

    private func openStreamsWherePossible(_ talk: Conversation) async throws -> ((any Stream)?, (any Stream)?) {
        guard subject.capabilities.contains(.streams) else { return (nil, nil) }
        return try await openPair(talk.near, talk.far)
    }

    func closeWhileWaiting() async throws {
        for fromDialer in [true, false] {
            try await withConversation { talk in
                let closer = talk.directions[fromDialer ? 0 : 1].from
                let (near, far) = try await openStreamsWherePossible(talk)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for socket in [talk.near, talk.far] {
                        group.addTask {
                            let end = try await close(of: "the waiting receive") { () async throws(Close) in
                                try await socket.receive()
                            }
                            try expect(end.code == .restarting, "the waiting receive ended with \(end)")
                        }
                        guard subject.capabilities.contains(.streams) else { continue }
                        group.addTask {
                            let end = try await close(of: "the waiting acceptStream") { () async throws(Close) in
                                try await socket.acceptStream()
                            }
                            try expect(end.code == .restarting, "the waiting acceptStream ended with \(end)")
                        }
                    }
                    for stream in [near, far].compactMap({ $0 }) {
                        group.addTask {
                            let error = try await streamError(of: "the waiting read") { () async throws(StreamError) in
                                try await stream.read(upTo: 10)
                            }
                            try expect(
                                error.close?.code == .restarting || error.resetCode != nil,
                                "the waiting read ended with '\(error)'")
                        }
                    }
                    try await letItWait()
                    try await within("closing") { await closer.close(.restarting, reason: "now") }
                    try await group.waitForAll()
                }
            }
        }
    }

    func droppedSocket() async throws {
        try await withListener { rig, listener, _ in
            let far = try await dialAndDrop(rig, listener)
            let told = try await close(of: "receiving from a dropped socket") { () async throws(Close) in
                try await far.receive()
            }
            try expect(
                told.code == .goingAway || told.code == .pathLost, "a socket that nobody held ended with \(told)")
            try await within("closing") { await far.close() }
        }
    }

    private func dialAndDrop(_ rig: TransportRig, _ listener: any Listener) async throws -> any Socket {
        let near = try await dial(rig, listener)
        let far = try await within("accept") { try await listener.accept() }
        try await within("sending") { try await near.send(Message(Bytes("bye"))) }
        _ = try await receive(1, at: far)
        return far
    }

    func vanishedPeer() async throws {
        let short = Keepalive(interval: .milliseconds(200), idleTimeout: .milliseconds(1000))
        try await withConversation(dial: { $0.keepalive = short }, listen: { $0.keepalive = short }) { talk in
            // As long as it is there, silence of the application ends nothing.
            try await Task.sleep(for: .milliseconds(1500))
            try await stillTalks(talk)
            guard let vanish = talk.rig.vanish else { throw broken("the rig cannot make its listener vanish") }
            try await within("vanishing") { try await vanish() }
            let end = try await close(of: "receiving from a peer that vanished") { () async throws(Close) in
                try await talk.near.receive()
            }
            try expect(
                end.code == .pathLost && end.origin == .path && end.cause != nil,
                "a vanished peer was seen as \(end), \(end.origin)")
            let send = try await close(of: "sending to a peer that vanished") { () async throws(Close) in
                try await talk.near.send(Message([1]))
            }
            try expect(send == end, "after the end \(end) a send threw \(send)")
        }
    }
}
