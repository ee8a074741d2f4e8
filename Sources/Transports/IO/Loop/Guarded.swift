internal import Glibc

/// A value behind a lock of the C library.
///
/// `Synchronization.Mutex` hands a contended lock over inside the kernel, where the thread sanitizer sees no order between
/// the two holders and reports a race for every job handed to a loop.
///
/// Sendable is sound: `value` is touched by the holder of the lock alone.
@safe final class Guarded<Value>: @unchecked Sendable {
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var value: Value

    init(_ value: Value) {
        self.value = value
        unsafe lock.initialize(to: pthread_mutex_t())
        let result = unsafe pthread_mutex_init(lock, nil)
        precondition(result == 0, "no lock can be made")
    }

    deinit {
        unsafe pthread_mutex_destroy(lock)
        unsafe lock.deinitialize(count: 1)
        unsafe lock.deallocate()
    }

    func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
        unsafe pthread_mutex_lock(lock)
        defer { unsafe pthread_mutex_unlock(lock) }
        return body(&value)
    }
}
