internal import Foundation
internal import RigSupport
internal import TransportIO

/// Measures on the rig's shaped links and prints tables; `bin/tables` builds and runs it.
@main
struct Main {
    private static let usage = """
        usage: tables [--short] [--samples N] [--only connect|switch] [--earlier FILE] [--write FILE --commit NAME]
        """

    static func main() async {
        FreedMemory.keep()
        do {
            let options = try Options(Array(CommandLine.arguments.dropFirst()))
            if let missing = Privilege.missing {
                complain("tables: skipped: \(missing)")
                return
            }
            let faults = try await run(options)
            for fault in faults { complain("tables: \(fault)") }
            exit(faults.isEmpty ? 0 : 1)
        } catch let error as Options.Invalid {
            complain("tables: \(error.description)\n\(usage)")
            exit(2)
        } catch {
            complain("tables: \(error)")
            exit(1)
        }
    }

    /// - Returns: what is wrong with the figures.
    private static func run(_ options: Options) async throws -> [String] {
        let earlier = try Earlier(file: options.earlier)
        let losses = options.isShort ? [0] : [0, 1, 5]
        var tables: [Table] = []
        var faults: [String] = []
        if options.wants("connect") {
            let rows = try await Connect.measure(losses, samples: options.samples)
            tables.append(Connect.table(rows, samples: options.samples, earlier: earlier))
            faults += Connect.faults(rows, samples: options.samples)
        }
        if options.wants("switch") {
            let rows = try await Switch.measure(losses, changes: options.isShort ? 2 : 6)
            tables.append(Switch.table(rows, earlier: earlier))
            faults += Switch.faults(rows)
        }
        let text = tables.map(\.markdown).joined(separator: "\n\n")
        print("\n\(text)\n")
        if let file = options.file { try Page.write(text, into: file, commit: options.commit) }
        return faults
    }

    private static func complain(_ line: String) {
        FileHandle.standardError.write(Data("\(line)\n".utf8))
    }
}
