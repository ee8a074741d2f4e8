/// What a door and a client, or a door and a box, say to each other once their handshake is done.
package enum DoorControl: Sendable, Hashable {
    /// A client is really there, and takes the place of the device's earlier link.
    case enter
    /// The client is in.
    case entered
    /// The box of the home has linked, and what it can take; or has left.
    case box(BoxCapabilities?)
    /// How much the other end may have sent altogether in one session.
    case credit(device: DeviceID?, session: TunnelSessionID, total: UInt64)
    /// The devices of the home, or a part of them with more to come.
    case roster(DeviceKeys, more: Bool)
    /// The home is served over this link.
    case linked
    /// Devices that have come to the home.
    case admit(DeviceKeys)
    /// Devices that have left the home.
    case revoke(DeviceKeys)
    /// Somebody will come with a pairing code.
    case expect(PairingHash, seconds: UInt32)
    /// The pairing code is used, or taken back.
    case forget(PairingHash)
    /// Is this link still the one that is routed by?
    case check(nonce: UInt64)
    /// It is.
    case here(nonce: UInt64)
    /// A type that this version does not know. It is passed over.
    case unknown(UInt8)

    /// The types on the wire.
    enum Kind: UInt8 {
        case enter = 0x01
        case entered = 0x02
        case box = 0x03
        case credit = 0x04
        case check = 0x05
        case here = 0x06
        case roster = 0x10
        case linked = 0x11
        case admit = 0x12
        case revoke = 0x13
        case expect = 0x14
        case forget = 0x15

        var name: String {
            switch self {
            case .enter: "enter"
            case .entered: "entered"
            case .box: "box"
            case .credit: "credit"
            case .check: "check"
            case .here: "here"
            case .roster: "roster"
            case .linked: "linked"
            case .admit: "admit"
            case .revoke: "revoke"
            case .expect: "expect"
            case .forget: "forget"
            }
        }

        /// Whether it is said in this direction.
        func isSaid(_ way: DoorWay) -> Bool {
            switch self {
            case .enter: way == .clientToDoor
            case .entered, .box: way == .doorToClient
            case .credit: true
            case .check: way == .clientToDoor || way == .boxToDoor
            case .here: way == .doorToClient || way == .doorToBox
            case .roster, .admit, .revoke, .expect, .forget: way == .boxToDoor
            case .linked: way == .doorToBox
            }
        }
    }
}
