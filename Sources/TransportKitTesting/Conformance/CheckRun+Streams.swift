internal import TransportKit

extension CheckRun {
    // MARK: - Reading and writing

    /// A stream and its other end. A byte goes first, since a wire may show a stream to the peer only with a byte of it.
    func openPair(_ from: any Socket, _ to: any Socket) async throws -> (any Stream, any Stream) {
        let near = try await within("openStream") {
            let stream = try await from.openStream()
            try await stream.write([0x2a])
            return stream
        }
        let far = try await within("acceptStream") { try await to.acceptStream() }
        let first = try await readExactly(1, from: far)
        try expect(first == [0x2a], "the first byte of a stream arrived as another one")
        return (near, far)
    }

    func readExactly(_ count: Int, from stream: any Stream) async throws -> Bytes {
        try await within("reading \(count) bytes") {
            var bytes = Bytes(capacity: count)
            while bytes.count < count {
                guard let part = try await stream.read(upTo: count - bytes.count) else {
                    throw broken("the stream ended after \(bytes.count) of \(count) bytes")
                }
                try checkPart(part, limit: count - bytes.count)
                bytes.append(contentsOf: part)
            }
            return bytes
        }
    }

    func readToEnd(_ stream: any Stream, upTo limit: Int = 65_536) async throws -> Bytes {
        try await within("reading to the end") {
            var bytes = Bytes()
            while let part = try await stream.read(upTo: limit) {
                try checkPart(part, limit: limit)
                bytes.append(contentsOf: part)
            }
            return bytes
        }
    }

    private func checkPart(_ part: Bytes, limit: Int) throws {
        try expect(!part.isEmpty, "a read returned no byte; that is what nil is for")
        try expect(part.count <= limit, "a read of at most \(limit) bytes returned \(part.count)")
    }

    func write(_ bytes: Bytes, to stream: any Stream, finish: Bool = false) async throws {
        try await within("writing \(bytes.count) bytes") {
            try await stream.write(bytes)
            if finish { try await stream.finish() }
        }
    }

    /// Reads until the stream fails; bytes before the reset are in order, an end is not.
    func seesReset(_ stream: any Stream, _ who: String) async throws {
        let error = try await streamError(of: "reading at \(who)") { () async throws(StreamError) in
            while let part = try await stream.read(upTo: 65_536) { _ = part }
            throw .misuse("an end was seen where a reset was due")
        }
        try expect(error.resetCode != nil, "\(who) saw '\(error)', not a reset")
        // The other direction is gone too, though the news may take its time: writing must come to fail.
        try await within("writing at \(who)") {
            do throws(StreamError) {
                while true { try await stream.write(Pattern.bytes(1000)) }
            } catch {
                if error.resetCode == nil { throw broken("\(who) could not write: '\(error)', not a reset") }
            }
        }
    }

    // MARK: - Life

    func streamsBothWays() async throws {
        try await withConversation { talk in
            var ids: Set<UInt64> = []
            for round in 0..<4 {
                for (from, to) in talk.directions {
                    let (near, far) = try await openPair(from, to)
                    try expect(near.id == far.id, "the ends number a stream \(near.id) and \(far.id)")
                    try expect(ids.insert(near.id).inserted, "two streams have the number \(near.id)")
                    for (writer, reader) in [(near, far), (far, near)] {
                        let sent = Pattern.bytes(1000 * round + 1, seed: round)
                        async let writing: Void = write(sent, to: writer)
                        try expect(
                            try await readExactly(sent.count, from: reader) == sent, "a stream carried other bytes")
                        try await writing
                    }
                    // An empty write is no byte, and no end.
                    try await write(Bytes(), to: near)
                    try await write([7], to: near, finish: true)
                    try expect(try await readToEnd(far) == [7], "an empty write was taken for something")
                    try await write(Bytes(), to: far, finish: true)
                    try expect(try await readToEnd(near).isEmpty, "a stream ended with bytes that nobody wrote")
                }
            }
        }
    }

    func longStream() async throws {
        try await withConversation { talk in
            for (from, to) in talk.directions {
                let (near, far) = try await openPair(from, to)
                let sent = Pattern.bytes(4 << 20)
                async let writing: Void = within("writing in pieces of every size") {
                    var (rest, size) = (sent, 1)
                    while !rest.isEmpty {
                        try await near.write(rest.takeFirst(min(size, rest.count)))
                        size = size >= 300_000 ? 1 : size * 3
                    }
                    try await near.finish()
                }
                let received = try await readToEnd(far, upTo: 10_007)
                try await writing
                try expect(received == sent, "\(sent.count) bytes arrived as \(received.count) other ones")
            }
        }
    }

