/// A constant shape: frames of one size at a fixed pace, whether there is something to say or not.
///
/// The relay, and whoever watches the path to it, then sees neither when the ends talk nor how much: every frame looks like
/// random bytes. It costs its bandwidth day and night, and it is all that there is: size times pace. Both ends of a room need
/// the same size; a box and all its clients shape, or none.
public struct RelayShape: Sendable, Hashable {
    /// How long every frame is, in bytes; at least 128.
    public var frameBytes = 1024
    /// How much time lies between two frames. A relay takes 60 frames a second.
    public var interval = Duration.milliseconds(100)

    /// Makes the default shape: ten frames of 1 KiB a second in each direction.
    public init() {}
}
