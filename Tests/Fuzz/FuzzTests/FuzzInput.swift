import TransportKit

/// One input, from which a target takes its choices before it reads the rest. One that is too short chooses zeros.
struct FuzzInput {
    private var bytes: Bytes

    init(_ bytes: Bytes) {
        self.bytes = bytes
    }

    var isEmpty: Bool { bytes.isEmpty }

    mutating func byte() -> UInt8 {
        bytes.isEmpty ? 0 : bytes.takeFirst(1)[0]
    }

    /// The rest of the input.
    mutating func rest() -> Bytes {
        defer { bytes = Bytes() }
        return bytes
    }

    /// The rest of the input whole, and the same cut into pieces: whatever reads a stream must read both alike.
    mutating func wholeAndPieces() -> (whole: Bytes, pieces: [Bytes]) {
        let size = Int(byte() % 32) + 1
        let whole = rest()
        var left = whole
        var pieces: [Bytes] = []
        // Copies, so that reading past the end of one is seen.
        while !left.isEmpty { pieces.append(Bytes(Array(left.takeFirst(min(size, left.count))))) }
        return (whole, pieces)
    }
}

extension FuzzInput {
    /// The rest of the input as text, mended where it is not UTF-8.
    mutating func text() -> String { String(decoding: Array(rest()), as: UTF8.self) }
}