    func manyStreams(_ count: Int) async throws {
        try await withConversation(
            dial: { $0.limits.maxStreams = count + 8 }, listen: { $0.limits.maxStreams = count + 8 }
        ) { talk in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await echoStreams(count, at: talk.far) }
                // All are opened before any goes on, so that all are open at once.
                var streams: [any Stream] = []
                for number in 0..<count {
                    let stream = try await within("opening stream \(number) of \(count)") {
                        let stream = try await talk.near.openStream()
                        try await stream.write(Pattern.numbered(number, count: 100))
                        return stream
                    }
                    streams.append(stream)
                }
                for (number, stream) in streams.enumerated() {
                    let second = Pattern.bytes(number % 700, seed: number)
                    try await write(second, to: stream, finish: true)
                }
                for (number, stream) in streams.enumerated() {
                    var expected = Pattern.numbered(number, count: 100)
                    expected.append(contentsOf: Pattern.bytes(number % 700, seed: number))
                    let echo = try await readToEnd(stream)
                    try expect(echo == expected, "stream \(number) of \(count) came back as something else")
                }
                try await group.waitForAll()
            }
        }
    }

    /// Accepts `count` streams and answers each with its own bytes.
    private func echoStreams(_ count: Int, at socket: any Socket) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                let stream = try await within("accepting stream \(number)") { try await socket.acceptStream() }
                group.addTask {
                    while let part = try await stream.read(upTo: 65_536) { try await stream.write(part) }
                    try await stream.finish()
                }
            }
            try await group.waitForAll()
        }
    }

    // MARK: - Back-pressure

    func streamBackPressure() async throws {
        let (window, piece) = (65_536, 16_384)
        let small: @Sendable (inout Limits) -> Void = {
            $0.streamWindowBytes = window
            $0.sendBufferBytes = window
        }
        try await withConversation(dial: { small(&$0.limits) }, listen: { small(&$0.limits) }) { talk in
            for (from, to) in talk.directions {
                let (near, far) = try await openPair(from, to)
                let bound = 2 * window + subject.pathBufferBytes + 2 * piece
                let (written, stop) = (Counter(), Flag())
                let writing = Task {
                    while !stop.isRaised, written.value <= bound {
                        try await near.write(Pattern.bytes(piece, seed: written.value))
                        written.add(piece)
                    }
                    try await near.finish()
                }
                defer { writing.cancel() }
                try await untilStill { written.value }
                try expect(
                    written.value <= bound,
                    "\(written.value) bytes were taken while nobody read; \(bound) are the bound")
                // Bytes held back for long must still move (B44).
                stop.raise()
                var received = try await readToEnd(far)
                try await within("the writer's end") { try await writing.value }
                try expect(received.count == written.value, "\(received.count) of \(written.value) bytes arrived")
                for seed in stride(from: 0, to: written.value, by: piece) {
                    try expect(
                        received.takeFirst(piece) == Pattern.bytes(piece, seed: seed), "bytes arrived as other ones")
                }
            }
        }
    }

    func slowStream() async throws {
        let window = 65_536
        let small: @Sendable (inout Limits) -> Void = { $0.streamWindowBytes = window }
        try await withConversation(dial: { small(&$0.limits) }, listen: { small(&$0.limits) }) { talk in
            for (from, to) in talk.directions {
                let (slow, unread) = try await openPair(from, to)
                let written = Counter()
                let filling = Task {
                    // No more than fits any window and buffer: the stream is full long before.
                    while written.value < 64 << 20 {
                        try await slow.write(Pattern.bytes(16_384))
                        written.add(16_384)
                    }
                }
                defer { filling.cancel() }
                try await untilStill { written.value }
                for number in 0..<10 {
                    let (near, far) = try await openPair(from, to)
                    let sent = Pattern.bytes(4 * window, seed: number)
                    async let writing: Void = write(sent, to: near, finish: true)
                    let received = try await readToEnd(far)
                    try await writing
                    try expect(received == sent, "a stream beside a full one carried other bytes")
                }
                try await stillTalks(talk)
                await unread.reset(0)
                _ = try await within("the writer of the full stream") { try? await filling.value }
            }
        }
    }

    func streamLimit() async throws {
        let limit = 3
        try await withConversation(listen: { $0.limits.maxStreams = limit }) { talk in
            var pairs: [(any Stream, any Stream)] = []
            for _ in 0..<limit { pairs.append(try await openPair(talk.near, talk.far)) }
            let isOpen = Flag()
            let opening = Task {
                let stream = try await talk.near.openStream()
                isOpen.raise()
                try await stream.write([0x2b])
                return stream
            }
            defer { opening.cancel() }
            for _ in 0..<5 { try await letItWait() }
            try expect(!isOpen.isRaised, "stream \(limit + 1) opened where the peer allows \(limit)")
            // One stream that ends in both directions makes room for one.
            let (near, far) = pairs[0]
            for (writer, reader) in [(near, far), (far, near)] {
                try await within("finishing") { try await writer.finish() }
                _ = try await readToEnd(reader)
            }
            let extra = try await within("openStream once there is room") { try await opening.value }
            let accepted = try await within("acceptStream") { try await talk.far.acceptStream() }
            try expect(try await readExactly(1, from: accepted) == [0x2b], "another stream was accepted")
            await extra.reset(0)
        }
    }

    func secondReadOrWrite() async throws {
        let window = 65_536
        try await withConversation(listen: { $0.limits.streamWindowBytes = window }) { talk in
            let (near, far) = try await openPair(talk.near, talk.far)
            async let first = within("the first read") { try await near.read(upTo: 10) }
            try await letItWait()
            let second = try await streamError(of: "a second read") { () async throws(StreamError) in
                try await near.read(upTo: 10)
            }
            try expect(second.isMisuse, "the second read threw '\(second)', not misuse (R196)")
            try await write([1, 2, 3], to: far)
            try expect(try await first == [1, 2, 3], "the first read got something else")

            let written = Counter()
            let bound = window + talk.dialOptions.limits.sendBufferBytes + subject.pathBufferBytes + 2 * 32_768
            let filling = Task {
                while written.value <= bound {
                    try await near.write(Pattern.bytes(32_768))
                    written.add(32_768)
                }
            }
            defer { filling.cancel() }
            try await untilStill { written.value }
            let write = try await streamError(of: "a second write") { () async throws(StreamError) in
                try await near.write([1])
            }
            try expect(write.isMisuse, "the second write threw '\(write)', not misuse (R196)")
            await far.reset(0)
            _ = try await within("the first write") { try? await filling.value }
        }
    }
}
