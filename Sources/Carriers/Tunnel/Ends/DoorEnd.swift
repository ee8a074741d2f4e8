internal import NoiseCarrier
internal import TransportKit

/// What an end of a link is to its door, and with what it comes.
enum DoorEnd: Sendable {
    case client(ClientHello)
    /// With the devices of its home, and the pairing codes that it waits for: who comes with one is let in or refused when the
    /// roster takes effect, so they are said before it.
    case box(BoxHello, roster: [StaticPublicKey], expects: [DoorControl] = [])

    /// The direction of what it sends.
    var sends: DoorWay {
        switch self {
        case .client: .clientToDoor
        case .box: .boxToDoor
        }
    }

    /// The direction of what it reads.
    var reads: DoorWay {
        switch self {
        case .client: .doorToClient
        case .box: .doorToBox
        }
    }

    /// The credit that each session begins with toward it.
    var window: UInt32 {
        switch self {
        case .client(let hello): hello.window
        case .box(let hello, _, _): hello.window
        }
    }

    /// What travels in message 1.
    var payload: Bytes {
        switch self {
        case .client(let hello): hello.encoded()
        case .box(let hello, _, _): hello.encoded()
        }
    }
}
