internal import TransportKit

/// What somebody asks for who joins a room: `/r/<epoch>/<handle>/<box|app>`.
package struct RelayJoin: Sendable, Hashable {
    /// The epoch that the handle belongs to.
    package let epoch: Int64
    /// The room.
    package let handle: RelayHandle
    /// Who the peer is in it.
    package let role: RelayWire.Role

    /// Makes a join.
    package init(epoch: Int64, handle: RelayHandle, role: RelayWire.Role) {
        self.epoch = epoch
        self.handle = handle
        self.role = role
    }

    /// Reads the path of a target; nil for anything but exactly four parts, each in its form.
    package init?(path: String) {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0].isEmpty, parts[1] == "r", let epoch = RelayEpoch.read(parts[2]),
            let handle = RelayHandle(String(parts[3])), let role = RelayWire.Role(rawValue: String(parts[4]))
        else { return nil }
        self.init(epoch: epoch, handle: handle, role: role)
    }

    /// The path of the target.
    package var path: String { "/r/\(epoch)/\(handle.text)/\(role.rawValue)" }
}
