internal import Synchronization
internal import TransportKit

/// A name server that answers for the names that the test gives it, over UDP.
package final class NameServer: Sendable {
    /// What it does with a question.
    package enum Mood: Sendable {
        case answering
        /// SERVFAIL.
        case failing
        /// Nothing at all.
        case silent
    }

    private struct Zone {
        var records: [String: (addresses: [String], seconds: UInt32)] = [:]
        var mood = Mood.answering
        var questions = 0
    }

    private let zone = Mutex(Zone())

    /// Starts it at port 53 of `namespace`, until the rig is removed.
    package init(in namespace: Namespace, rig: Rig) throws {
        let socket = try namespace.bindUDP("0.0.0.0", port: 53)
        rig.run { [self] in
            while !Task.isCancelled { try? await blocking { try self.serve(socket) } }
        }
    }

    /// Says which addresses a name has, IPv4 and IPv6 mixed, and for how many seconds an answer holds.
    package func set(_ name: String, _ addresses: [String], seconds: UInt32 = 5) {
        zone.withLock { $0.records[name.lowercased()] = (addresses, seconds) }
    }

    package func set(_ mood: Mood) { zone.withLock { $0.mood = mood } }

    /// How many questions have come.
    package var questions: Int { zone.withLock { $0.questions } }

    private func serve(_ socket: RawSocket) throws {
        // Short, so that the end of the rig is noticed.
        let question = try socket.receiveDatagram(within: .milliseconds(100))
        guard let answer = answer(to: question.bytes) else { return }
        try socket.send(answer, to: (question.address, question.port))
    }

    /// RFC 1035 §4: one question, answered from the zone; nil where nothing is to be said.
    private func answer(to question: [UInt8]) -> [UInt8]? {
        guard question.count >= 12, question[2] & 0x80 == 0, question[5] == 1 else { return nil }
        var name: [String] = []
        var at = 12
        while at < question.count, question[at] != 0 {
            let end = at + 1 + Int(question[at])
            guard question[at] < 64, end < question.count else { return nil }
            name.append(String(decoding: question[(at + 1)..<end], as: UTF8.self))
            at = end
        }
        guard at + 5 <= question.count else { return nil }
        let kind = UInt16(question[at + 1]) << 8 | UInt16(question[at + 2])
        let (mood, record) = zone.withLock { zone in
            zone.questions += 1
            return (zone.mood, zone.records[name.joined(separator: ".").lowercased()])
        }
        if case .silent = mood { return nil }
        let isFailing = if case .failing = mood { true } else { false }
        let addresses =
            isFailing
            ? []
            : (record?.addresses ?? []).compactMap(Self.bytes).filter { bytes in
                kind == (bytes.count == 4 ? 1 : 28)
            }
        let code: UInt8 = isFailing ? 2 : record == nil ? 3 : 0
        // An authoritative answer; the question is repeated, and each record's name points at it.
        var answer = Array(question[0..<2]) + [0x84 | question[2] & 1, 0x80 | code, 0, 1, 0, UInt8(addresses.count)]
        answer += [0, 0, 0, 0] + question[12..<(at + 5)]
        for address in addresses {
            let seconds = record?.seconds ?? 0
            answer += [0xc0, 12, UInt8(kind >> 8), UInt8(kind & 255), 0, 1]
            answer += (0..<4).map { UInt8(truncatingIfNeeded: seconds >> (24 - 8 * UInt32($0))) }
            answer += [0, UInt8(address.count)] + address
        }
        return answer
    }

    private static func bytes(of address: String) -> [UInt8]? {
        if let address = IPv4Address(address) {
            return (0..<4).map { UInt8(truncatingIfNeeded: address.value >> (24 - 8 * UInt32($0))) }
        }
        guard let address = IPv6Address(address) else { return nil }
        return [address.high, address.low].flatMap { half in
            (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * UInt64($0))) }
        }
    }
}
