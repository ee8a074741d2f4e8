internal import TunnelCarrier

/// A home with somebody there: the box that is routed by, and the clients.
final class DoorHome {
    let id: HomeID
    /// The newest link of the box with a whole roster.
    var box: BoxLink?
    /// The newest link of each device that has entered.
    var clients: [DeviceID: ClientLink] = [:]
    /// How many links of the box have not named all devices.
    var boxArrivals = 0
    /// Links that have not entered.
    var arrivals: [UInt64: ClientLink] = [:]

    init(id: HomeID) {
        self.id = id
    }

    var isEmpty: Bool { box == nil && clients.isEmpty && arrivals.isEmpty && boxArrivals == 0 }

    var allClients: [ClientLink] { Array(clients.values) + Array(arrivals.values) }

    /// What log lines call it.
    var name: String { "the home \(id.description.prefix(8))…" }
}
