/// What a door has passed on, since it was last asked.
struct DoorCounts: Equatable {
    var framesToBox = 0
    var bytesToBox = 0
    var framesToClient = 0
    var bytesToClient = 0
    /// Unreliable frames that found a full queue.
    var framesDropped = 0
    /// Frames of no session.
    var framesForeign = 0

    /// The numbers that are not zero, with their names.
    var named: [(String, Int)] {
        [
            ("door.frames.toBox", framesToBox), ("door.bytes.toBox", bytesToBox),
            ("door.frames.toClient", framesToClient), ("door.bytes.toClient", bytesToClient),
            ("door.frames.dropped", framesDropped), ("door.frames.foreign", framesForeign),
        ].filter { $0.1 > 0 }
    }
}
