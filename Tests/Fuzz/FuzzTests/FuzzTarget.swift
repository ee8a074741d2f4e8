import Testing
import TransportKit

/// Something that reads what a peer or a file may say, and what must hold of it whatever that is.
struct FuzzTarget: Sendable {
    /// What must hold and does not.
    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    /// By which `bin/fuzz` and the folder of its corpus know it.
    let name: String
    /// Inputs that get deep into it.
    let seeds: @Sendable () throws -> [Bytes]
    /// Feeds it one input. A trap, a leak or ``Broken`` is a fault.
    let run: @Sendable (inout FuzzInput) throws -> Void

    static let all: [FuzzTarget] = [
        .doorWire, .noise, .framing, .upgrade, .webSocketFrames, .yamux, .config,
    ]

    func callAsFunction(_ bytes: Bytes) throws {
        var input = FuzzInput(bytes)
        try run(&input)
    }
}

extension FuzzTarget: CustomTestStringConvertible {
    var testDescription: String { name }
}

/// Says what must hold.
func demand(_ condition: Bool, _ what: @autoclosure () -> String) throws {
    guard condition else { throw FuzzTarget.Broken(description: what()) }
}
