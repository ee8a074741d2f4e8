internal import TransportKit

extension CheckRun {
    /// What a call comes to whose task is cancelled while it waits.
    private func cancelled<Value: Sendable>(
        _ call: String, at once: Bool = false, _ body: @escaping @Sendable () async throws(Close) -> Value
    ) async throws -> Close {
        let task = Task { () async -> Result<Value, Close> in
            do throws(Close) { return .success(try await body()) } catch { return .failure(error) }
        }
        if !once { try await letItWait() }
        task.cancel()
        let result = try await within("the cancelled \(call)") { await task.value }
        guard case .failure(let close) = result else { throw broken("the cancelled \(call) succeeded out of nothing") }
        try expect(close == .cancelled, "the cancelled \(call) threw \(close)")
        return close
    }

    func cancelledReceive() async throws {
        try await withConversation { talk in
            for (from, to) in talk.directions {
                for once in [true, false] {
                    _ = try await cancelled("receive", at: once) { () async throws(Close) in try await to.receive() }
                }
                // Cancelled at the very moment a message arrives, again and again.
                let count = 200
                var numbers: [Int] = []
                for number in 0..<count {
                    let task = Task { try? await to.receive() }
                    if number % 2 == 0 { await Task.yield() }
                    try await within("sending") { try await from.send(Message(Pattern.numbered(number))) }
                    task.cancel()
                    let batch = try await within("the cancelled receive") { await task.value }
                    numbers += (batch ?? []).map { Pattern.number(of: $0.payload) }
                }
                numbers += try await receive(count - numbers.count, at: to).map { Pattern.number(of: $0.payload) }
                try expect(numbers == Array(0..<count), "a cancelled receive lost, doubled or swapped messages")
            }
            try await stillTalks(talk)
        }
    }

    func cancelledSend() async throws {
        let (size, buffer) = (32_768, 131_072)
        let small: @Sendable (inout Limits) -> Void = {
            $0.receiveBufferBytes = buffer
            $0.sendBufferBytes = buffer
        }
        try await withConversation(dial: { small(&$0.limits) }, listen: { small(&$0.limits) }) { talk in
            let bound = 2 * buffer + subject.pathBufferBytes + 6 * size
            let accepted = Counter()
            let sending = Task { () async -> Close? in
                while accepted.value * 3 * size <= bound {
                    let first = accepted.value * 3
                    let batch = (first..<first + 3).map { Message(Pattern.numbered($0, count: size)) }
                    do throws(Close) { try await talk.near.send(batch) } catch { return error }
                    accepted.add()
                }
                return nil
            }
            defer { sending.cancel() }
            try await untilStill { accepted.value }
            sending.cancel()
            let close = try await within("the cancelled send") { await sending.value }
            guard let close else { throw broken("the sender never had to wait") }
            try expect(close == .cancelled, "the cancelled send threw \(close)")
            async let end: Void = within("sending afterwards") { try await talk.near.send(Message(Bytes("end"))) }
            var received: [Message] = []
            while received.last?.payload != Bytes("end") {
                received += try await within("receiving") { try await talk.far.receive() }
            }
            try await end
            let numbers = received.dropLast().map { Pattern.number(of: $0.payload) }
            try expect(numbers == Array(0..<numbers.count), "messages were lost, doubled or swapped")
            try expect(numbers.count % 3 == 0, "a part of a batch was sent")
            let batches = numbers.count / 3
            try expect(
                batches == accepted.value || batches == accepted.value + 1,
                "\(batches) batches arrived where \(accepted.value) were accepted")
            try await stillTalks(talk)
        }
    }

    func cancelledAccept() async throws {
        try await withListener { rig, listener, _ in
            for once in [true, false] {
                _ = try await cancelled("accept", at: once) { () async throws(Close) in try await listener.accept() }
            }
            for number in 0..<20 {
                let task = Task { try? await listener.accept() }
                if number % 2 == 0 { await Task.yield() }
                let near = try await dial(rig, listener)
                task.cancel()
                let early = try await within("the cancelled accept") { await task.value }
                let far: any Socket
                if let early { far = early } else { far = try await within("accept") { try await listener.accept() } }
                try await within("sending") { try await near.send(Message(Pattern.numbered(number))) }
                let received = try await receive(1, at: far)
                try expect(Pattern.number(of: received[0].payload) == number, "accept gave another socket")
                try await within("closing") { await near.close() }
            }
        }
    }

