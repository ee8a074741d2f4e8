import TransportKit
import TransportKitTesting
import TunnelCarrier

@testable import DoorService

/// One direction of one session, with the books of both of its ends.
struct Flow {
    private let sender: ScriptedLink
    private let receiver: ScriptedLink
    private let device: DeviceID
    private let session: TunnelSessionID
    private var lane: SendLane
    private var credit: ReceiveCredit
    private var sent: [TunnelFrame.Kind: [Int]] = [:]
    private var arrived: [TunnelFrame.Kind: [Int]] = [:]
    private var held: [UInt64] = []
    private var seenFrames: Int
    private var seenControls: Int

    init(
        _ client: ScriptedClient, _ box: ScriptedBox, _ device: DeviceID, _ session: TunnelSessionID,
        towardBox: Bool = false
    ) {
        (sender, receiver) = towardBox ? (client, box) : (box, client)
        (self.device, self.session) = (device, session)
        lane = SendLane(device: towardBox ? nil : device, session: session, window: DoorLimits.defaultWindow)
        credit = ReceiveCredit(window: DoorLimits.defaultWindow)
        // What the set-up has sent already.
        let first = TunnelFrame(
            towardBox ? .begin : .control, session: session, payload: Bytes(repeating: 0, count: towardBox ? 3 : 10))
        lane.sent(first)
        _ = credit.arrived(first.cost)
        seenFrames = receiver.frames.count
        seenControls = sender.controls.count
    }

    var isDone: Bool { sent == arrived && lane.waitingCost == 0 }

    mutating func put(_ mark: Int, _ random: inout SeededGenerator) {
        let kind: TunnelFrame.Kind = Bool.random(using: &random) ? .bulk : .control
        let bytes = Int.random(in: 0..<10, using: &random) == 0 ? 65_511 : 2_000
        let payload = Bytes("\(mark).") + Bytes(repeating: 0, count: .random(in: 8...(bytes - 10), using: &random))
        let address = sender.leg == .box ? device : nil
        lane.put(TunnelFrame(kind, device: address, session: session, payload: payload))
        sent[kind, default: []].append(mark)
    }

    mutating func send() throws {
        while let frame = lane.next() { sender.send(frame) }
    }

    /// The receiver takes one frame of what it holds.
    mutating func take() throws {
        guard !held.isEmpty, let total = credit.passedOn(held.removeFirst()) else { return }
        try receiver.say(
            .credit(device: receiver.leg == .box ? device : nil, session: session, total: total))
    }

    /// Looks at what both ends have heard.
    mutating func listen() throws {
        for control in sender.controls[seenControls...] {
            guard case .credit(let device, self.session, let total) = control, device ?? self.device == self.device
            else { continue }
            lane.credit(total)
        }
        seenControls = sender.controls.count
        for frame in receiver.frames[seenFrames...]
        where frame.session == session && (frame.device ?? device) == device {
            guard credit.arrived(frame.cost) else { throw CreditExceeded() }
            held.append(frame.cost)
            let text = frame.payload.prefix { $0 != UInt8(ascii: ".") }
            if let mark = Int(String(decoding: Array(text), as: UTF8.self)) {
                arrived[frame.kind, default: []].append(mark)
            }
        }
        seenFrames = receiver.frames.count
    }

    struct CreditExceeded: Error {}
}

extension Bytes {
    fileprivate static func + (left: Bytes, right: Bytes) -> Bytes {
        var bytes = left
        bytes.append(contentsOf: right)
        return bytes
    }
}
