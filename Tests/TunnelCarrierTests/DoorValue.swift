import NoiseCarrier
import TransportKit

@testable import TunnelCarrier

/// Any value of the door's wire, so that tests can treat them alike.
enum DoorValue: Hashable {
    case message(DoorMessage)
    case control(DoorControl)
    case clientHello(ClientHello)
    case clientWelcome(ClientWelcome)
    case boxHello(BoxHello)
    case boxWelcome(BoxWelcome)

    static func decode(_ reads: String, _ bytes: Bytes, _ way: DoorWay, isDatagram: Bool = false)
        throws(DoorWireError) -> DoorValue
    {
        switch reads {
        case "message": .message(try DoorMessage.decode(bytes, way, isDatagram: isDatagram))
        case "control": .control(try DoorControl.decode(bytes, way))
        case "client-hello": .clientHello(try ClientHello(bytes))
        case "client-welcome": .clientWelcome(try ClientWelcome(bytes))
        case "box-hello": .boxHello(try BoxHello(bytes))
        case "box-welcome": .boxWelcome(try BoxWelcome(bytes))
        case _: preconditionFailure("nothing reads \(reads)")
        }
    }

    /// What decodes it.
    var reads: String {
        switch self {
        case .message: "message"
        case .control: "control"
        case .clientHello: "client-hello"
        case .clientWelcome: "client-welcome"
        case .boxHello: "box-hello"
        case .boxWelcome: "box-welcome"
        }
    }

    /// The bytes, or nil for what is not sent.
    func encoded() -> Bytes? {
        switch self {
        case .message(.unknown), .control(.unknown): nil
        case .message(let message): message.encoded()
        case .control(let control): control.encoded()
        case .clientHello(let hello): hello.encoded()
        case .clientWelcome(let welcome): welcome.encoded()
        case .boxHello(let hello): hello.encoded()
        case .boxWelcome(let welcome): welcome.encoded()
        }
    }

    /// The value as the vectors write it down.
    var described: [String: String] {
        switch self {
        case .message(let message):
            switch message {
            case .handshake(let body): ["kind": "handshake", "body": body.packed]
            case .sealed(let body): ["kind": "sealed", "body": body.packed]
            case .frame(let frame):
                [
                    "kind": frame.kind.name, "device": frame.device?.bytes.hex, "sid": frame.session.description,
                    "d": frame.payload.packed,
                ].compactMapValues { $0 }
            case .unknown(let kind): ["kind": "unknown", "number": "\(kind)"]
            }
        case .control(let control): control.described
        case .clientHello(let hello):
            [
                "home": hello.home.bytes.hex, "pair": hello.pair?.bytes.hex, "window": "\(hello.window)",
                "tun": hello.tun.map { $0.encoded().dropFirst().packed },
            ].compactMapValues { $0 }
        case .clientWelcome(let welcome):
            ["window": "\(welcome.window)", "caps": welcome.box?.described].compactMapValues { $0 }
        case .boxHello(let hello): ["window": "\(hello.window)", "caps": hello.capabilities.described]
        case .boxWelcome(let welcome): ["window": "\(welcome.window)"]
        }
    }
}

extension DoorControl {
    fileprivate var described: [String: String] {
        switch self {
        case .enter: ["type": "enter"]
        case .entered: ["type": "entered"]
        case .linked: ["type": "linked"]
        case .box(let capabilities):
            ["type": "box", "caps": capabilities?.described].compactMapValues { $0 }
        case .credit(let device, let session, let total):
            [
                "type": "credit", "device": device?.bytes.hex, "sid": session.description, "total": "\(total)",
            ].compactMapValues { $0 }
        case .roster(let keys, let more):
            ["type": "roster", "keys": keys.wireForm.packed, "more": more ? "1" : "0"]
        case .admit(let keys): ["type": "admit", "keys": keys.wireForm.packed]
        case .revoke(let keys): ["type": "revoke", "keys": keys.wireForm.packed]
        case .expect(let hash, let seconds):
            ["type": "expect", "pair": hash.bytes.hex, "seconds": "\(seconds)"]
        case .forget(let hash): ["type": "forget", "pair": hash.bytes.hex]
        case .check(let nonce): ["type": "check", "nonce": TunnelSessionID(rawValue: nonce).description]
        case .here(let nonce): ["type": "here", "nonce": TunnelSessionID(rawValue: nonce).description]
        case .unknown(let type): ["type": "unknown", "number": "\(type)"]
        }
    }
}

extension BoxCapabilities {
    fileprivate var described: String { names.joined(separator: ",") }
}

extension Bytes {
    /// Hexadecimal digits.
    var hex: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Hexadecimal digits, with the last byte counted where it stands at the end 256 times or more.
    var packed: String {
        let bytes = Array(self)
        guard let last = bytes.last else { return "" }
        let head = bytes.lastIndex { $0 != last }.map { $0 + 1 } ?? 0
        guard bytes.count - head >= 256 else { return hex }
        return "\(prefix(head).hex)+\(Bytes([last]).hex)*\(bytes.count - head)"
    }

    /// Reads what ``packed`` has written.
    init(packed: String) {
        self.init()
        let parts = packed.split(separator: "+", omittingEmptySubsequences: false)
        let digits = parts[0].utf8.map { Character(Unicode.Scalar($0)).hexDigitValue ?? 16 }
        precondition(digits.count % 2 == 0 && !digits.contains(16), "not hexadecimal")
        append(contentsOf: stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
        guard parts.count == 2 else { return }
        let run = parts[1].split(separator: "*")
        guard let byte = UInt8(run[0], radix: 16), let count = Int(run[1]) else { preconditionFailure("no run") }
        append(contentsOf: Bytes(repeating: byte, count: count))
    }
}
