package import TransportKit

/// The payload of the door's answer to a box.
package struct BoxWelcome: Sendable, Hashable {
    /// The credit that each session begins with toward the door.
    package var window: UInt32

    package init(window: UInt32) {
        self.window = window
    }

    package init(_ payload: Bytes) throws(DoorWireError) {
        window = try DoorFields(greeting: payload, of: "box-welcome").window()
    }

    package func encoded() -> Bytes {
        var bytes = Bytes()
        bytes.append(window: window)
        return bytes
    }
}
