public import TransportKit

extension BuildContext {
    /// The loop of the chain, for a plug-in that opens sockets of its own.
    ///
    /// - Throws: ``/TransportKit/TransportError/Code/unsupported`` where the chain runs on another executor, as some tests do.
    public func eventLoop() throws(TransportError) -> EventLoop {
        guard let loop = executor as? EventLoop else {
            throw TransportError(
                .unsupported, "this plug-in needs an event loop, and the chain runs on \(type(of: executor))")
        }
        return loop
    }
}
