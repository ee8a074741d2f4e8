internal import CRig
internal import Foundation

/// What the rig needs of the machine.
package enum Privilege {
    /// Why the rig cannot work here; nil where it can.
    package static let missing: String? = {
        guard rig_is_privileged() == 1 else {
            return "no right to make network namespaces and TUN devices (root, or CAP_NET_ADMIN and CAP_SYS_ADMIN)"
        }
        let tools = ["ip", "nft", "conntrack", "sysctl", "env"].filter { !isOnPath($0) }
        return tools.isEmpty ? nil : "missing programs: \(tools.joined(separator: ", ")); bin/setup test installs them"
    }()

    private static func isOnPath(_ tool: String) -> Bool {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/sbin:/usr/bin:/sbin:/bin"
        return path.split(separator: ":").contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(tool)") }
    }
}
