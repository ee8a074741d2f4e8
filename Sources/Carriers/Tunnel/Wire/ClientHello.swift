package import TransportKit

/// The payload of a client's message 1 to the door: which home, and what lets it in.
package struct ClientHello: Sendable, Hashable {
    package var home: HomeID
    /// The hash of the pairing code that the client holds.
    package var pair: PairingHash?
    /// The first message of the session with the box, of the kind `begin` (R77).
    package var tun: TunnelFrame?
    /// The credit that each session begins with toward the client.
    package var window: UInt32

    package init(home: HomeID, pair: PairingHash? = nil, tun: TunnelFrame? = nil, window: UInt32) {
        self.home = home
        self.pair = pair
        self.tun = tun
        self.window = window
    }

    package init(_ payload: Bytes) throws(DoorWireError) {
        let fields = try DoorFields(greeting: payload, of: "client-hello")
        home = try fields.home()
        pair = try fields.pairIfAny()
        tun = try fields.firstFrameIfAny()
        window = try fields.window()
    }

    package func encoded() -> Bytes {
        var bytes = Bytes()
        bytes.append(.home, home.bytes)
        if let pair { bytes.append(.pair, pair.bytes) }
        if let tun {
            precondition(tun.kind == .begin && tun.device == nil, "message 1 carries the beginning of a session")
            // As on the wire, without the kind.
            bytes.append(.tun, tun.encoded().dropFirst())
        }
        bytes.append(window: window)
        return bytes
    }
}
