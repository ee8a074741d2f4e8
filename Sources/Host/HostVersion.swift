/// The version of the host.
package enum HostVersion {
    package static let text = "0.1.0"
}
