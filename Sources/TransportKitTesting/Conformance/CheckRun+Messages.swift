internal import TransportKit

extension CheckRun {
    /// Receives until `count` messages are there.
    func receive(_ count: Int, at socket: any Socket) async throws -> [Message] {
        try await within("receiving \(count) messages") {
            var received: [Message] = []
            while received.count < count {
                let batch = try await socket.receive()
                if batch.isEmpty { throw broken("receive returned no message at all") }
                received += batch
            }
            if received.count > count { throw broken("\(received.count) messages came where \(count) were sent") }
            return received
        }
    }

    func messageSizes() async throws {
        let limit = Limits.defaultMaxMessageBytes
        let edges = [
            0, 1, 2, 63, 64, 65, 125, 126, 127, 128, 1199, 1200, 1201, 16_383, 16_384, 65_535, 65_536, 65_537,
            limit / 2, limit - 1, limit,
        ]
        try await withConversation { talk in
            for (from, to) in talk.directions {
                for size in edges {
                    for delivery in [Delivery.control, .bulk] {
                        let sent = Message(Pattern.bytes(size), delivery: delivery)
                        // Beside each other, so that no buffer of the path has to hold the whole message.
                        async let sending: Void = within("sending \(size) bytes") { try await from.send(sent) }
                        let received = try await receive(1, at: to)
                        try await sending
                        try expect(
                            received[0].payload == sent.payload,
                            "\(size) bytes of \(delivery) arrived as \(received[0].payload.count) other bytes")
                        try expect(
                            received[0].delivery != .unreliable && received[0].format == .binary,
                            "a \(delivery) message arrived marked \(received[0].delivery), \(received[0].format)")
                    }
                }
            }
        }
    }

    func batchOrder() async throws {
        try await withConversation { talk in
            for (from, to) in talk.directions {
                let sent = (0..<500).map { Message(Pattern.numbered($0, count: 8 + $0 % 50)) }
                async let sending: Void = within("sending a batch") { try await from.send(sent) }
                let received = try await receive(sent.count, at: to)
                try await sending
                try expect(received.map(\.payload) == sent.map(\.payload), "the batch arrived in another order")
                // An empty batch is no message.
                try await within("sending an empty batch") { try await from.send([]) }
            }
        }
    }

