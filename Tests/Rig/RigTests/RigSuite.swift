import Testing

/// All tests on the rig. They run one after the other, by the real clock.
@Suite(.serialized, .needsRig) enum RigSuite {}
