internal import CSodium
internal import TransportKit

/// What a client and a box share, and the relay must not know: it names their room, hour by hour.
///
/// It is wiped with the last holder and never printed. Sendable is sound: it is not written after it was made.
@safe public final class RelaySecret: @unchecked Sendable {
    /// The fewest bytes that are one; 32 are usual.
    public static let leastLength = 16

    private let pointer: UnsafeMutablePointer<UInt8>
    private let count: Int

    /// Copies a secret; nil where it has fewer than 16 bytes. Wiping `bytes` stays the caller's affair.
    ///
    /// - Parameter bytes: the secret.
    public init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.leastLength else { return nil }
        count = bytes.count
        unsafe pointer = UnsafeMutablePointer.allocate(capacity: bytes.count)
        unsafe UnsafeMutableRawBufferPointer(start: pointer, count: count).copyMemory(from: bytes)
    }

    /// Reads the text form: hexadecimal digits, or base64url without padding. White space around it does not count.
    ///
    /// - Parameter text: the text, for example the content of a file.
    public convenience init?(_ text: String) {
        let digits = Array(text.utf8.drop(while: Self.isSpace).reversed().drop(while: Self.isSpace).reversed())
        let isHex = digits.count % 2 == 0 && digits.allSatisfy(Self.isHexDigit)
        var room = [UInt8](repeating: 0, count: digits.count)
        defer { unsafe room.withUnsafeMutableBytes { unsafe sodium_memzero($0.baseAddress, $0.count) } }
        var count = 0
        let status = unsafe digits.withUnsafeBytes { digits in
            let text = unsafe digits.assumingMemoryBound(to: CChar.self).baseAddress
            // Without a pointer for the end of the text all of it must be digits.
            return isHex
                ? unsafe sodium_hex2bin(&room, room.count, text, digits.count, nil, &count, nil)
                : unsafe sodium_base642bin(
                    &room, room.count, text, digits.count, nil, &count, nil, sodium_base64_VARIANT_URLSAFE_NO_PADDING)
        }
        guard status == 0 else { return nil }
        let result = unsafe room.withUnsafeBytes { unsafe RelaySecret(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        guard let result else { return nil }
        unsafe self.init(UnsafeRawBufferPointer(start: result.pointer, count: result.count))
    }

    deinit {
        unsafe sodium_memzero(pointer, count)
        unsafe pointer.deallocate()
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0a, 0x0d].contains(byte) }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
        default: false
        }
    }

    /// The room of an epoch.
    ///
    /// - Parameters:
    ///   - epoch: the epoch.
    ///   - info: what stands before the epoch in the derivation.
    package func handle(of epoch: Int64, info: String) -> RelayHandle {
        unsafe withDerived("\(info)\(epoch)") { bytes in
            unsafe RelayHandle(UnsafeRawBufferPointer(rebasing: bytes[..<RelayHandle.length]))
        }
    }

    /// A secret of 32 bytes that follows from this one.
    func derived(_ info: String) -> RelaySecret {
        guard let derived = unsafe withDerived(info, { unsafe RelaySecret($0) }) else {
            preconditionFailure("32 bytes are a secret")
        }
        return derived
    }

    /// Gives `body` the bytes.
    func withBytes<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
        unsafe body(UnsafePointer(pointer))
    }

    /// Gives `body` 32 bytes that follow from the secret, and wipes them.
    func withDerived<Result>(_ info: String, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        var derived = [UInt8](repeating: 0, count: 32)
        let info = Array(info.utf8)
        unsafe tk_hkdf_sha256(&derived, pointer, count, info, info.count)
        defer { unsafe derived.withUnsafeMutableBytes { unsafe sodium_memzero($0.baseAddress, $0.count) } }
        return unsafe derived.withUnsafeBytes { unsafe body($0) }
    }
}

extension RelaySecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// That it is a secret, and no more.
    public var description: String { "a relay secret" }

    /// That it is a secret, and no more.
    public var debugDescription: String { description }

    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