    func cancelledDial() async throws {
        try await withListener { rig, listener, _ in
            let url = ServiceURL(listener.endpoint)
            var opened = 0
            for number in 0..<20 {
                let task = Task { () async -> Result<any Socket, TransportError> in
                    do throws(TransportError) {
                        return .success(try await rig.dialer.dial(url, options: rig.dialOptions))
                    } catch {
                        return .failure(error)
                    }
                }
                for _ in 0..<number { await Task.yield() }
                task.cancel()
                switch try await within("the cancelled dial", { await task.value }) {
                case .success(let socket):
                    opened += 1
                    try await within("closing") { await socket.close() }
                case .failure(let error):
                    try expect(error.code == .cancelled, "the cancelled dial threw '\(error)' (\(error.code))")
                }
            }
            // What the listener still got of them must end, and it must go on.
            let marker = Bytes("the one that counts")
            let near = try await dial(rig, listener)
            try await within("sending") { try await near.send(Message(marker)) }
            while true {
                let far = try await within("accept") { try await listener.accept() }
                if case .success(let messages) = try await outcome(
                    of: "the end of a cancelled dial", { () async throws(Close) in try await far.receive() })
                {
                    try expect(messages.map(\.payload) == [marker], "a cancelled dial sent something")
                    break
                }
            }
            try await within("closing") { await near.close() }
        }
    }

    func cancelledAcceptStream() async throws {
        try await withConversation { talk in
            for (from, to) in talk.directions {
                for once in [true, false] {
                    _ = try await cancelled("acceptStream", at: once) { () async throws(Close) in
                        try await to.acceptStream()
                    }
                }
                for number in 0..<50 {
                    let task = Task { try? await to.acceptStream() }
                    if number % 2 == 0 { await Task.yield() }
                    let opened = try await within("opening a stream") {
                        let stream = try await from.openStream()
                        try await stream.write(Pattern.numbered(number))
                        return stream
                    }
                    task.cancel()
                    let early = try await within("the cancelled acceptStream") { await task.value }
                    let accepted: any Stream
                    if let early {
                        accepted = early
                    } else {
                        accepted = try await within("acceptStream") { try await to.acceptStream() }
                    }
                    let bytes = try await readExactly(8, from: accepted)
                    try expect(Pattern.number(of: bytes) == number, "acceptStream gave another stream")
                    await opened.reset(0)
                }
            }
        }
    }

    func cancelledOpenStream() async throws {
        try await withConversation(listen: { $0.limits.maxStreams = 2 }) { talk in
            let held = try await within("opening 2 streams") {
                [try await talk.near.openStream(), try await talk.near.openStream()]
            }
            for once in [true, false] {
                _ = try await cancelled("openStream", at: once) { () async throws(Close) in
                    try await talk.near.openStream()
                }
            }
            for stream in held { await stream.reset(0) }
            let stream = try await within("opening a stream once there is room") { try await talk.near.openStream() }
            await stream.reset(0)
            try await stillTalks(talk)
        }
    }

    func cancelledRead() async throws {
        try await withConversation { talk in
            let (near, far) = try await openPair(talk.near, talk.far)
            let task = Task { () async -> StreamError? in
                do throws(StreamError) { _ = try await near.read(upTo: 100) } catch { return error }
                return nil
            }
            try await letItWait()
            task.cancel()
            let error = try await within("the cancelled read") { await task.value }
            try expect(error == .cancelled, "the cancelled read threw \(error.map { "\($0)" } ?? "nothing")")
            try await seesReset(far, "the peer of a cancelled read")
            try await stillTalks(talk)
        }
    }

    func cancelledWrite() async throws {
        let window = 65_536
        try await withConversation(listen: { $0.limits.streamWindowBytes = window }) { talk in
            let (near, far) = try await openPair(talk.near, talk.far)
            let written = Counter()
            let bound = window + talk.dialOptions.limits.sendBufferBytes + subject.pathBufferBytes + 2 * 32_768
            let task = Task { () async -> StreamError? in
                while written.value <= bound {
                    do throws(StreamError) { try await near.write(Pattern.bytes(32_768)) } catch { return error }
                    written.add(32_768)
                }
                return nil
            }
            defer { task.cancel() }
            try await untilStill { written.value }
            task.cancel()
            let error = try await within("the cancelled write") { await task.value }
            try expect(error == .cancelled, "the cancelled write threw \(error.map { "\($0)" } ?? "nothing")")
            try await seesReset(far, "the peer of a cancelled write")
            try await stillTalks(talk)
        }
    }
}
