import QUICTransport
import TransportHost
import TransportKit

extension FuzzTarget {
    /// Everything that stands in front of something else on a stream, and the texts that name a place: read alike however it
    /// is cut, and written as it was read.
    static let framing = FuzzTarget(name: "framing") {
        let forms: [(UInt8, [UInt8])] = [
            (0, [6] + Array("/v1/ap".utf8) + [3, 1, 2, 3, 0]), (1, [3, 1, 2, 3, 0x40, 1, 9]), (2, [0, 2, 7, 7]),
            (3, [0x80, 0, 0, 2, 5, 5]), (4, [20] + Array("tcp://127.0.0.1:9001rest".utf8)),
            (5, [0x51, 0x3c, 4] + Array("nope".utf8)), (6, Array("/v1/app?token=1".utf8)),
            (7, Array("wss://[2001:db8::1]:8443/path?query".utf8)), (8, Array("tcp://host.example:443".utf8)),
        ]
        return forms.map { Bytes([$0.0, 2] + $0.1) }
    } run: { input in
        switch input.byte() % 9 {
        case 0: try agree(&input) { read(.target(thenMessagesUpTo: 4096), $0) }
        case 1: try agree(&input) { read(.messages(upTo: 4096), $0) }
        case 2: try agree(&input) { read(.unidirectional(messagesUpTo: 4096), $0) }
        case 3: try agree(&input, lengthPrefixed)
        case 4: try agree(&input, request)
        case 5: try agree(&input, answer)
        case 6:
            guard let target = Target(input.text()) else { return }
            try demand(Target(target.wireForm) == target, "the target \(target.wireForm) changed")
        case 7:
            guard let url = try? ServiceURL(input.text()) else { return }
            let written = "\(url.endpoint)\(url.target.wireForm)"
            try demand(try ServiceURL(written) == url, "the URL \(written) changed")
        case _:
            guard let endpoint = try? TCPEndpoint(input.text()) else { return }
            try demand(try TCPEndpoint("\(endpoint)") == endpoint, "the address \(endpoint) changed")
        }
    }

    /// The same bytes whole and in pieces give the same.
    private static func agree(_ input: inout FuzzInput, _ read: ([Bytes]) -> [String]) throws {
        let (whole, pieces) = input.wholeAndPieces()
        let (one, other) = (read([whole]), read(pieces))
        try demand(one == other, "whole: \(one); in pieces: \(other)")
    }

    private static func read(_ reader: FramedInput, _ pieces: [Bytes]) -> [String] {
        var reader = reader
        var read: [String] = []
        for piece in pieces {
            do throws(FramedInput.Failure) {
                try piece.withUnsafeBytes { (bytes) throws(FramedInput.Failure) in
                    try reader.feed(bytes) { read.append("\($0.isTarget) \($0.cost) \(Array($0.payload))") }
                }
            } catch {
                return read + ["\(error)"]
            }
        }
        return read + ["\(reader.isBetweenItems)"]
    }

    private static func lengthPrefixed(_ pieces: [Bytes]) -> [String] {
        var reader = LengthPrefixedMessages(limit: 4096)
        var read: [String] = []
        for piece in pieces {
            reader.feed(piece)
            do {
                while let message = try reader.next() { read.append("\(Array(message))") }
            } catch {
                return read + ["\(error)"]
            }
        }
        return read + ["\(reader.isBetweenMessages)"]
    }

    private static func request(_ pieces: [Bytes]) -> [String] {
        var reader = ForwardHeader.RequestReader()
        var address: String?
        for piece in pieces {
            reader.feed(piece)
            guard address == nil else { continue }
            do {
                address = try reader.next()
            } catch {
                return ["\(error)"]
            }
        }
        return [address ?? "none", address == nil ? "" : "\(Array(reader.rest))"]
    }

    private static func answer(_ pieces: [Bytes]) -> [String] {
        var reader = ForwardHeader.AnswerReader()
        var answer: ForwardHeader.AnswerReader.Answer?
        for piece in pieces {
            reader.feed(piece)
            guard answer == nil else { continue }
            do {
                answer = try reader.next()
            } catch {
                return ["\(error)"]
            }
        }
        return ["\(answer, default: "none")", answer == nil ? "" : "\(Array(reader.rest))"]
    }
}
