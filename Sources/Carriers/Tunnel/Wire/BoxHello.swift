package import TransportKit

/// The payload of a box's message 1 to the door.
package struct BoxHello: Sendable, Hashable {
    /// The credit that each session begins with toward the box.
    package var window: UInt32
    package var capabilities: BoxCapabilities

    package init(window: UInt32, capabilities: BoxCapabilities) {
        self.window = window
        self.capabilities = capabilities
    }

    package init(_ payload: Bytes) throws(DoorWireError) {
        let fields = try DoorFields(greeting: payload, of: "box-hello")
        window = try fields.window()
        capabilities = try fields.capabilities()
    }

    package func encoded() -> Bytes {
        var bytes = Bytes()
        bytes.append(window: window)
        bytes.append(.caps, capabilities.wireForm)
        return bytes
    }
}
