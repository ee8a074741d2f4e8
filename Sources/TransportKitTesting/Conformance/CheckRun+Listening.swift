internal import TransportKit

extension CheckRun {
    func socketInfo() async throws {
        try await withListener { rig, listener, _ in
            for text in ["/", "/v1/app", "/a/b?token=x&y=%20?", "/" + String(repeating: "l", count: 2000)] {
                guard let target = Target(text) else { throw broken("the suite's own target is bad") }
                let near = try await dial(rig, listener, target: target)
                let far = try await within("accept") { try await listener.accept() }
                for socket in [near, far] {
                    let info = socket.info
                    try expect(info.target == target, "the target \(text) became \(info.target.wireForm)")
                    try expect(
                        info.transport == rig.dialer.name,
                        "a socket of \(rig.dialer.name) calls itself \(info.transport)")
                    try expect(
                        info.capabilities == subject.capabilities,
                        "the socket has \(info.capabilities), the transport promised \(subject.capabilities)")
                    try expect(
                        info.maxMessageBytes == Limits.defaultMaxMessageBytes,
                        "the socket allows \(info.maxMessageBytes) bytes")
                }
                try expect(near.info.protection == far.info.protection, "the ends differ about their protection")
                try await within("closing") { await near.close() }
            }
            try expect(listener.endpoint.port != 0, "the listener does not say which port it got")
        }
    }

    func refusedRoute() async throws {
        let routed = Target("/here") ?? .root
        try await withListener { options in
            options.route = { $0.path == "/here" ? .accept : .refuse(.nobodyThere) }
        } _: { rig, listener, _ in
            let options = rig.dialOptions
            for text in ["/", "/elsewhere?x", "/here/not"] {
                let url = ServiceURL(listener.endpoint, target: Target(text) ?? .root)
                // A wire may refuse the dial, as an HTTP answer does, or open and close.
                let dialled = try await within("dialling a target without a route") {
                    () async -> Result<any Socket, TransportError> in
                    do throws(TransportError) {
                        return .success(try await rig.dialer.dial(url, options: options))
                    } catch {
                        return .failure(error)
                    }
                }
                switch dialled {
                case .success(let socket):
                    let end = try await close(of: "receiving the refusal") { () async throws(Close) in
                        try await socket.receive()
                    }
                    try expect(
                        end.code == .nobodyThere && end.origin == .remote, "\(text) was refused with \(end), not 4404")
                case .failure(let error):
                    try expect(
                        error.code == .upgradeRefused && error.number == 404,
                        "\(text) was refused with '\(error)' (\(error.code), \(error.number ?? 0))")
                }
            }
            // None of them was handed out.
            let near = try await dial(rig, listener, target: routed)
            let far = try await within("accept") { try await listener.accept() }
            try expect(far.info.target == routed, "a refused socket was handed out")
            try await within("closing") { await near.close() }
        }
    }

    func acceptOrder() async throws {
        try await withListener { rig, listener, _ in
            var sockets: [any Socket] = []
            for number in 0..<12 {
                sockets.append(try await dial(rig, listener, target: Target("/\(number)") ?? .root))
            }
            for number in 0..<12 {
                let far = try await within("accept") { try await listener.accept() }
                // Each dial was over before the next began, so its target was on the way first.
                try expect(
                    far.info.target.path == "/\(number)", "socket \(number) was handed out as \(far.info.target)")
                try await within("closing") { await far.close() }
            }
            for socket in sockets { try await within("closing") { await socket.close() } }
        }
    }

    func secondAccept() async throws {
        try await withListener { rig, listener, _ in
            async let first = within("the first accept") { try await listener.accept() }
            try await letItWait()
            let second = try await close(of: "a second accept") { () async throws(Close) in
                try await listener.accept()
            }
            try expect(second.cause?.code == .misuse, "the second accept threw \(second), not misuse")
            let near = try await dial(rig, listener)
            _ = try await first
            try await within("closing") { await near.close() }
        }
    }

    /// The error that a dial must end with.
    private func dialError(
        _ rig: TransportRig, _ endpoint: Endpoint, options: DialOptions
    ) async throws -> TransportError {
        let result = try await within("the dial") { () async -> Result<any Socket, TransportError> in
            do throws(TransportError) {
                return .success(try await rig.dialer.dial(ServiceURL(endpoint), options: options))
            } catch {
                return .failure(error)
            }
        }
        switch result {
        case .success: throw broken("a dial opened where it had to fail")
        case .failure(let error): return error
        }
    }

