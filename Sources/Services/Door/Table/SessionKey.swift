internal import TunnelCarrier

/// By what a home tells its sessions apart.
struct SessionKey: Sendable, Hashable {
    let device: DeviceID
    let session: TunnelSessionID
}
