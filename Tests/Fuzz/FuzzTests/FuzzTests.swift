import Foundation
import Testing
import TransportKit
import TransportKitTesting

/// Whatever reads what a peer or a file may say, fed with what nobody should say.
@Suite struct FuzzTests {
    private static let environment = ProcessInfo.processInfo.environment
    /// The target that libFuzzer is to have; set by `bin/fuzz`.
    private static let wanted = environment["TRANSPORTKIT_FUZZ"]

    @Test(arguments: FuzzTarget.all)
    func `seeds and earlier finds are read without a fault, cut short and with bits flipped too`(
        _ target: FuzzTarget
    ) throws {
        var random = SeededGenerator.announced(for: target.name)
        let inputs = try Self.inputs(of: target)
        #expect(!inputs.isEmpty)
        for input in inputs {
            try target(input)
            for _ in 0..<20 {
                var changed = input.prefix(Int.random(in: 0...input.count, using: &random))
                for _ in 0..<Int.random(in: 0...3, using: &random) where !changed.isEmpty {
                    changed[Int.random(in: 0..<changed.count, using: &random)] ^=
                        1 << UInt8.random(in: 0...7, using: &random)
                }
                try target(changed)
            }
        }
    }

    @Test(.enabled(if: wanted != nil, "bin/fuzz asks for it"))
    func `libFuzzer finds nothing`() throws {
        let target = try #require(FuzzTarget.all.first { $0.name == Self.wanted }, "there is no such target")
        try #require(Fuzzer.isLinked, "libFuzzer is not linked in; run bin/fuzz")
        let arguments = Self.environment["TRANSPORTKIT_FUZZ_ARGUMENTS"]?.split(separator: " ").map(String.init) ?? []
        try Self.withFolder(of: Self.inputs(of: target)) { folder in
            #expect(Fuzzer.run(target, arguments: arguments + [folder]) == 0)
        }
    }

    // MARK: - Inputs

    /// The seeds, and what was found once.
    private static func inputs(of target: FuzzTarget) throws -> [Bytes] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Corpus/\(target.name)")
        guard FileManager.default.fileExists(atPath: folder.path) else { return try target.seeds() }
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        return try target.seeds() + files.sorted { $0.path < $1.path }.map { Bytes(try Data(contentsOf: $0)) }
    }

    /// Makes a folder of files, to which libFuzzer adds what gets it further, and removes it afterwards.
    private static func withFolder(of inputs: [Bytes], _ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "fuzz-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (index, input) in inputs.enumerated() {
            try Data(Array(input)).write(to: folder.appending(path: "\(index)"))
        }
        try body(folder.path)
    }
}
