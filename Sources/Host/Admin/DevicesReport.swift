internal import TransportKit

/// The devices of a box: the answer to `transportkit devices`.
package struct DevicesReport: ControlAnswer, Sendable {
    /// One device.
    package struct Device: Codable, Sendable {
        /// Its public key.
        package var key: String
        package var name: String?
        /// When it was paired.
        package var added: Int64
        /// How many sessions it has now.
        package var sessions: Int
    }

    /// The id of the home.
    package var home: String
    package var now: Int64
    package var devices: [Device]

    /// As a person reads it.
    package var lines: [String] {
        var table = TextTable(["device", "name", "paired", "sessions"])
        for device in devices {
            let age = StatusText.span(max(now.subtractingReportingOverflow(device.added).partialValue, 0))
            table.add([device.key, device.name ?? "–", "\(age) ago", "\(device.sessions)"])
        }
        return table.isEmpty ? ["no device is paired; `transportkit pair` adds one"] : table.lines
    }
}

/// A pairing line: the answer to `transportkit pair`. It is a secret until it is used.
package struct PairReport: ControlAnswer, Sendable {
    package var line: String
    package var home: String
    /// How long the line is good.
    package var secondsLeft: Int64
    /// Whether the box is linked to its door now.
    package var isLinked: Bool
}
