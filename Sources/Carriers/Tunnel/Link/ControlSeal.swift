package import NoiseCarrier
package import TransportKit

/// Seals what a link says of itself, and opens what the other end says: nothing of it may be lost or come twice.
package struct ControlSeal: ~Copyable, Sendable {
    private var session: NoiseSession
    private let way: DoorWay
    private var next: UInt64 = 0

    /// Starts with message 0 in each direction.
    ///
    /// - Parameters:
    ///   - session: what the handshake with the door ended with.
    ///   - way: the direction of what is opened.
    package init(_ session: consuming NoiseSession, reads way: DoorWay) {
        self.session = session
        self.way = way
    }

    /// Seals a message: what comes back is a whole message of the link.
    package mutating func seal(_ control: DoorControl) throws(NoiseError) -> Bytes {
        DoorMessage.sealed(try session.seal(control.encoded(), headroom: 1)).encoded()
    }

    /// Opens what was inside of a message of kind 1.
    ///
    /// - Throws: why it breaks the wire; the link ends with 1002 then.
    package mutating func open(_ sealed: Bytes) throws(ControlSealError) -> DoorControl {
        guard sealed.count > DoorLimits.seal else { throw .sealed(.messageTooShort) }
        let number = sealed.bigEndian(at: 0)
        guard number == next else { throw .gap(expected: next, found: number) }
        let message: Bytes
        do throws(NoiseError) {
            message = try session.open(sealed)
        } catch {
            throw .sealed(error)
        }
        next += 1
        do throws(DoorWireError) {
            return try DoorControl.decode(message, way)
        } catch {
            throw .wire(error)
        }
    }
}
