internal import TransportKit

extension CheckRun {
    func halfClose() async throws {
        try await withConversation { talk in
            for (from, to) in talk.directions {
                let (near, far) = try await openPair(from, to)
                let request = Pattern.bytes(1 << 20, seed: 1)
                let answer = Pattern.bytes(300_000, seed: 2)
                async let asking: Void = write(request, to: near, finish: true)
                try expect(try await readToEnd(far) == request, "what came before the half-close is not what was sent")
                try await asking
                // The other direction is still open, long after the first has ended (B12).
                async let answering: Void = write(answer, to: far, finish: true)
                try expect(try await readToEnd(near) == answer, "the answer after the half-close was cut or changed")
                try await answering
            }
        }
    }

    func emptyStream() async throws {
        try await withConversation { talk in
            for (from, to) in talk.directions {
                let near = try await within("opening and finishing a stream") {
                    let stream = try await from.openStream()
                    try await stream.finish()
                    return stream
                }
                let far = try await within("acceptStream") { try await to.acceptStream() }
                try expect(try await readToEnd(far).isEmpty, "a stream without bytes had some")
                try await write([9], to: far, finish: true)
                try expect(try await readToEnd(near) == [9], "the answer on an empty stream was lost")
            }
        }
    }

    func endEveryTime() async throws {
        try await withConversation { talk in
            for (from, to) in talk.directions {
                for size in [1, 1000, 100_000] {
                    let (near, far) = try await openPair(from, to)
                    let sent = Pattern.bytes(size)
                    async let writing: Void = write(sent, to: near, finish: true)
                    // The bytes that came with the end are read first (R192).
                    try expect(try await readExactly(size, from: far) == sent, "the last bytes were lost")
                    try await writing
                    for _ in 0..<3 {
                        let after = try await within("reading at the end") { try await far.read(upTo: 100) }
                        try expect(after == nil, "bytes came after the end")
                    }
                    try await write(Bytes(), to: far, finish: true)
                    try expect(try await readToEnd(near).isEmpty, "bytes came from nowhere")
                    // Not even the end of the other direction changes it.
                    let late = try await within("reading at the end") { try await far.read(upTo: 100) }
                    try expect(late == nil, "bytes came after the end")
                }
            }
        }
    }

    func writeAfterFinish() async throws {
        try await withConversation { talk in
            for (from, to) in talk.directions {
                let (near, far) = try await openPair(from, to)
                try await within("finishing") { try await near.finish() }
                let error = try await streamError(of: "a write after finish") { () async throws(StreamError) in
                    try await near.write([1])
                }
                try expect(error == .finished, "a write after finish threw '\(error)'")
                try expect(try await readToEnd(far).isEmpty, "a byte written after the end arrived")
                try await write([5], to: far, finish: true)
                try expect(try await readToEnd(near) == [5], "the other direction was hurt")
            }
        }
    }

    func resetStream() async throws {
        try await withConversation { talk in
            for (from, to) in talk.directions {
                let (other, otherFar) = try await openPair(from, to)
                let (near, far) = try await openPair(from, to)
                async let waiting: Void = seesReset(far, "the peer of a reset")
                try await letItWait()
                try await within("resetting") { await near.reset(0x100) }
                try await waiting
                let read = try await streamError(of: "a read after the own reset") { () async throws(StreamError) in
                    try await near.read(upTo: 10)
                }
                let write = try await streamError(of: "a write after the own reset") { () async throws(StreamError) in
                    try await near.write([1])
                }
                for error in [read, write] {
                    try expect(error.resetCode != nil, "after the own reset a call threw '\(error)'")
                }
                let code = try await streamError(of: "reading again") { () async throws(StreamError) in
                    try await far.read(upTo: 10)
                }.resetCode
                try expect(
                    code == 0x100 || code == 0, "the code 0x100 arrived as \(code.map { "\($0)" } ?? "no reset")")
                // Resetting again is harmless, and nothing else was hurt.
                try await within("resetting again") { await near.reset(7) }
                try await self.write([4, 2], to: other, finish: true)
                try expect(try await readToEnd(otherFar) == [4, 2], "another stream was hurt by the reset")
            }
            try await stillTalks(talk)
        }
    }

    func finishedStreamOutlivesClose() async throws {
        try await withConversation { talk in
            let (near, far) = try await openPair(talk.near, talk.far)
            let (_, unfinished) = try await openPair(talk.near, talk.far)
            let sent = Pattern.bytes(50_000)
            try await write(sent, to: near, finish: true)
            try await within("closing") { await talk.near.close() }
            try await close(of: "receiving after the close") { () async throws(Close) in try await talk.far.receive() }
            // Finished streams are delivered, those still open are reset.
            try expect(try await readToEnd(far) == sent, "the bytes of a finished stream were lost in the close")
            let error = try await streamError(of: "reading a stream that was open") { () async throws(StreamError) in
                while let part = try await unfinished.read(upTo: 100) { _ = part }
                throw .misuse("an end was seen where there was none")
            }
            try expect(error.resetCode != nil || error.close != nil, "a stream that was open ended with '\(error)'")
        }
    }
}
