internal import TransportKit

/// Which service answers on a path: the one whose route it is, else the nearest above it that answers there, too.
struct RouteTable: Sendable {
    private let exact: [String: any Service]
    /// With their slash at the end, the longest first.
    private let above: [(prefix: String, service: any Service)]

    init(_ routes: [String: any Service]) {
        exact = routes
        above = routes.filter { $0.value.servesPathsBelow }
            .map { path, service in (path.hasSuffix("/") ? path : path + "/", service) }
            .sorted { ($0.prefix.utf8.count, $0.prefix) > ($1.prefix.utf8.count, $1.prefix) }
    }

    subscript(target: Target) -> (any Service)? {
        exact[target.path] ?? above.first { target.path.hasPrefix($0.prefix) }?.service
    }
}
