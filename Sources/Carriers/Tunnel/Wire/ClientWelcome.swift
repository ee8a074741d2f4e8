package import TransportKit

/// The payload of the door's answer to a client.
package struct ClientWelcome: Sendable, Hashable {
    /// The credit that each session begins with toward the door.
    package var window: UInt32
    /// What the box of the home can take; nil where it is not linked.
    package var box: BoxCapabilities?

    package init(window: UInt32, box: BoxCapabilities?) {
        self.window = window
        self.box = box
    }

    package init(_ payload: Bytes) throws(DoorWireError) {
        let fields = try DoorFields(greeting: payload, of: "client-welcome")
        window = try fields.window()
        box = try fields.capabilitiesIfAny()
    }

    package func encoded() -> Bytes {
        var bytes = Bytes()
        bytes.append(window: window)
        if let box { bytes.append(.caps, box.wireForm) }
        return bytes
    }
}
