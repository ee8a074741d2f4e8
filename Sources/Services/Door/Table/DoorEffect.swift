internal import TransportKit

/// What a driver has to do after the table has changed.
enum DoorEffect: Sendable, Equatable {
    /// The link has something to send.
    case wake(UInt64)
    /// The link has ended: its socket is closed with this.
    case close(UInt64, CloseCode, String)
    case log(LogLevel, String)
    /// A counter has grown.
    case count(String, Int)
    /// A gauge has changed.
    case gauge(String, Int)
}
