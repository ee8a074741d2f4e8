internal import FoundationEssentials
internal import NoiseCarrier
internal import TransportKit

/// The devices of a box as they stand in a file: JSON with a version.
package struct StoredDevices: Codable, Sendable {
    /// The version that this program writes.
    static let version = 1

    /// Why a file cannot be used.
    enum Unreadable: Error {
        /// A newer program has written it.
        case newer(Int)
        /// It is not what this program writes.
        case broken
    }

    /// One device.
    package struct Device: Codable, Sendable, Hashable {
        /// Its public key.
        package var key: String
        /// What its owner calls it.
        package var name: String?
        /// When it was paired, in seconds since 1970.
        package var added: Int64

        init(_ key: StaticPublicKey, added: Int64) {
            self.key = "\(key)"
            self.added = added
        }

        var publicKey: StaticPublicKey? { StaticPublicKey(key) }
    }

    var version = Self.version
    var devices: [Device]

    private struct Header: Decodable {
        var version: Int
    }

    init(_ devices: [Device]) { self.devices = devices }

    /// Reads a file's bytes. A device whose key is none makes the whole file one that cannot be used.
    init(_ bytes: [UInt8]) throws(Unreadable) {
        let data = Data(bytes)
        let decoder = JSONDecoder()
        guard let header = try? decoder.decode(Header.self, from: data) else { throw .broken }
        guard header.version <= Self.version else { throw .newer(header.version) }
        guard header.version == Self.version, let stored = try? decoder.decode(StoredDevices.self, from: data),
            stored.devices.allSatisfy({ $0.publicKey != nil }),
            Set(stored.devices.map(\.key)).count == stored.devices.count
        else { throw .broken }
        self = stored
        for index in devices.indices {
            devices[index].added = min(max(devices[index].added, 0), 1 << 40)
            devices[index].name = devices[index].name?.printable(limit: 64)
        }
    }

    /// The file's bytes.
    func encoded() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        return Array(try encoder.encode(self)) + [0x0a]
    }
}
