/// The kinds of frames (RFC 6455 §5.2). Numbers that are not here are reserved.
enum Opcode: UInt8 {
    case continuation = 0
    case text = 1
    case binary = 2
    case close = 8
    case ping = 9
    case pong = 10

    var isControl: Bool {
        switch self {
        case .continuation, .text, .binary: false
        case .close, .ping, .pong: true
        }
    }
}
