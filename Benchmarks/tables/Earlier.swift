internal import Foundation

/// What the earlier system measured (`Benchmarks/earlier.json`), in milliseconds.
struct Earlier: Sendable, Decodable {
    struct Part<Row: Decodable & Sendable>: Sendable, Decodable {
        let conditions: String
        let rows: [Row]
    }

    /// Both legs shaped: p50 and p95, or one figure.
    struct TwoLegsRow: Sendable, Decodable {
        let what: String
        let loss: Int
        let webSocket: [Double]
        let quic: [Double]
    }

    /// One leg shaped, per transport.
    struct OneLegRow: Sendable, Decodable {
        let transport: String
        let loss: Int
        let cold: Double
        let request: [Double]
        let reconnect: [Double]
    }

    let twoLegs: Part<TwoLegsRow>
    let oneLeg: Part<OneLegRow>

    init(file: String) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(contentsOf: URL(fileURLWithPath: file)))
    }

    /// The row of that name at that loss in percent.
    func twoLegs(_ what: String, loss: Int) -> TwoLegsRow? {
        twoLegs.rows.first { $0.what == what && $0.loss == loss }
    }

    func twoLegs(_ way: Way, _ what: Connect.What, loss: Int) -> [Double]? {
        let row = twoLegs(what.rawValue, loss: loss)
        return switch way {
        case .webSocket: row?.webSocket
        case .quic: row?.quic
        case .race: nil
        }
    }

    func oneLeg(_ way: Way, _ what: Connect.What, loss: Int) -> [Double]? {
        let row = oneLeg.rows.first { $0.transport == way.rawValue && $0.loss == loss }
        return switch what {
        case .cold: row.map { [$0.cold] }
        case .request: row?.request
        case .reconnect: row?.reconnect
        }
    }
}
