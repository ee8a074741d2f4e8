import Testing
import TransportHost

/// What the file itself may be (B21).
@Suite struct ConfigTextTests {
    func complaints(_ bytes: [UInt8]) -> String? {
        do {
            _ = try ConfigFile.parse(bytes, file: "f")
            return nil
        } catch {
            return error.description
        }
    }

    func complaints(_ text: String) -> String? { complaints(Array(text.utf8)) }

    @Test(arguments: [
        ("", "f:1:1: is empty; listeners, carriers and forwards are what it may hold"),
        ("# nothing but words\n", "f:1:1: is empty; listeners, carriers and forwards are what it may hold"),
        ("\u{feff}a: 1", "f:1:1: starts with a byte order mark; save it as UTF-8 without one"),
        ("a: 1\nb: 2\na: 3", "f:3:1: a: the key stands here a second time, first in line 1"),
        ("x: { y: [{ z: 1, z: 2 }] }", "f:1:18: x.y[0].z: the key stands here a second time, first in line 1"),
        ("a: [1, 2,]", "f:1:9: a comma stands before the closing bracket; leave it out"),
        ("{\"a\": 1,\n}", "f:1:8: a comma stands before the closing bracket; leave it out"),
        ("a: &x 1", "f:1:4: a: anchors are not supported; leave the word with & out"),
        ("a: *x", "f:1:4: a: aliases are not supported; write the value out"),
        ("a: !!str 1", "f:1:4: a: tags are not supported; leave the word with ! out"),
        ("%YAML 1.1\n---\na: 1", "f:1:1: directives are not supported; leave the line with % out"),
        ("a: 1\n---\nb: 2", "f:2:1: a second document begins here; one is allowed"),
        ("? [a]\n: 1", "f:1:3: a key must be a word or text"),
        ("a: [1", "f:2:1: is not valid YAML: did not find expected ',' or ']' while parsing a flow sequence"),
        (
            "a:\n\t- 1",
            "f:2:1: is not valid YAML: a tab stands here; YAML is indented with spaces"
        ),
        ("a:\n  b: 1\n \tc: 2", "f:3:2: is not valid YAML: a tab stands here; YAML is indented with spaces"),
        (
            "a: @b",
            "f:1:4: is not valid YAML: found character that cannot start any token while scanning for the next token"
        ),
        (
            "a: { \"\\e[31m\": 1, \"\\e[31m\": 2 }",
            "f:1:19: a.\"\u{fffd}[31m\": the key stands here a second time, first in line 1"
        ),
    ])
    func `What is no config file is refused with its place`(text: String, expected: String) {
        #expect(complaints(text) == expected)
    }

    @Test func `Bytes that are no UTF-8 are found where they stand`() {
        #expect(complaints([0x61, 0x3a, 0x0a, 0x62, 0xc3, 0x28]) == "f:2:2: is not UTF-8 from here on")
        #expect(complaints([0xff, 0xfe, 0x61, 0x00])?.hasPrefix("f:1:1: is UTF-16; save it as UTF-8") == true)
    }

    @Test func `Depth, number of values and size are bounded`() {
        let deep = String(repeating: "[", count: 200_000)
        #expect(complaints(deep)?.hasSuffix("there are more than 32 levels") == true)
        let wide = "a: [" + String(repeating: "1,", count: 70_000) + "1]"
        #expect(complaints(wide)?.hasSuffix("there are more than 65536 values") == true)
        #expect(complaints([UInt8](repeating: 0x23, count: (1 << 20) + 1)) == "f:1:1: has more than 1048576 bytes")
    }

    @Test func `A file that cannot be read is an error of its own`() {
        #expect(throws: ConfigErrors.self) { try ConfigFile.read("/nonexistent/x.yaml") }
        do {
            _ = try ConfigFile.read("/")
        } catch {
            #expect(error.description == "/: cannot be read: it is a directory")
        }
        do {
            _ = try ConfigFile.read("/nonexistent/x.yaml")
        } catch {
            #expect(error.description == "/nonexistent/x.yaml: cannot be read: No such file or directory")
        }
    }

    @Test func `Every value knows its keys, line and column`() throws {
        let text = """
            # a comment
            carriers:
              "a.b": { kind: direct }
              plain:
                - 5
                - "5"
            """
        let root = try ConfigFile.parse(Array(text.utf8), file: "f")
        let kind = try #require(root["carriers"]?["a.b"]?["kind"])
        #expect(kind.path == "carriers.\"a.b\".kind")
        #expect(kind.place == SourcePlace(file: "f", line: 3, column: 18))
        let elements = try #require(root["carriers"]?["plain"]).elements(of: "numbers")
        #expect(elements.map(\.path) == ["carriers.plain[0]", "carriers.plain[1]"])
        #expect(try elements[0].integer(1...9) == 5)
        #expect(throws: ConfigError.self) { try elements[1].integer(1...9) }
        #expect(throws: ConfigError.self) { try elements[0].text() }
        #expect(try elements[1].text() == "5")
    }

    @Test func `Columns count characters and not bytes`() {
        #expect(complaints("ä: *x") == "f:1:4: ä: aliases are not supported; write the value out")
    }

    @Test func `JSON is read as it is`() throws {
        let root = try ConfigFile.parse(Array("{\"a\": [true, null, \"x\\n\"]}".utf8), file: "f")
        let elements = try #require(root["a"]).elements(of: "values")
        #expect(try elements[0].boolean())
        #expect(elements[1].kind == "empty")
        #expect(try elements[2].text() == "x\n")
    }

    @Test(arguments: [
        ("5s", Duration.seconds(5)), ("250ms", .milliseconds(250)), ("2m", .seconds(120)), ("1h", .seconds(3600)),
        ("1d", .seconds(86_400)), ("0s", .zero),
    ])
    func `A duration is a whole number with a unit`(text: String, expected: Duration) {
        #expect(Duration(configText: text) == expected)
    }

    @Test(arguments: ["", "5", "s", "-5s", "5 s", "1.5s", "5sec", "9999999999s", "٥s"])
    func `Anything else is no duration`(text: String) {
        #expect(Duration(configText: text) == nil)
    }

    @Test func `The nearest word is found, and none where none is near`() {
        let words = ["url", "transports", "tls", "routes"]
        #expect(Words.nearest(to: "transport", among: words) == "transports")
        #expect(Words.nearest(to: "tsl", among: words) == "tls")
        #expect(Words.nearest(to: "certificate", among: words) == nil)
        #expect(Words.nearest(to: "", among: []) == nil)
    }
}
