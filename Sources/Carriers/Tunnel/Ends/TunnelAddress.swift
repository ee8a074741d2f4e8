/// Which session a frame belongs to, as an end of the link knows it.
package struct TunnelAddress: Sendable, Hashable {
    /// Whose session it is; between client and door, nil.
    package var device: DeviceID?
    package var session: TunnelSessionID

    package init(device: DeviceID? = nil, session: TunnelSessionID) {
        self.device = device
        self.session = session
    }

    package init(of frame: TunnelFrame) {
        self.init(device: frame.device, session: frame.session)
    }
}
