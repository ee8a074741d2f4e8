internal import CQREncode

/// A text as a QR code for a terminal.
package enum QRCode {
    /// The white margin that a reader needs (ISO/IEC 18004 §5.3.8).
    private static let margin = 4

    /// The picture as lines of half blocks, dark on light whatever the colours of the terminal; nil where the text is too
    /// long.
    package static func lines(_ text: String) -> [String]? {
        // Without it libqrencode chooses; bytes as they are, in capitals and small letters.
        guard let code = unsafe QRcode_encodeString8bit(text, 0, QR_ECLEVEL_L) else { return nil }
        defer { unsafe QRcode_free(code) }
        let width = unsafe Int(code.pointee.width)
        let isDark = { (column: Int, row: Int) -> Bool in
            guard (0..<width).contains(column), (0..<width).contains(row) else { return false }
            return unsafe code.pointee.data[row * width + column] & 1 == 1
        }
        // Black on white in the terminal's own words, since half of all terminals are dark.
        return stride(from: -margin, to: width + margin, by: 2).map { row in
            let cells = (-margin..<width + margin).map { column in
                switch (isDark(column, row), isDark(column, row + 1)) {
                case (false, false): " "
                case (true, false): "▀"
                case (false, true): "▄"
                case (true, true): "█"
                }
            }
            return "\u{1b}[30;47m\(cells.joined())\u{1b}[0m"
        }
    }
}
