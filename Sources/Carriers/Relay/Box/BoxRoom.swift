internal import NoiseCarrier
internal import TransportKit

/// The live sessions of a box in its room, and whose a frame is (part 2.3).
///
/// No socket and no clock. The relay does not say who has sent a frame, so the keys of each session are tried; a frame that
/// none of them opens may be a message 1, and else it is nobody's. Trial decryption is at home here and nowhere else (R74).
struct BoxRoom: ~Copyable {
    typealias ID = UInt64

    /// One session. A class, because its keys cannot be copied.
    private final class Live {
        let id: ID
        var session: NoiseSession

        init(id: ID, _ session: consuming NoiseSession) {
            self.id = id
            self.session = session
        }
    }

    private let key: StaticPrivateKey
    private let prologue: NoisePrologue
    private let limit: Int
    /// The oldest first.
    private var live: [Live] = []
    private var lastID: ID = 0

    init(key: StaticPrivateKey, prologue: NoisePrologue, limit: Int) {
        self.key = key
        self.prologue = prologue
        self.limit = max(limit, 1)
    }

    /// The sessions, the oldest first.
    var ids: [ID] { live.map(\.id) }

    /// The session whose frame it is, and what it says; nil where it is none of theirs.
    ///
    /// A failed attempt must leave the frame as it was for the next one: it is opened in a copy, since it is held here.
    mutating func open(_ frame: Bytes) -> (id: ID, message: Bytes)? {
        for session in live {
            do throws(NoiseError) {
                return (session.id, try session.session.open(frame))
            } catch {
                continue
            }
        }
        return nil
    }

    /// The answer to a frame, if it is a message 1 for this box. Nothing is registered yet.
    func answer(to frame: Bytes) -> NoiseAnswer? {
        try? ResponderHandshake(key: key, prologue: prologue, reading: frame).answer()
    }

    /// Registers the session of an answer, before the answer is written: its first frame may come at once.
    ///
    /// - Returns: the session, and the ones that had to go for it.
    mutating func register(_ answer: consuming NoiseAnswer) -> (id: ID, evicted: [ID]) {
        lastID += 1
        live.append(Live(id: lastID, answer.begin()))
        var evicted: [ID] = []
        while live.count > limit {
            let oldest = live.removeFirst()
            oldest.session.close()
            evicted.append(oldest.id)
        }
        return (lastID, evicted)
    }

    /// Seals a message of a session's; nil where there is no such session any more.
    mutating func seal(_ message: Bytes, for id: ID) throws(NoiseError) -> Bytes? {
        guard let session = live.first(where: { $0.id == id }) else { return nil }
        return try session.session.seal(message)
    }

    /// The sessions of a device.
    func sessions(of peer: StaticPublicKey) -> [ID] {
        live.filter { $0.session.peer == peer }.map(\.id)
    }

    /// Ends a session and destroys its keys.
    mutating func end(_ id: ID) {
        for session in live where session.id == id { session.session.close() }
        live.removeAll { $0.id == id }
    }
}
