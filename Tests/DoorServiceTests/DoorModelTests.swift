import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting
import TunnelCarrier

@testable import DoorService

/// The table beside a model of plain records.
@Suite struct DoorModelTests {
    private final class Run {
        let world: DoorWorld
        var model = DoorModel()
        let devices = (0..<4).map { _ in StaticPrivateKey() }
        let homes = (0..<2).map { _ in StaticPrivateKey() }
        var clients: [ScriptedClient] = []
        var boxes: [ScriptedBox] = []
        /// Those that were not seen to be closed.
        var openClients: [Int] = []
        var openBoxes: [Int] = []
        var random: SeededGenerator

        init(random: SeededGenerator) {
            self.random = random
            var options = DoorOptions()
            options.waitingClientsPerHome = 1_000
            world = DoorWorld(options: options)
        }

        /// A number of a link that is still there, as a rule.
        func pick(_ open: [Int], _ isThere: (Int) -> Bool) -> Int? {
            open.filter(isThere).randomElement(using: &random)
        }

        func step() throws {
            let (device, home, sid) = (
                Int.random(in: 0..<4, using: &random), Int.random(in: 0..<2, using: &random),
                Int.random(in: 0..<3, using: &random)
            )
            let client = pick(openClients) { model.clients[$0].isThere }
            let box = pick(openBoxes) { model.boxes[$0].isThere }
            switch (Int.random(in: 0..<24, using: &random), client, box) {
            case (0, _, _) where openBoxes.count < 5:
                openBoxes.append(boxes.count)
                boxes.append(ScriptedBox(world, key: homes[home]))
                model.boxDials(home: home)
                _ = try boxes[boxes.count - 1].dial()
            case (1, _, let box?), (2, _, let box?):
                let roster = Set((0..<4).filter { _ in Int.random(in: 0..<4, using: &random) > 0 })
                model.roster(roster, of: box)
                try boxes[box].say(.roster(DeviceKeys(roster.map { devices[$0].publicKey }), more: false))
            case (3, _, let box?):
                model.admit(device, of: box)
                try boxes[box].say(.admit(DeviceKeys([devices[device].publicKey])))
            case (4, _, let box?) where model.boxes[box].roster != nil:
                model.revoke(device, of: box)
                try boxes[box].say(.revoke(DeviceKeys([devices[device].publicKey])))
            case (5, _, let box?):
                model.leave(box: box, nil)
                boxes[box].end()
            case (6, _, _), (7, _, _):
                if openClients.count > 11, let oldest = openClients.first(where: { model.clients[$0].isThere }) {
                    model.leave(client: oldest, nil)
                    clients[oldest].end()
                    return
                }
                let tun = Bool.random(using: &random) ? sid : nil
                openClients.append(clients.count)
                clients.append(ScriptedClient(world, key: devices[device], home: HomeID(of: homes[home].publicKey)))
                model.clientDials(device: device, home: home, tun: tun)
                _ = try clients[clients.count - 1].dial(tun: tun.map { TunnelSessionID(rawValue: UInt64($0)) })
            case (8, let client?, _), (9, let client?, _), (10, let client?, _):
                guard !model.clients[client].hasEntered || sid == 0 else { return }
                model.enter(client)
                try clients[client].say(.enter)
            case (11, let client?, _) where openClients.count > 3:
                model.leave(client: client, nil)
                clients[client].end()
            case (12..<15, let client?, _) where model.clients[client].hasEntered || device == 0:
                model.begins(sid, of: client)
                clients[client].begin(TunnelSessionID(rawValue: UInt64(sid)))
            case (15..<19, let client?, _) where model.clients[client].hasEntered || device == 0:
                let isEnd = Int.random(in: 0..<4, using: &random) == 0
                model.frame(of: client, sid: sid, isEnd: isEnd)
                clients[client].send(
                    clients[client].frame(.control, TunnelSessionID(rawValue: UInt64(sid)), bytes: isEnd ? 0 : 5))
            case (19..., _, let box?) where model.boxes[box].roster != nil || device == 0:
                let isEnd = Int.random(in: 0..<4, using: &random) == 0
                model.frame(of: box, device: device, sid: sid, isEnd: isEnd)
                boxes[box].send(
                    boxes[box].frame(
                        .control, DeviceID(of: devices[device].publicKey), TunnelSessionID(rawValue: UInt64(sid)),
                        bytes: isEnd ? 0 : 5))
            case _:
                return
            }
        }

        /// Every link has heard what the model says, and was closed as it says.
        func check(_ step: Int) {
            openClients.removeAll {
                !model.clients[$0].isThere && (clients[$0].close != nil || model.clients[$0].isGone)
            }
            for index in openClients {
                let client = clients[index]
                #expect(client.close == model.clients[index].close, "client \(index), step \(step)")
                guard model.clients[index].isThere else { continue }
                client.hear()
                let heard = client.takeWords { "\($0.session.rawValue)" }
                #expect(heard.sorted() == (model.toClient[index] ?? []).sorted(), "client \(index), step \(step)")
                model.toClient[index] = nil
            }
            openBoxes.removeAll { !model.boxes[$0].isThere && (boxes[$0].close != nil || model.boxes[$0].isGone) }
            for index in openBoxes {
                let box = boxes[index]
                #expect(box.close == model.boxes[index].close, "box \(index), step \(step)")
                guard model.boxes[index].isThere else { continue }
                box.hear()
                let heard = box.takeWords { frame in
                    let device = devices.firstIndex { DeviceID(of: $0.publicKey) == frame.device } ?? -1
                    return "\(device) \(frame.session.rawValue)"
                }
                #expect(heard.sorted() == (model.toBox[index] ?? []).sorted(), "box \(index), step \(step)")
                model.toBox[index] = nil
            }
            #expect(world.table.sessions.count == model.sessions.count, "step \(step)")
        }
    }

    // R125, R126, B10. Time stands still: what has a limit of time is looked at elsewhere.
    @Test func `10,000 random events go as the model of plain records has them`() throws {
        let run = Run(random: SeededGenerator.announced())
        for step in 0..<10_000 {
            try run.step()
            run.check(step)
        }
        #expect(run.model.clients.count > 100 && run.model.boxes.count > 50)
        for link in run.clients as [ScriptedLink] + run.boxes { link.end() }
        for box in run.boxes { box.hear() }
        #expect(run.world.isEmpty)
    }
}

extension ScriptedLink {
    /// Takes what was heard, frames with `name` of whose they are.
    func takeWords(_ name: (TunnelFrame) -> String) -> [String] {
        defer {
            heard = []
            frames = []
        }
        var frames = frames[...]
        return heard.map { word in
            guard ["end", "begin", "tun"].contains(word), let frame = frames.popFirst() else { return word }
            return "\(word) \(name(frame))"
        }
    }
}
