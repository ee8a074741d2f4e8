internal import CLinux
internal import Glibc

/// Starts a thread that runs `body` and ends; nobody waits for it.
///
/// - Returns: 0, or the errno for which no thread could be made.
func startThread(named name: String, _ body: @escaping @Sendable () -> Void) -> Int32 {
    final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void

        init(_ name: String, _ body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
    var thread = pthread_t()
    let start = unsafe Unmanaged.passRetained(Start(name, body))
    let result = unsafe pthread_create(
        &thread, nil,
        { argument in
            guard let argument = unsafe argument else { return nil }
            let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
            unsafe start.name.withCString { unsafe tk_name_thread($0) }
            start.body()
            return nil
        }, start.toOpaque())
    if result == 0 {
        pthread_detach(thread)
    } else {
        unsafe start.release()
    }
    return result
}
