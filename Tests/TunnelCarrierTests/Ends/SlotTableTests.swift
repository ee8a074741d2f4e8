import NoiseCarrier
import Testing
import TransportKit
import TransportKitTesting

@testable import TunnelCarrier

/// R83, R134: one slot for each device, beside a model of plain records.
@Suite struct SlotTableTests {
    /// What is true of one session.
    private struct Record {
        let address: TunnelAddress
        let began: Instant
        var wasAnswered = false
        var hasSlot = false
        var isOver = false
    }

    @Test func `10,000 random events go as the model of plain records has them`() throws {
        var random = SeededGenerator.announced()
        let devices = (0..<24).map { _ in DeviceID(of: StaticPrivateKey().publicKey) }
        var table = SlotTable()
        var records: [Record] = []
        var now = Instant.zero
        var refused = 0
        for _ in 0..<10_000 {
            let live = records.indices.filter { !records[$0].isOver }
            switch Int.random(in: 0..<12, using: &random) {
            case 0..<5:
                let address = TunnelAddress(
                    device: devices.randomElement(using: &random),
                    session: TunnelSessionID(rawValue: .random(in: 0 ... .max, using: &random)))
                let waiting = live.map { records[$0] }.filter { !$0.hasSlot }
                let mayBegin = waiting.count < 64 && waiting.count { $0.address.device == address.device } < 4
                #expect(table.began(address, now: now) == mayBegin)
                if mayBegin { records.append(Record(address: address, began: now)) } else { refused += 1 }
            case 5:
                guard let index = live.randomElement(using: &random) else { continue }
                table.answered(records[index].address)
                records[index].wasAnswered = true
            case 6, 7:
                guard let index = records.indices.randomElement(using: &random) else { continue }
                let record = records[index]
                let before = live.first { records[$0].hasSlot && records[$0].address.device == record.address.device }
                let result = table.proved(record.address)
                if record.isOver || record.hasSlot {
                    #expect(result == nil)
                } else {
                    #expect(result == .some(before.map { records[$0].address }))
                    if let before { records[before].isOver = true }
                    records[index].hasSlot = true
                }
            case 8, 9:
                guard let index = records.indices.randomElement(using: &random) else { continue }
                table.ended(records[index].address)
                records[index].isOver = true
            case _:
                now = now + .milliseconds(Int.random(in: 0...2_000, using: &random))
                let late = live.filter { !records[$0].hasSlot && records[$0].began + .seconds(10) <= now }
                let expired = table.passed(now: now)
                #expect(expired.map(\.address) == late.map { records[$0].address })
                #expect(expired.map(\.wasAnswered) == late.map { records[$0].wasAnswered })
                for index in late { records[index].isOver = true }
            }
            let left = records.filter { !$0.isOver }
            #expect(table.count == left.count { $0.hasSlot })
            #expect(table.deadline == left.first { !$0.hasSlot }.map { $0.began + .seconds(10) })
            let device = try #require(devices.randomElement(using: &random))
            #expect(
                Set(table.sessions(of: device)) == Set(left.map(\.address).filter { $0.device == device }))
            if records.count > 400 { records.removeAll { $0.isOver } }
        }
        #expect(refused > 0)
    }
}
