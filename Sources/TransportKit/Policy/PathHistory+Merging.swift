/// What two hosts have found out about one path since both knew the same: no evidence of either is lost. What only one of
/// them has changed is as that one says; what both have changed is the newest, or whatever stands back for longer.
extension PathTable.Entry {
    /// Takes over what another host has found out.
    ///
    /// - Parameters:
    ///   - theirs: what the other host knows.
    ///   - base: what both knew; nothing where they have never known the same.
    package func merging(_ theirs: Self, since base: PathHistory = PathHistory()) -> Self {
        let isNewer = changed >= theirs.changed
        var merged = PathHistory()
        merged.winner = pick(base.winner, history.winner, theirs.history.winner) { $0.since >= $1.since ? $0 : $1 }
        merged.smoothedRoundTrip = pick(
            base.smoothedRoundTrip, history.smoothedRoundTrip, theirs.history.smoothedRoundTrip
        ) { isNewer ? $0 : $1 }
        for transport in Set(history.transports.keys).union(theirs.history.transports.keys) {
            merged[transport] = history[transport].merging(theirs.history[transport], since: base[transport])
        }
        return Self(history: merged, changed: isNewer ? changed : theirs.changed)
    }
}

extension TransportHistory {
    fileprivate func merging(_ theirs: Self, since base: Self) -> Self {
        var merged = TransportHistory()
        let (known, ours, others) = (Set(base.strikes), Set(strikes), Set(theirs.strikes))
        // One that is gone was settled: it has led to a demotion, or was forgotten after a proof.
        merged.strikes = ours.intersection(others).union(ours.subtracting(known)).union(others.subtracting(known))
            .sorted { ($0.time, $0.reason) < ($1.time, $1.reason) }
        merged.demotion = pick(base.demotion, demotion, theirs.demotion) { $0.until >= $1.until ? $0 : $1 }
        merged.demotionsInARow =
            pick(base.demotionsInARow, demotionsInARow, theirs.demotionsInARow, both: max) ?? demotionsInARow
        merged.isUnproven = isUnproven == base.isUnproven ? theirs.isUnproven : isUnproven
        merged.lastFailure = pick(base.lastFailure, lastFailure, theirs.lastFailure, both: max)
        merged.lastCarried = pick(base.lastCarried, lastCarried, theirs.lastCarried, both: max)
        merged.lastProbe = pick(base.lastProbe, lastProbe, theirs.lastProbe, both: max)
        return merged
    }
}

/// What one side has changed; where both have, what `both` makes of it, and of nothing and something that is something.
private func pick<Value: Equatable>(
    _ base: Value?, _ ours: Value?, _ theirs: Value?, both: (Value, Value) -> Value
) -> Value? {
    if ours == base { return theirs }
    if theirs == base { return ours }
    guard let ours, let theirs else { return ours ?? theirs }
    return both(ours, theirs)
}
