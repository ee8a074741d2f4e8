internal import DoorService
internal import NoiseCarrier
internal import Synchronization
internal import TransportKit

/// The door of a host, whose two services share one table: made when the first of its routes is.
final class DoorServices: Sendable {
    /// The options of `door.app` and `door.box`.
    private struct Options: Decodable, Hashable {
        /// The files of the door's keys: one, or two while they change.
        var keys: OneOrMoreFiles
        var door: DoorOptions

        private enum CodingKeys: String, CodingKey, CaseIterable { case keys }

        init(from decoder: any Decoder) throws {
            keys = try decoder.container(keyedBy: CodingKeys.self).decode(OneOrMoreFiles.self, forKey: .keys)
            door = try DoorOptions(from: decoder)
        }
    }

    private struct OneOrMoreFiles: Decodable, Hashable {
        let names: [String]

        init(from decoder: any Decoder) throws { names = try OneOrMore<String>(from: decoder).elements }
    }

    private let made = Mutex<(options: Options, door: Door)?>(nil)

    /// What answers clients.
    func app(_ source: any OptionsSource, _ context: BuildContext) throws -> any Service {
        try door(source, context).appService
    }

    /// What answers boxes.
    func box(_ source: any OptionsSource, _ context: BuildContext) throws -> any Service {
        try door(source, context).boxService
    }

    private func door(_ source: any OptionsSource, _ context: BuildContext) throws -> Door {
        let options = try source.decode(Options.self)
        if let made = made.withLock({ $0 }) {
            guard made.options == options else {
                throw source.invalid(
                    "keys",
                    "stand beside other options than on the door's other route; one host is one door, so write alike")
            }
            return made.door
        }
        guard (1...2).contains(options.keys.names.count) else {
            throw source.invalid(
                "keys", "names \(options.keys.names.count) files; a door has one key, or two while they change")
        }
        var keys: [StaticPrivateKey] = []
        for name in options.keys.names {
            if let problem = FileCheck.problem(naming: name) { throw source.invalid("keys", problem) }
            do throws(TransportError) {
                keys.append(try KeyFile.read(context.path(name)))
            } catch {
                throw source.invalid("keys", error.message)
            }
        }
        do throws(DoorOptions.Invalid) {
            let door = try Door(
                keys: keys, options: options.door, executor: context.executor, time: context.time, log: context.log,
                metrics: context.metrics)
            made.withLock { $0 = (options, door) }
            return door
        } catch {
            throw source.invalid(error.key, error.description)
        }
    }
}
