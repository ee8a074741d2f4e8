internal import CSodium

/// Memory that holds a secret and is wiped before it is freed. It is never copied but on purpose.
///
/// Sendable is sound: it has one owner at a time, and what several threads read is never written after it was made.
@safe struct Secret: ~Copyable, @unchecked Sendable {
    /// Where the bytes are; good while somebody borrows the secret.
    @unsafe let pointer: UnsafeMutablePointer<UInt8>
    let count: Int
    private let isGuarded: Bool

    /// Makes a secret of zeros.
    ///
    /// - Parameter isGuarded: whether it lies in locked pages of its own between two that nobody may touch. That takes four
    ///   mappings, of which a process has some ten thousand: for the few keys that live long.
    init(count: Int, isGuarded: Bool = false) {
        Sodium.start()
        if isGuarded, let pages = unsafe sodium_malloc(count) {
            unsafe pointer = unsafe pages.bindMemory(to: UInt8.self, capacity: count)
            self.isGuarded = true
        } else {
            unsafe pointer = UnsafeMutablePointer.allocate(capacity: count)
            self.isGuarded = false
        }
        self.count = count
        unsafe pointer.initialize(repeating: 0, count: count)
    }

    deinit {
        if isGuarded {
            // It wipes by itself.
            unsafe sodium_free(pointer)
        } else {
            unsafe sodium_memzero(pointer, count)
            unsafe pointer.deallocate()
        }
    }

    /// A second secret of the same bytes.
    func copy() -> Secret {
        let copy = Secret(count: count)
        unsafe copy.pointer.update(from: pointer, count: count)
        return copy
    }

    /// Forgets the bytes before the memory is freed.
    func wipe() {
        unsafe sodium_memzero(pointer, count)
    }

    /// Fills it with random bytes.
    func randomize() {
        unsafe randombytes_buf(pointer, count)
    }

    /// Fills it; `bytes` must have its length.
    func fill(from bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count == count, "a secret is filled whole")
        unsafe UnsafeMutableRawBufferPointer(start: pointer, count: count).copyMemory(from: bytes)
    }

    /// Whether both hold the same bytes, found out in a time that does not depend on them.
    func equals(_ other: borrowing Secret) -> Bool {
        unsafe count == other.count && sodium_memcmp(pointer, other.pointer, count) == 0
    }
}
