internal import TransportKit

extension BoxCapabilities {
    /// Reads names that are each preceded by their length in one byte; nil unless they are usable and strictly ascending.
    init?(reading bytes: Bytes) {
        var names: [String] = []
        var rest = bytes
        while !rest.isEmpty {
            let length = Int(rest[0])
            guard names.count < Self.maxNames, rest.count > length else { return nil }
            guard let name = String(validating: rest[1..<1 + length]) else { return nil }
            names.append(name)
            rest.removeFirst(1 + length)
        }
        self.init(names)
        // Sorted and without doubles they must still be what was read.
        guard self.names == names else { return nil }
    }

    /// The names, each preceded by its length in one byte.
    var wireForm: Bytes {
        names.reduce(into: Bytes()) { bytes, name in
            bytes.append(UInt8(name.utf8.count))
            bytes.append(contentsOf: Array(name.utf8))
        }
    }
}