    func deliveryOrder() async throws {
        let count = 2000
        try await withConversation { talk in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (from, to) in talk.directions {
                    group.addTask {
                        try await within("sending control and bulk") {
                            for number in 0..<count {
                                let delivery: Delivery = number % 3 == 0 ? .bulk : .control
                                try await from.send(Message(Pattern.numbered(number, count: 40), delivery: delivery))
                            }
                        }
                    }
                    group.addTask {
                        let numbers = try await receive(count, at: to).map { Pattern.number(of: $0.payload) }
                        // Whatever they were marked as on the way, each kind keeps its own order.
                        for kind in [numbers.filter { $0 % 3 == 0 }, numbers.filter { $0 % 3 != 0 }] {
                            try expect(kind == kind.sorted(), "messages of one delivery overtook each other")
                        }
                        try expect(Set(numbers).count == count, "a message came twice, another one not at all")
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    func manySenders() async throws {
        let (senders, batches, size) = (8, 25, 7)
        try await withConversation { talk in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for sender in 0..<senders {
                    group.addTask {
                        try await within("sending among \(senders) senders") {
                            for batch in 0..<batches {
                                let first = (sender * batches + batch) * size
                                try await talk.near.send(
                                    (first..<first + size).map { Message(Pattern.numbered($0, count: 100)) })
                            }
                        }
                    }
                }
                group.addTask {
                    let numbers = try await receive(senders * batches * size, at: talk.far)
                        .map { Pattern.number(of: $0.payload) }
                    for index in stride(from: 0, to: numbers.count, by: size) {
                        let batch = Array(numbers[index..<index + size])
                        try expect(
                            batch[0] % size == 0 && batch == Array(batch[0]..<batch[0] + size),
                            "a batch was torn apart: \(batch)")
                    }
                    for sender in 0..<senders {
                        let own = numbers.filter { $0 / (batches * size) == sender }
                        try expect(own == own.sorted(), "the batches of one sender overtook each other")
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    func text() async throws {
        try await withConversation { talk in
            for (from, to) in talk.directions {
                let sent = [Message.text("Grüße ✓"), Message(Pattern.bytes(3)), Message.text("")]
                try await within("sending text") { try await from.send(sent) }
                let received = try await receive(sent.count, at: to)
                try expect(received.map(\.payload) == sent.map(\.payload), "the text arrived as something else")
                try expect(received.map(\.format) == sent.map(\.format), "text and binary were taken for each other")
            }
        }
    }

    func textRefused() async throws {
        try await withConversation { talk in
            let close = try await close(of: "sending text") { () async throws(Close) in
                try await talk.near.send(.text("no"))
            }
            try expect(close.cause?.code == .misuse, "text was refused with \(close), not as misuse")
            try await stillTalks(talk)
        }
    }

    func datagrams() async throws {
        let count = 200
        try await withConversation { talk in
            for (from, to) in talk.directions {
                let tooLarge = Pattern.bytes(100_000)
                try await within("sending unreliable messages") {
                    for number in 0..<count {
                        try await from.send(Message(Pattern.numbered(number, count: 64), delivery: .unreliable))
                    }
                    // No datagram holds this one: it goes on the stream (R9).
                    try await from.send(Message(tooLarge, delivery: .unreliable))
                    try await from.send(Message(Bytes("last")))
                }
                var received: [Message] = []
                while !received.contains(where: { $0.payload == Bytes("last") }) {
                    received += try await within("receiving unreliable messages") { try await to.receive() }
                }
                let small = received.filter { $0.payload.count == 64 }
                try expect(small.allSatisfy { $0.delivery == .unreliable }, "an unreliable message came unmarked (R8)")
                try expect(!small.isEmpty, "not one of \(count) unreliable messages arrived on a path without loss")
                let numbers = small.map { Pattern.number(of: $0.payload) }
                try expect(Set(numbers).count == numbers.count, "an unreliable message came twice")
                for message in small {
                    try expect(
                        message.payload == Pattern.numbered(Pattern.number(of: message.payload), count: 64),
                        "an unreliable message arrived as something else")
                }
                try expect(
                    received.contains { $0.payload == tooLarge },
                    "an unreliable message too large for a datagram was lost (R9)")
                try expect(
                    received.allSatisfy { $0.payload != Bytes("last") || $0.delivery == .control },
                    "a control message came marked otherwise")
            }
        }
    }

    func unreliableWithoutDatagrams() async throws {
        let count = 200
        try await withConversation { talk in
            for (from, to) in talk.directions {
                async let sending: Void = within("sending unreliable messages") {
                    for number in 0..<count {
                        try await from.send(Message(Pattern.numbered(number), delivery: .unreliable))
                    }
                }
                let received = try await receive(count, at: to)
                try await sending
                try expect(
                    received.map { Pattern.number(of: $0.payload) } == Array(0..<count),
                    "unreliable messages overtook each other on a reliable wire")
                // The mark would say that one may be missing (R144).
                try expect(
                    received.allSatisfy { $0.delivery != .unreliable }, "a message was marked that came reliably")
            }
        }
    }

    func firstFlight() async throws {
        let flight = Pattern.bytes(300)
        try await withConversation(dial: { $0.firstFlight = flight }) { talk in
            try await within("sending") { try await talk.near.send(Message(Bytes("second"))) }
            let received = try await receive(2, at: talk.far)
            try expect(
                received.map(\.payload) == [flight, Bytes("second")], "the first flight was not the first message")
        }
    }

    func messageBackPressure() async throws {
        let (size, buffer) = (32_768, 262_144)
        let small: @Sendable (inout Limits) -> Void = {
            $0.receiveBufferBytes = buffer
            $0.sendBufferBytes = buffer
        }
        try await withConversation(dial: { small(&$0.limits) }, listen: { small(&$0.limits) }) { talk in
            for (from, to) in talk.directions {
                // One batch beyond each buffer is in order: a batch is taken whole.
                let bound = 2 * buffer + subject.pathBufferBytes + 2 * size
                let accepted = Counter()
                let stop = Flag()
                let sending = Task {
                    while !stop.isRaised, accepted.value * size <= bound {
                        try await from.send(Message(Pattern.numbered(accepted.value, count: size)))
                        accepted.add()
                    }
                }
                defer { sending.cancel() }
                try await untilStill { accepted.value }
                try expect(
                    accepted.value * size <= bound,
                    "\(accepted.value * size) bytes were taken while nobody received; \(bound) are the bound")
                // A receiver that goes on lets the sender go on.
                stop.raise()
                let marker = Bytes("end")
                let receiving = Task {
                    var received = 0
                    while true {
                        for message in try await to.receive() {
                            if message.payload == marker { return received }
                            guard message.payload == Pattern.numbered(received, count: size) else {
                                throw broken("message \(received) arrived as another one")
                            }
                            received += 1
                        }
                    }
                }
                defer { receiving.cancel() }
                try await within("the sender going on") { try await sending.value }
                try await within("sending the last message") { try await from.send(Message(marker)) }
                let received = try await within("the receiver going on") { try await receiving.value }
                try expect(received == accepted.value, "\(received) of \(accepted.value) messages arrived")
            }
        }
    }

    func overlongSend() async throws {
        try await withConversation(
            dial: { $0.limits.maxMessageBytes = 1000 }, listen: { $0.limits.maxMessageBytes = 1000 }
        ) { talk in
            for (from, _) in talk.directions {
                try expect(from.info.maxMessageBytes <= 1000, "the socket does not know its own limit")
                for delivery in [Delivery.control, .bulk] {
                    let close = try await close(of: "sending a message too long") { () async throws(Close) in
                        try await from.send(Message(Pattern.bytes(1001), delivery: delivery))
                    }
                    try expect(close.code == .tooBig, "a message too long was refused with \(close), not 1009")
                }
            }
            // Not even the part of the batch before it has left.
            let close = try await close(of: "sending a batch with a message too long") { () async throws(Close) in
                try await talk.near.send([Message(Bytes("stray")), Message(Pattern.bytes(1001))])
            }
            try expect(close.code == .tooBig, "a batch with a message too long was refused with \(close), not 1009")
            try await stillTalks(talk)
        }
    }

    func overlongReceive() async throws {
        try await withConversation(listen: { $0.limits.maxMessageBytes = 10_000 }) { talk in
            try await overlong(from: talk.near, to: talk.far)
        }
        try await withConversation(dial: { $0.limits.maxMessageBytes = 10_000 }) { talk in
            try await overlong(from: talk.far, to: talk.near)
        }
    }

    private func overlong(from: any Socket, to: any Socket) async throws {
        let message = Message(Pattern.bytes(50_000))
        // Whether the send still succeeds is a matter of time; that the message arrives is not.
        _ = try await outcome(of: "sending above the peer's limit") { () async throws(Close) in
            try await from.send(message)
        }
        let seen = try await close(of: "receiving a message too long") { () async throws(Close) in
            try await to.receive()
        }
        try expect(seen.code == .tooBig, "the receiver ended with \(seen), not 1009")
        let told = try await close(of: "receiving at the sender") { () async throws(Close) in try await from.receive() }
        try expect(told.code == .tooBig, "the sender was told \(told), not 1009")
    }

    func secondReceive() async throws {
        try await withConversation { talk in
            for (from, to) in talk.directions {
                async let first = within("the first receive") { try await to.receive() }
                try await letItWait()
                let close = try await close(of: "a second receive") { () async throws(Close) in try await to.receive() }
                try expect(close.cause?.code == .misuse, "the second receive threw \(close), not misuse")
                try await within("sending") { try await from.send(Message(Bytes("for the first"))) }
                try expect(
                    try await first.map(\.payload) == [Bytes("for the first")], "the first receive got something else")
            }
        }
    }

    /// Both ends still hear each other.
    func stillTalks(_ talk: Conversation) async throws {
        for (from, to) in talk.directions {
            let sent = Message(Pattern.bytes(20, seed: 99))
            try await within("sending afterwards") { try await from.send(sent) }
            let received = try await within("receiving afterwards") { try await to.receive() }
            try expect(received.map(\.payload) == [sent.payload], "the socket did not go on as before")
        }
    }
}
