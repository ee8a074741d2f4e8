internal import CSodium
public import NoiseCarrier
public import TransportKit

/// What a new client must know to reach a box, as one line of text that a box shows and a client reads (R95).
///
/// Whoever has the line can become a device of the home for as long as its code is good, so it is never logged: neither its
/// description nor its mirror shows more than the home.
public struct PairingLine: Sendable, Hashable {
    /// What every line begins with.
    public static let prefix = "tk1:"
    /// The longest line that is read, in characters.
    public static let maxLength = 2048
    /// The longest URL of a door, in bytes.
    static let maxURLBytes = 512
    /// The most pins that a line has.
    static let maxPins = 4

    /// Where the door listens. A path is left out where it is the usual one.
    public var door: ServiceURL
    /// Who the box is.
    public var boxKey: StaticPublicKey
    /// Who the door is: one key, or two while they change.
    public var doorKeys: [StaticPublicKey]
    /// What admits the client, once: ``PairingHash/codeLength`` bytes.
    public var code: Bytes
    /// The keys or certificates that the door may show; without any it must be trusted as usual.
    public var pins: [PublicKeyHash]

    /// By what name the door knows the box.
    public var home: HomeID { HomeID(of: boxKey) }

    /// Puts a line together; nil where a part has a length that it cannot have.
    ///
    /// - Parameters:
    ///   - door: where the door listens.
    ///   - boxKey: who the box is.
    ///   - doorKeys: who the door is, one or two different keys, the one to try first in front.
    ///   - code: 16 bytes that admit the client.
    ///   - pins: at most four hashes of what the door may show.
    public init?(
        door: ServiceURL, boxKey: StaticPublicKey, doorKeys: [StaticPublicKey], code: Bytes, pins: [PublicKeyHash] = []
    ) {
        guard (1...2).contains(doorKeys.count), Set(doorKeys).count == doorKeys.count,
            code.count == PairingHash.codeLength, pins.count <= Self.maxPins, door.endpoint.port > 0,
            Self.text(of: door).utf8.count <= Self.maxURLBytes
        else { return nil }
        self.door = door
        self.boxKey = boxKey
        self.doorKeys = doorKeys
        self.code = code
        self.pins = pins
    }

    /// Reads a line; spaces and line ends around it do no harm.
    public init(_ line: String) throws(PairingLineError) {
        let isSpace: (Unicode.Scalar) -> Bool = { $0.properties.isWhitespace }
        let scalars = line.unicodeScalars.drop(while: isSpace).reversed().drop(while: isSpace).reversed()
        let text = String(String.UnicodeScalarView(scalars))
        guard text.hasPrefix(Self.prefix) else {
            let isOther = text.hasPrefix("tk") && text.dropFirst(2).prefix { $0 != ":" }.allSatisfy(\.isNumber)
            throw isOther && text.contains(":") ? .otherVersion : .noLine
        }
        guard text.utf8.count <= Self.maxLength, let bytes = Self.decoded(String(text.dropFirst(Self.prefix.count)))
        else { throw .noText }
        do throws(DoorWireError) {
            let fields = try DoorFields(bytes, from: 0, of: "pairing-line")
            let home = try fields.home()
            boxKey = try fields.boxKey()
            doorKeys = try fields.doorKeys()
            code = try fields.code()
            door = try fields.url()
            pins = try fields.pinsIfAny()
            guard home == HomeID(of: boxKey) else { throw DoorWireError(.misplaced, in: "pairing-line", at: 0) }
        } catch {
            throw error.fault == .misplaced ? .wrongHome : .damaged(error)
        }
    }

    /// The line. Show it to nobody but the new client.
    public var text: String {
        var bytes = Bytes()
        bytes.append(.home, home.bytes)
        bytes.append(.box, boxKey.bytes)
        bytes.append(.doors, doorKeys.reduce(into: Bytes()) { $0.append(contentsOf: $1.bytes) })
        bytes.append(.code, code)
        bytes.append(.url, Bytes(Self.text(of: door)))
        if !pins.isEmpty { bytes.append(.pins, pins.reduce(into: Bytes()) { $0.append(contentsOf: $1.bytes) }) }
        return Self.prefix + Self.encoded(bytes)
    }

    /// The URL as it is dialled, with its query.
    private static func text(of url: ServiceURL) -> String {
        url.target == .root ? "\(url.endpoint)" : "\(url.endpoint)\(url.target.wireForm)"
    }

    // MARK: - base64url without padding

    private static let variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING

    private static func encoded(_ bytes: Bytes) -> String {
        let length = sodium_base64_encoded_len(bytes.count, variant)
        return unsafe bytes.withUnsafeBytes { bytes in
            // The library ends the text with a zero.
            unsafe String(unsafeUninitializedCapacity: length) { room in
                unsafe room.withMemoryRebound(to: CChar.self) { room in
                    guard let start = room.baseAddress else { return 0 }
                    _ = unsafe sodium_bin2base64(
                        start, room.count, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count, variant)
                    return length - 1
                }
            }
        }
    }

    private static func decoded(_ text: String) -> Bytes? {
        var text = text
        return text.withUTF8 { text -> Bytes? in
            var isText = false
            let bytes = unsafe Bytes(unsafeUninitializedCapacity: text.count) { room in
                unsafe text.withMemoryRebound(to: CChar.self) { text in
                    guard let start = room.baseAddress else { return 0 }
                    var count = 0
                    // Without a pointer for the end of the text all of it must be digits.
                    let status = unsafe sodium_base642bin(
                        start.assumingMemoryBound(to: UInt8.self), room.count, text.baseAddress, text.count,
                        nil, &count, nil, variant)
                    isText = status == 0
                    return isText ? count : 0
                }
            }
            return isText ? bytes : nil
        }
    }
}

extension PairingLine: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Whose line it is, and nothing of the code.
    public var description: String { "a pairing line of the home \(home)" }

    /// Whose line it is, and nothing of the code.
    public var debugDescription: String { description }

    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
