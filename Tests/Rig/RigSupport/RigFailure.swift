/// What went wrong with the rig, or what was waited for in vain.
package struct RigFailure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
