package import TransportIO

/// Follows what the network that the machine is on is called. A pure value.
///
/// A router's address on the link becomes known with the first packet that it is sent, when the first dial is under way
/// already. The name that this dial began with therefore stays for as long as the machine does; what it stands for gets
/// more precise.
package struct NetworkAttachment: Sendable {
    /// A network that had a vague name has been told apart from others of that name.
    package struct Recognition: Sendable, Hashable {
        /// The name so far, which goes on to mean this network.
        package var vague: String
        /// The name under which the network is known from now on.
        package var full: String

        package init(vague: String, full: String) {
            self.vague = vague
            self.full = full
        }
    }

    /// What dials call the network; nil where there is none, or it cannot be told from others.
    package private(set) var name: String?
    private var router: NetworkState.Name?

    /// Starts without a network.
    package init() {}

    /// The machine's network is this now.
    package mutating func see(_ next: NetworkState.Name?) -> Recognition? {
        guard let next else {
            (name, router) = (nil, nil)
            return nil
        }
        guard let known = router, known.vague == next.vague else {
            (name, router) = (next.full ?? next.vague, next)
            return nil
        }
        // The kernel forgets a neighbour that it has not needed for a while.
        guard let full = next.full, full != known.full else { return nil }
        router = next
        guard known.full == nil else {
            // Another router under the same address: another network.
            name = full
            return nil
        }
        return Recognition(vague: next.vague, full: full)
    }

    /// The router's full name, as far as it is known.
    package var fullName: String? { router?.full }
}
