public import TransportKit

/// A service that can finish what is under way when the host is asked to stop.
///
/// A session of any other service is closed with 1001 as soon as the host drains.
public protocol GracefulService: Service {
    /// Called once: take nothing new, and close each session with 1001 once its transfers are done.
    func beginGracefulShutdown()
}
