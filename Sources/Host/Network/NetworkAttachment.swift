package import TransportIO

/// Follows what the network that the machine is on is called. A pure value.
///
/// A router's address on the link becomes known with the first packet that it is sent, when the first dial is under way
/// already. The name that this dial began with therefore stays for as long as the machine does; what it stands for gets
/// more precise. The next stay under the same vague name may be on another network and has another name, so that a
/// session that was dialled in the last one says nothing of it (R54).
package struct NetworkAttachment: Sendable {
    /// What is new about the name.
    package enum Change: Sendable, Hashable {
        /// A stay has begun, on a network that many others are called like.
        case began(stay: String, vague: String)
        /// The network of the stay has been told apart from others of its vague name.
        case recognized(stay: String, full: String)
    }

    /// What dials call the network; nil where there is none, or it cannot be told from others.
    package private(set) var name: String?
    private var router: NetworkState.Name?
    /// How many stays there were under each vague name.
    private var stays: [String: Int] = [:]

    /// Starts without a network.
    package init() {}

    /// The machine's network is this now.
    package mutating func see(_ next: NetworkState.Name?) -> Change? {
        guard let next else {
            (name, router) = (nil, nil)
            return nil
        }
        guard let known = router, known.vague == next.vague else {
            router = next
            guard next.full == nil else {
                name = next.full
                return nil
            }
            let number = stays[next.vague, default: 0] + 1
            stays[next.vague] = number
            let stay = number == 1 ? next.vague : "\(next.vague)#\(number)"
            name = stay
            return .began(stay: stay, vague: next.vague)
        }
        // The kernel forgets a neighbour that it has not needed for a while.
        guard let full = next.full, full != known.full else { return nil }
        router = next
        guard known.full == nil, let stay = name else {
            // Another router under the same address: another network.
            name = full
            return nil
        }
        return .recognized(stay: stay, full: full)
    }

    /// The router's full name, as far as it is known.
    package var fullName: String? { router?.full }
}
