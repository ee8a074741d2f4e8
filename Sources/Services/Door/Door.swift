public import NoiseCarrier
public import TransportKit
internal import TunnelCarrier

/// A door: clients and boxes dial it, and it passes their sealed messages on, of which it can read none (`docs/protocol.md` §9).
///
/// One door has two services, one for each leg. It works on one executor, best the loop of its listeners; nothing runs while
/// nobody is linked.
///
/// ```swift
/// let door = Door(keys: [key], executor: loop, time: loop)
/// let routes = ["/v1/app": door.appService, "/v1/box": door.boxService]
/// ```
public final class Door: Sendable {
    private let desk: DoorDesk

    /// Makes a door; nothing is opened.
    ///
    /// - Parameters:
    ///   - keys: its static key, or two while they change: the one that clients are told of first (R128).
    ///   - options: how much it takes, and of whom.
    ///   - directory: which homes it serves; without it those that the options list.
    ///   - executor: where it works, best the loop of its listeners.
    ///   - time: the clock of its deadlines.
    ///   - log: hears of boxes that come and go.
    ///   - metrics: hears how many links, sessions and frames there are.
    /// - Throws: ``DoorOptions/Invalid`` for an option that is out of its range.
    public init(
        keys: [StaticPrivateKey], options: DoorOptions = DoorOptions(), directory: (any HomeDirectory)? = nil,
        executor: any SerialExecutor & TaskExecutor, time: any TimeSource, log: Log = Log(),
        metrics: any MetricsSink = NoMetrics()
    ) throws(DoorOptions.Invalid) {
        try options.check()
        let homes = options.homes.map { Set($0.compactMap { HomeID($0) }) }
        desk = DoorDesk(
            keys: keys, options: options, directory: directory ?? ListedHomes(homes), executor: executor, time: time,
            log: log.named("door"), metrics: metrics)
    }

    /// What answers clients: `door.app`.
    public var appService: any Service { DoorLegService(.app, desk) }

    /// What answers boxes: `door.box`.
    public var boxService: any Service { DoorLegService(.box, desk) }
}
