internal import CYAML

/// libyaml's parser over one text: events with their places.
///
/// It owns the C parser and the copy of the text that the parser reads; both are freed with it.
@safe struct YAMLParser: ~Copyable {
    /// What comes next in the text.
    enum Event {
        case streamStart
        case streamEnd
        case documentStart(hasDirectives: Bool)
        case documentEnd
        case alias
        case scalar(String, isQuoted: Bool)
        case sequenceStart
        case sequenceEnd
        case mappingStart
        case mappingEnd
    }

    /// An event with its place, from 1.
    struct Located {
        var event: Event
        var line: Int
        var column: Int
        var hasAnchor = false
        var hasTag = false
    }

    /// What libyaml could not read.
    struct Failure: Error {
        var message: String
        var line: Int
        var column: Int
    }

    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let text: UnsafeMutableBufferPointer<UInt8>

    init(_ utf8: [UInt8]) throws(Failure) {
        unsafe parser = .allocate(capacity: 1)
        unsafe text = .allocate(capacity: max(utf8.count, 1))
        _ = unsafe text.initialize(from: utf8)
        guard unsafe yaml_parser_initialize(parser) == 1 else {
            unsafe parser.deallocate()
            unsafe text.deallocate()
            throw Failure(message: "there is no memory to read it", line: 1, column: 1)
        }
        unsafe yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        unsafe yaml_parser_set_input_string(parser, text.baseAddress, utf8.count)
    }

    deinit {
        unsafe yaml_parser_delete(parser)
        unsafe parser.deallocate()
        unsafe text.deallocate()
    }

    /// The next event.
    mutating func next() throws(Failure) -> Located {
        var event = unsafe yaml_event_t()
        guard unsafe yaml_parser_parse(parser, &event) == 1 else { throw failure }
        defer { unsafe yaml_event_delete(&event) }
        let mark = unsafe event.start_mark
        var located = Located(event: .streamEnd, line: Int(mark.line) + 1, column: Int(mark.column) + 1)
        switch unsafe event.type {
        case YAML_STREAM_START_EVENT:
            located.event = .streamStart
        case YAML_DOCUMENT_START_EVENT:
            let start = unsafe event.data.document_start
            let hasDirectives =
                unsafe start.version_directive != nil || start.tag_directives.start != start.tag_directives.end
            located.event = .documentStart(hasDirectives: hasDirectives)
        case YAML_DOCUMENT_END_EVENT:
            located.event = .documentEnd
        case YAML_ALIAS_EVENT:
            located.event = .alias
        case YAML_SCALAR_EVENT:
            let scalar = unsafe event.data.scalar
            let bytes = unsafe UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            let isQuoted = unsafe scalar.style != YAML_PLAIN_SCALAR_STYLE
            located.event = .scalar(unsafe String(decoding: bytes, as: UTF8.self), isQuoted: isQuoted)
            located.hasAnchor = unsafe scalar.anchor != nil
            located.hasTag = unsafe scalar.tag != nil
        case YAML_SEQUENCE_START_EVENT:
            located.event = .sequenceStart
            located.hasAnchor = unsafe event.data.sequence_start.anchor != nil
            located.hasTag = unsafe event.data.sequence_start.tag != nil
        case YAML_SEQUENCE_END_EVENT:
            located.event = .sequenceEnd
        case YAML_MAPPING_START_EVENT:
            located.event = .mappingStart
            located.hasAnchor = unsafe event.data.mapping_start.anchor != nil
            located.hasTag = unsafe event.data.mapping_start.tag != nil
        case YAML_MAPPING_END_EVENT:
            located.event = .mappingEnd
        default:
            located.event = .streamEnd
        }
        return located
    }

    /// Reads the text as tokens, on a parser of which no event has been asked for, and finds the first comma that stands
    /// right before a closing bracket. YAML lets it through; here it is most often a line that got lost.
    mutating func firstTrailingComma() throws(Failure) -> (line: Int, column: Int)? {
        var comma: (line: Int, column: Int)?
        while true {
            var token = unsafe yaml_token_t()
            guard unsafe yaml_parser_scan(parser, &token) == 1 else { throw failure }
            defer { unsafe yaml_token_delete(&token) }
            switch unsafe token.type {
            case YAML_FLOW_ENTRY_TOKEN:
                let mark = unsafe token.start_mark
                comma = (Int(mark.line) + 1, Int(mark.column) + 1)
            case YAML_FLOW_SEQUENCE_END_TOKEN, YAML_FLOW_MAPPING_END_TOKEN:
                if let comma { return comma }
            case YAML_STREAM_END_TOKEN:
                return nil
            default:
                comma = nil
            }
        }
    }

    private var failure: Failure {
        let mark = unsafe parser.pointee.problem_mark
        if isTab(line: Int(mark.line), column: Int(mark.column)) {
            return Failure(
                message: "a tab stands here; YAML is indented with spaces", line: Int(mark.line) + 1,
                column: Int(mark.column) + 1)
        }
        let problem = unsafe parser.pointee.problem.map { unsafe String(cString: $0) } ?? "it cannot be read"
        let context = unsafe parser.pointee.context.map { unsafe " " + String(cString: $0) } ?? ""
        return Failure(
            message: problem + context, line: Int(mark.line) + 1, column: Int(mark.column) + 1)
    }

    /// Whether a tab stands at a place, from 0, with nothing but white space before it.
    private func isTab(line: Int, column: Int) -> Bool {
        let lines = unsafe text.split(separator: 0x0a, maxSplits: line + 1, omittingEmptySubsequences: false)
        guard unsafe line < lines.count else { return false }
        let start = unsafe lines[line].prefix(column + 1)
        return unsafe start.count == column + 1 && start.last == 0x09 && start.allSatisfy { $0 == 0x20 || $0 == 0x09 }
    }
}
