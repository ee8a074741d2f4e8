import CFuzz
import Glibc
import Synchronization
import TransportKit

/// Gives a target to libFuzzer.
enum Fuzzer {
    private static let target = Mutex<FuzzTarget?>(nil)

    static var isLinked: Bool { fuzz_is_linked() }

    /// Runs until libFuzzer has had enough; an input that fails ends the process.
    static func run(_ target: FuzzTarget, arguments: [String]) -> Int32 {
        Self.target.withLock { $0 = target }
        let words = arguments.map { UnsafePointer(strdup($0)) }
        return fuzz_run(Int32(words.count), words) { data, size in
            let input = Bytes(copying: UnsafeRawBufferPointer(start: data, count: size))
            guard let target = Fuzzer.target.withLock({ $0 }) else { return 0 }
            do {
                try target(input)
            } catch {
                fatalError("\(target.name): \(error)")
            }
            return 0
        }
    }
}