    func deadEndpoint() async throws {
        try await withRig { rig in
            let options = rig.listenOptions
            let listener = try await within("listen") {
                try await rig.listener.listen(rig.endpoint, options: options)
            }
            let endpoint = listener.endpoint
            try await within("closing the listener") { await listener.close() }
            var dialOptions = rig.dialOptions
            dialOptions.limits.handshakeTimeout = .seconds(3)
            let error = try await dialError(rig, endpoint, options: dialOptions)
            try expect(
                [.refused, .timedOut, .unreachable].contains(error.code),
                "a dial to nobody failed with '\(error)' (\(error.code))")
            try expect(!error.message.isEmpty, "the error has no words")
        }
    }

    func addressInUse() async throws {
        try await withListener { rig, listener, options in
            let result = try await within("listening twice") { () async -> TransportError? in
                do throws(TransportError) {
                    let second = try await rig.listener.listen(listener.endpoint, options: options)
                    await second.close()
                    return nil
                } catch {
                    return error
                }
            }
            guard let result else { throw broken("two listeners took \(listener.endpoint)") }
            try expect(result.code == .addressInUse, "the second listener failed with '\(result)' (\(result.code))")
        }
    }

    func listenerClose() async throws {
        try await withListener { rig, listener, _ in
            let near = try await dial(rig, listener)
            let far = try await within("accept") { try await listener.accept() }
            let unaccepted = try await dial(rig, listener)
            // It waits for the second socket first, so that the third accept is the one that waits.
            try await within("closing the listener") { await listener.close(.restarting, reason: "new version") }
            let end = try await close(of: "accept on a closed listener") { () async throws(Close) in
                try await listener.accept()
            }
            try expect(end.code == .restarting, "accept on a closed listener threw \(end)")
            let refused = try await close(of: "a socket that nobody accepted") { () async throws(Close) in
                try await unaccepted.receive()
            }
            // A code may be out of reach while the listener's half of the handshake is under way (RFC 9000 §10.2.3).
            try expect(
                [.restarting, .goingAway, .pathLost].contains(refused.code),
                "a socket that nobody accepted ended with \(refused)")
            // Sockets live on when their listener closes.
            try await within("sending") { try await near.send(Message(Bytes("still here"))) }
            try expect(try await receive(1, at: far).map(\.payload) == [Bytes("still here")], "an open socket was hurt")
            try await within("closing") { await near.close() }
            var options = rig.dialOptions
            options.limits.handshakeTimeout = .seconds(3)
            let error = try await dialError(rig, listener.endpoint, options: options)
            try expect(
                [.refused, .timedOut, .unreachable].contains(error.code),
                "a dial to a closed listener failed with '\(error)' (\(error.code))")
            try await within("closing the listener again") { await listener.close() }
        }
        // An accept that waits is ended, too.
        try await withListener { _, listener, _ in
            async let waiting = close(of: "the waiting accept") { () async throws(Close) in
                try await listener.accept()
            }
            try await letItWait()
            try await within("closing the listener") { await listener.close(.restarting, reason: "") }
            let end = try await waiting
            try expect(end.code == .restarting, "the waiting accept ended with \(end)")
        }
    }

    func claimGone() async throws {
        try await withListener { rig, listener, _ in
            var options = rig.dialOptions
            options.claim = .gone
            let error = try await dialError(rig, listener.endpoint, options: options)
            // R41: it says that it would have worked.
            try expect(error.code == .superseded, "the dial failed with '\(error)' (\(error.code))")
            let near = try await dial(rig, listener, target: Target("/real") ?? .root)
            let far = try await within("accept") { try await listener.accept() }
            try expect(far.info.target.path == "/real", "the listener handed out a dial that said nothing")
            try await within("closing") { await near.close() }
        }
    }

    func claimRace() async throws {
        try await withListener { rig, listener, _ in
            for _ in 0..<10 {
                var options = rig.dialOptions
                options.claim = Claim()
                let chosen = options
                let url = ServiceURL(listener.endpoint)
                let dials = (0..<2).map { _ in
                    Task { () async -> Result<any Socket, TransportError> in
                        do throws(TransportError) {
                            return .success(try await rig.dialer.dial(url, options: chosen))
                        } catch {
                            return .failure(error)
                        }
                    }
                }
                var opened = 0
                for dial in dials {
                    switch try await within("a dial of the race", { await dial.value }) {
                    case .success(let socket):
                        opened += 1
                        try await within("closing") { await socket.close() }
                    case .failure(let error):
                        try expect(error.code == .superseded, "the loser failed with '\(error)' (\(error.code))")
                    }
                }
                try expect(opened == 1, "\(opened) of two dials with one claim opened")
            }
        }
    }
}
