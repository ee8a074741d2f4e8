internal import Glibc
public import TransportKit

/// How many descriptors the process may have.
public enum OpenFileLimit {
    /// With fewer than this a program cannot even begin: the loop, signals and the control socket take about twenty.
    public static let least = 64

    /// Allows as many as the system lets this process have, which is often more than a shell sets (B46).
    ///
    /// - Throws: ``/TransportKit/TransportError/Code/resources`` where that is less than ``least``.
    public static func raise() throws(TransportError) {
        var limit = rlimit()
        // Where the limit cannot be read, what needs a descriptor says so.
        guard unsafe getrlimit(RLIMIT_NOFILE.resource, &limit) == 0 else { return }
        if limit.rlim_cur < limit.rlim_max {
            var raised = limit
            raised.rlim_cur = limit.rlim_max
            if unsafe setrlimit(RLIMIT_NOFILE.resource, &raised) == 0 { limit = raised }
        }
        guard limit.rlim_cur >= least else {
            throw TransportError(
                .resources,
                "this process may open \(limit.rlim_cur) files and needs at least \(least) "
                    + "(raise the limit with ulimit -n or LimitNOFILE=)")
        }
    }
}

extension __rlimit_resource {
    fileprivate var resource: __rlimit_resource_t { __rlimit_resource_t(rawValue) }
}
