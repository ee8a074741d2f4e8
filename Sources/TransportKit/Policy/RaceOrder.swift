/// Who goes first and who stands back, for the policies with a head start.
struct RaceOrder {
    /// In the order of preference, the remembered winner first; never empty where anything is configured.
    let sound: [TransportName]
    /// Those that stand back.
    let demoted: [TransportName]

    init(_ transports: [TransportName], record: PathRecord) {
        var order = transports
        if let winner = record.winner, let index = order.firstIndex(of: winner) {
            order.insert(order.remove(at: index), at: 0)
        }
        let sound = order.filter { record.demotions[$0] == nil }
        let demoted = order.filter { record.demotions[$0] != nil }
        // Where all stand back, none does.
        (self.sound, self.demoted) = sound.isEmpty ? (demoted, []) : (sound, demoted)
    }

    /// The attempts with those that stand back behind them, the first of these after `wait`.
    func complete(_ attempts: [Attempt], headStart: Duration, wait: Duration) -> [Attempt] {
        let last = attempts.map(\.delay).max() ?? .zero
        return attempts + demoted.enumerated().map { Attempt($0.element, delay: last + wait + headStart * $0.offset) }
    }
}
