internal import TransportKit

/// The head of an HTTP/1.1 message: its start line and its fields, read strictly.
///
/// Whatever two programs might read in two ways is refused, so that nothing can be smuggled past a proxy
/// (RFC 7230 §3, §9.5): lines that end in LF alone, folded lines, white space before a colon, control characters.
package struct HTTPHead: Sendable, Equatable {
    /// One field; the name in lower case, the value without white space around it.
    package struct Field: Sendable, Equatable {
        package let name: String
        package let value: String
    }

    /// What is wrong with a head, as the end of a sentence that starts with whose head it is.
    package struct Malformed: Error, Equatable {
        package let what: String

        init(_ what: String) {
            self.what = what
        }
    }

    /// More fields than any program of good will sends.
    package static let fieldLimit = 128

    package let startLine: String
    package let fields: [Field]

    /// The values of all fields of that name, which is in lower case.
    package func values(_ name: String) -> [String] {
        fields.filter { $0.name == name }.map(\.value)
    }

    /// The elements of a field that is a list, over all its lines; empty ones do not count (RFC 7230 §7).
    package func list(_ name: String) -> [String] {
        values(name).flatMap { $0.split(separator: ",") }.map { trimmed($0) }.filter { !$0.isEmpty }
    }

    /// Whether a list has an element, whatever its case.
    package func list(_ name: String, has element: String) -> Bool {
        list(name).contains { $0.lowercased() == element }
    }

    /// Reads a head from its lines, the empty one that ends it left out.
    init(lines: [Bytes]) throws(Malformed) {
        guard let first = lines.first, !first.isEmpty else { throw Malformed("has no first line") }
        startLine = try Self.text(first)
        guard lines.count - 1 <= Self.fieldLimit else { throw Malformed("has more than \(Self.fieldLimit) fields") }
        var fields: [Field] = []
        for line in lines.dropFirst() { fields.append(try Self.field(line)) }
        self.fields = fields
    }

    private static func field(_ line: Bytes) throws(Malformed) -> Field {
        guard line[0] != UInt8(ascii: " "), line[0] != 0x09 else { throw Malformed("has a folded line") }
        guard let colon = line.firstOffset(of: UInt8(ascii: ":")) else { throw Malformed("has a line without a colon") }
        let name = line.prefix(colon)
        guard !name.isEmpty, name.allSatisfy(isTokenByte) else { throw Malformed("has a malformed field name") }
        return Field(name: try text(name).lowercased(), value: trimmed(try text(line.dropFirst(colon + 1))[...]))
    }

    /// Bytes above 0x7f are opaque (RFC 7230 §3.2.4) and stand as Latin-1.
    private static func text(_ bytes: Bytes) throws(Malformed) -> String {
        var text = String()
        for byte in bytes {
            guard byte >= 0x20 || byte == 0x09, byte != 0x7f else { throw Malformed("has a control character") }
            text.unicodeScalars.append(Unicode.Scalar(byte))
        }
        return text
    }

    /// RFC 7230 §3.2.6.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        case UInt8(ascii: "!"), 0x23...0x27, UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"),
            UInt8(ascii: "."), UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }
}

/// The text without spaces and tabs around it.
func trimmed(_ text: Substring) -> String {
    var text = text
    while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return String(text)
}

extension Bytes {
    /// Where `byte` first stands, from `start` on.
    func firstOffset(of byte: UInt8, from start: Int = 0) -> Int? {
        unsafe withUnsafeBytes { bytes in
            var index = start
            while index < bytes.count {
                if unsafe bytes[index] == byte { return index }
                index += 1
            }
            return nil
        }
    }
}
