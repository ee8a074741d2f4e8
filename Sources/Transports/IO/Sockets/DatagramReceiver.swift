internal import CLinux

/// Room for one system call that receives many datagrams. One per loop, since its sockets receive one after another.
@safe final class DatagramReceiver {
    // GRO joins up to 64 KiB into one.
    private static let slots: UInt32 = 16
    private static let slotBytes = 65_536

    private let receiver: OpaquePointer

    init() {
        unsafe receiver = tk_receiver_make(Self.slots, Self.slotBytes)
    }

    deinit { unsafe tk_receiver_free(receiver) }

    /// Receives what is there; the count, or a negative errno. Less than `capacity` means that there was no more.
    func receive(from descriptor: Int32) -> Int32 {
        unsafe tk_receiver_receive(receiver, descriptor)
    }

    var capacity: Int32 { Int32(Self.slots) }

    /// One of the received ones, good until the next call.
    func datagram(_ index: Int32) -> tk_datagram {
        unsafe tk_receiver_datagram(receiver, index)
    }
}
