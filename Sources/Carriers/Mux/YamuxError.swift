/// Why an end goes away.
enum YamuxGoAway: UInt32 {
    case normal = 0
    case protocolError = 1
    case internalError = 2
}

/// How a peer broke the rules of yamux. Every case ends the session with 1002.
enum YamuxError: Error, Equatable {
    case version(UInt8)
    case kind(UInt8)
    case streamOfSession(UInt32)
    case foreignNumber(UInt32)
    case reusedNumber(UInt32)
    case neverOpened(UInt32)
    case lanesMissing(UInt32)
    case overWindow(stream: UInt32, announced: UInt32, window: Int)
    case windowOverflow(UInt32)
    case dataAfterEnd(UInt32)
    case laneEnded(UInt32)
    case wentAway(UInt32)
    case flood
}

extension YamuxError: CustomStringConvertible {
    var description: String {
        switch self {
        case .version(let version): "a frame of yamux version \(version); only 0 is known"
        case .kind(let kind): "a yamux frame of the unknown type \(kind)"
        case .streamOfSession(let id): "a ping or go-away on stream \(id); they belong to stream 0"
        case .foreignNumber(let id): "the peer opened stream \(id), a number that is not its own to give"
        case .reusedNumber(let id): "the peer opened stream \(id) after a higher number"
        case .neverOpened(let id): "a frame on stream \(id), which nobody opened"
        case .lanesMissing(let id): "the peer opened stream \(id) before the streams 1 and 3 of the messages"
        case .overWindow(let id, let announced, let window):
            "\(announced) bytes announced on stream \(id), whose window is \(window)"
        case .windowOverflow(let id): "the window of stream \(id) was raised past 32 bits"
        case .dataAfterEnd(let id): "data on stream \(id) after its end"
        case .laneEnded(let id): "stream \(id), which carries messages, was ended"
        case .wentAway(let code): "the peer went away with code \(code)"
        case .flood: "the peer asks for more answers than it takes"
        }
    }
}
