extension String {
    /// Text that somebody else wrote, fit for a log line and a terminal: what could move a cursor, end the line or turn the
    /// writing round stands as U+FFFD or, where it is white space, as a space.
    ///
    /// - Parameter limit: how many characters are kept, in Unicode scalars; three dots say that there were more.
    package func printable(limit: Int = 200) -> String {
        // Nearly all of it is, and that is quickly seen.
        if utf8.count <= limit, utf8.allSatisfy({ (0x20..<0x7f).contains($0) }) { return self }
        let scalars = unicodeScalars.prefix(limit).map { scalar -> Unicode.Scalar in
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator:
                scalar.properties.isWhitespace ? " " : "\u{fffd}"
            case .format, .surrogate, .privateUse, .unassigned:
                "\u{fffd}"
            default:
                scalar
            }
        }
        let isCut = unicodeScalars.dropFirst(limit).first != nil
        return String(String.UnicodeScalarView(scalars)) + (isCut ? "…" : "")
    }
}
