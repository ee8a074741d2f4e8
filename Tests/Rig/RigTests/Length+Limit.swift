import RigSupport
import Testing

extension Length {
    /// How long one test of a suite may take: `minutes`, or what the longest scenario takes in full.
    static func limit(minutes: Int) -> TimeLimitTrait.Duration { .minutes(isFull ? 30 : minutes) }
}
