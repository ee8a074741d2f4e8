import Foundation
import RelayCarrier
import TransportKit

/// The files of `Tests/vectors` that hold what the relay's wire has.
enum Vectors {
    static func read<File: Decodable>(_ name: String) throws -> File {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../vectors/\(name)")
        return try JSONDecoder().decode(File.self, from: Data(contentsOf: file))
    }

    struct Handles: Decodable {
        struct Handle: Decodable { let epoch: Int64, handle: String }
        struct Epoch: Decodable { let nowMs: Int64, epoch: Int64 }
        struct Adoption: Decodable {
            struct Step: Decodable { let announced: String, offset: Int64 }
            let localEpoch: Int64
            let steps: [Step]
        }

        let infoPrefix: String
        let minSecretBytes: Int
        let secret: String
        let handles: [Handle]
        let epochMs: Int64
        let currentEpoch: [Epoch]
        let adoptEpoch: Adoption
    }

    struct Contract: Decodable {
        struct Join: Decodable { let path: String, epoch: Int64, role: String }
        struct Client: Decodable {
            let backoffBaseMs, backoffCapMs, attemptCap: Int
            let rotateJitterMs: [String: Int]
            let correctionLimit: Int
            let maxEpochCorrection: Int64
            let wakeKeepsDialYoungerThanMs: Int
        }
        struct Box: Decodable {
            let dialTimeoutMs, writeTimeoutMs, readTimeoutMs, maxSessions, backoffResetAfterConnectedMs: Int
        }

        let controlWords: [String]
        let joinAccept: [Join]
        let joinRefuse: [String]
        let client: Client
        let box: Box
    }
}

extension WallTime {
    /// That many epochs after 1970, and so many seconds.
    static func epoch(_ epoch: Int64, _ seconds: Int64 = 0) -> WallTime {
        WallTime(seconds: epoch * RelayEpoch.seconds + seconds)
    }
}
