/// What a peer sent that is not the wire of the door, and where it stands.
package struct DoorWireError: Error, Sendable, Hashable {
    /// What is wrong.
    package enum Fault: String, Sendable, CaseIterable {
        /// The bytes end inside of something.
        case cutShort
        /// More bytes than are allowed.
        case tooLong
        /// A field, or what a frame carries, has a length that it cannot have.
        case badLength
        /// A field does not have a higher number than the one before it.
        case outOfOrder
        /// A field that the message must have is not there.
        case missing
        /// A field has a value that it cannot have.
        case badValue
        /// This is not said in this direction, or not in this way.
        case misplaced
    }

    package let fault: Fault
    /// The name of the message, as `docs/protocol.md` has it.
    package let message: String
    /// The name of the field, where one is at fault.
    package let field: String?
    /// Where what is wrong begins, from the start of what was read.
    package let offset: Int

    package init(_ fault: Fault, in message: String, field: String? = nil, at offset: Int) {
        self.fault = fault
        self.message = message
        self.field = field
        self.offset = offset
    }
}

extension DoorWireError: CustomStringConvertible {
    package var description: String {
        let place = (field.map { "the field \($0) of " } ?? "") + "the door's message \(message), at byte \(offset)"
        return switch fault {
        case .cutShort: "the bytes end too early in \(place)"
        case .tooLong: "more bytes than allowed in \(place)"
        case .badLength: "a length that is not allowed in \(place)"
        case .outOfOrder: "a field out of order in \(place)"
        case .missing: "nothing for \(place)"
        case .badValue: "a value that is not allowed in \(place)"
        case .misplaced: "said by the wrong end or in the wrong way: \(place)"
        }
    }
}
