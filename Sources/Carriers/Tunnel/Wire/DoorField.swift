internal import TransportKit

/// The fields of handshake payloads and control messages. A number means the same wherever it stands.
enum DoorField: UInt8 {
    case home = 1
    case pair = 2
    case tun = 3
    case window = 4
    case caps = 5
    case device = 6
    case sid = 7
    case total = 8
    case keys = 9
    case more = 10
    case seconds = 11
    case nonce = 12
    // Those of a pairing line, which is no message of a link.
    case box = 13
    case doors = 14
    case code = 15
    case url = 16
    case pins = 17

    var name: String {
        switch self {
        case .home: "home"
        case .pair: "pair"
        case .tun: "tun"
        case .window: "window"
        case .caps: "caps"
        case .device: "device"
        case .sid: "sid"
        case .total: "total"
        case .keys: "keys"
        case .more: "more"
        case .seconds: "seconds"
        case .nonce: "nonce"
        case .box: "box"
        case .doors: "doors"
        case .code: "code"
        case .url: "url"
        case .pins: "pins"
        }
    }
}

extension Bytes {
    /// Writes a field: its number, the length of its value as a varint, its value.
    mutating func append(_ field: DoorField, _ value: Bytes) {
        append(field.rawValue)
        Varint.append(UInt64(value.count), to: &self)
        append(contentsOf: value)
    }

    mutating func append(_ field: DoorField, _ value: UInt32) {
        append(field.rawValue)
        append(4)
        append(bigEndian: value)
    }

    mutating func append(_ field: DoorField, _ value: UInt64) {
        append(field.rawValue)
        append(8)
        append(bigEndian: value)
    }

    mutating func append(window: UInt32) {
        precondition(DoorLimits.window.contains(window), "a window of \(window) bytes")
        append(.window, window)
    }
}
