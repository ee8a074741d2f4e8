import RigSupport
import Testing

extension Trait where Self == ConditionTrait {
    /// Skips, with the reason, where the rig cannot work.
    static var needsRig: Self {
        .enabled(if: Privilege.missing == nil, Comment(rawValue: Privilege.missing ?? "the rig works here"))
    }
}
