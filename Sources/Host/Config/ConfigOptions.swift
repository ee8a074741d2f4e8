internal import TransportKit

/// The options of one plug-in as they stand in the config file.
struct ConfigOptions: OptionsSource {
    /// The mapping that holds the options.
    let node: ConfigNode
    /// Keys of the same mapping that are the host's own, such as `kind`; they are none of the plug-in's.
    let hostKeys: [String]

    /// The options of a plug-in that is given none.
    static var none: ConfigOptions {
        let nothing = ConfigNode(value: .mapping([]), place: SourcePlace(file: "no options"), path: "")
        return ConfigOptions(nothing, hostKeys: [])
    }

    init(_ node: ConfigNode, hostKeys: [String]) {
        self.node = node
        self.hostKeys = hostKeys
    }

    func decode<Options: Decodable>(_ type: Options.Type) throws -> Options {
        let errors = ConfigErrorList()
        let decoder = ConfigDecoder(node: node.without(Set(hostKeys)), errors: errors, hostKeys: hostKeys)
        do {
            let options = try Options(from: decoder)
            decoder.reportUnknownKeys()
            guard errors.errors.isEmpty else { throw ConfigErrors(errors.errors) }
            return options
        } catch is AlreadyReported {
            throw ConfigErrors(errors.errors)
        } catch let error as ConfigErrors {
            throw error
        } catch {
            decoder.reportUnknownKeys()
            errors.add(ConfigDecoder.placed(error, at: node))
            throw ConfigErrors(errors.errors)
        }
    }

    func invalid(_ key: String, _ what: String) -> any Error {
        node.nearest(to: key).error(what, belowIt: key, of: node)
    }
}

extension ConfigNode {
    /// An error here that names the path which was asked for, also where the file does not hold all of it.
    fileprivate func error(_ message: String, belowIt key: String, of parent: ConfigNode) -> ConfigError {
        ConfigError(message, at: place, path: parent.path.isEmpty ? key : "\(parent.path).\(key)")
    }
}
