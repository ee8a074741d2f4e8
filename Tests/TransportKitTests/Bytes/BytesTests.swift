import Testing
import TransportKit
import TransportKitTesting

@Suite struct BytesTests {
    @Test func `Copies and slices share, and a change is nobody else's`() {
        let original = Bytes([1, 2, 3, 4, 5])
        var copy = original
        let slice = original[1..<4]
        copy[0] = 9
        copy.append(6)
        #expect(original == [1, 2, 3, 4, 5])
        #expect(slice == [2, 3, 4])
        #expect(copy == [9, 2, 3, 4, 5, 6])
    }

    @Test func `A slice that grows does not overwrite what follows it`() {
        let original = Bytes([1, 2, 3, 4])
        var front = original.prefix(2)
        front.append(7)
        var back = original.dropFirst(2)
        back.prepend(contentsOf: [8])
        #expect(original == [1, 2, 3, 4])
        #expect(front == [1, 2, 7])
        #expect(back == [8, 3, 4])
    }

    @Test func `A header goes into the headroom without moving the payload`() {
        var bytes = Bytes(capacity: 4, headroom: 3)
        bytes.append(contentsOf: [4, 5, 6, 7])
        let before = bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        bytes.prepend(contentsOf: [1, 2, 3])
        let after = bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        #expect(bytes == [1, 2, 3, 4, 5, 6, 7])
        #expect(after == before - 3)
        #expect(bytes.headroom == 0)
    }

    @Test func `A header without headroom still goes before the payload`() {
        var bytes = Bytes([3, 4])
        bytes.prepend(contentsOf: [1, 2])
        bytes.prepend(contentsOf: Bytes())
        #expect(bytes == [1, 2, 3, 4])
    }

    @Test func `Taking from the front leaves the rest, and what was taken stays`() {
        var bytes = Bytes([1, 2, 3, 4])
        let taken = bytes.takeFirst(3)
        bytes.append(5)
        bytes[0] = 0
        #expect(taken == [1, 2, 3])
        #expect(bytes == [0, 5])
        bytes.removeFirst(2)
        #expect(bytes.isEmpty)
    }

    @Test func `Bytes can be appended and prepended to themselves`() {
        var bytes = Bytes([1, 2])
        bytes.append(contentsOf: bytes)
        bytes.prepend(contentsOf: bytes)
        #expect(bytes == [1, 2, 1, 2, 1, 2, 1, 2])
    }

    @Test func `A buffer that is filled at one end and emptied at the other stays small`() {
        var bytes = Bytes()
        for round in 0..<10_000 {
            bytes.append(contentsOf: Bytes(repeating: UInt8(truncatingIfNeeded: round), count: 100))
            // Never empty, so that it is never simply dropped.
            if round > 0 { bytes.removeFirst(100) }
        }
        #expect(bytes.count == 100)
        #expect(bytes.headroom + bytes.count + bytes.tailroom < 10_000)
    }

    @Test func `Empty windows are equal, however they came to be`() {
        var emptied = Bytes([1])
        emptied.removeFirst(1)
        var cleared = Bytes([1, 2])
        cleared.removeAll()
        var shared = Bytes([1, 2])
        let other = shared
        shared.removeAll()
        let empty: [Bytes] = [Bytes(), [], emptied, cleared, shared, Bytes(""), other.prefix(0), other.dropFirst(9)]
        for bytes in empty {
            #expect(bytes == Bytes())
            #expect(bytes.hashValue == Bytes().hashValue)
            #expect(bytes.withUnsafeBytes { $0.count } == 0)
        }
        #expect(other == [1, 2])
    }

    @Test func `A fill that writes less than its room gives only what it wrote`() {
        var bytes = Bytes(unsafeUninitializedCapacity: 10, headroom: 2) { room in
            room[0] = 1
            return 1
        }
        bytes.append(unsafeUninitializedCapacity: 10) { room in
            room[0] = 2
            room[1] = 3
            return 2
        }
        #expect(bytes == [1, 2, 3])
        #expect(bytes.headroom == 2)
    }

    @Test func `A fill that throws changes nothing`() {
        struct Failure: Error {}
        var bytes = Bytes([1])
        #expect(throws: Failure.self) { try bytes.append(unsafeUninitializedCapacity: 5) { _ in throw Failure() } }
        #expect(bytes == [1])
    }

    @Test func `Text that is UTF-8 is text, and other bytes are not`() {
        #expect(String(validating: Bytes("Grüße")) == "Grüße")
        #expect(String(validating: Bytes()) == "")
        for bad in ["ff", "c3", "c080", "eda080", "f4908080"] { #expect(String(validating: Bytes(hex: bad)) == nil) }
    }

    @Test func `A description says how long it is and not what it holds`() {
        #expect("\(Bytes("secret"))" == "6 bytes")
    }

    @Test func `Sequences of any kind can be copied`() {
        #expect(Bytes(stride(from: UInt8(1), through: 5, by: 2)) == [1, 3, 5])
        #expect(Array(Bytes([1, 2, 3])) == [1, 2, 3])
        #expect(Bytes(Bytes([1, 2, 3]).lazy.map { $0 + 1 }) == [2, 3, 4])
    }
}

/// Random operations against a plain array.
@Suite struct BytesModelTests {
    @Test func `Any sequence of operations does what it does to an array`() {
        var generator = SeededGenerator.announced()
        for _ in 0..<200 {
            var bytes = Bytes(
                capacity: .random(in: 0..<40, using: &generator), headroom: .random(in: 0..<10, using: &generator))
            var model: [UInt8] = []
            // Others that hold what the bytes once were: they must never change.
            var witnesses: [(Bytes, [UInt8])] = []
            for _ in 0..<200 {
                step(&bytes, &model, &witnesses, &generator)
                #expect(bytes.count == model.count)
                guard Array(bytes) == model else {
                    Issue.record("the bytes differ from the model")
                    return
                }
            }
            for (held, expected) in witnesses { #expect(Array(held) == expected) }
        }
    }

    private func step(
        _ bytes: inout Bytes, _ model: inout [UInt8], _ witnesses: inout [(Bytes, [UInt8])],
        _ generator: inout SeededGenerator
    ) {
        let fresh = (0..<Int.random(in: 0..<30, using: &generator)).map { _ in
            UInt8.random(in: 0 ... .max, using: &generator)
        }
        let cut = Int.random(in: 0...model.count, using: &generator)
        switch Int.random(in: 0..<10, using: &generator) {
        case 0:
            bytes.append(contentsOf: fresh)
            model += fresh
        case 1:
            bytes.prepend(contentsOf: Bytes(fresh))
            model = fresh + model
        case 2:
            let taken = bytes.takeFirst(cut)
            witnesses.append((taken, Array(model.prefix(cut))))
            model.removeFirst(cut)
        case 3:
            bytes.removeFirst(cut)
            model.removeFirst(cut)
        case 4:
            bytes = bytes.prefix(cut)
            model = Array(model.prefix(cut))
        case 5:
            witnesses.append((bytes, model))
        case 6:
            guard !model.isEmpty else { return }
            let index = Int.random(in: 0..<model.count, using: &generator)
            bytes[index] = 0x55
            model[index] = 0x55
        case 7:
            bytes.withUnsafeMutableBytes { buffer in
                for index in 0..<buffer.count / 2 { buffer.swapAt(index, buffer.count - 1 - index) }
            }
            model.reverse()
        case 8:
            bytes.append(0x77)
            model.append(0x77)
        default:
            guard Int.random(in: 0..<10, using: &generator) == 0 else { return }
            bytes.removeAll()
            model = []
        }
    }
}
