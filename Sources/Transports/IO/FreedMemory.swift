internal import CLinux

/// What becomes of memory that the process has freed.
public enum FreedMemory {
    /// Keeps a few MiB of it for the next buffer, for the whole process. Call it first thing in a program that carries
    /// fast flows; `transportkit` does.
    ///
    /// A busy flow takes and frees the same large buffers all the time. By default glibc gives them back to the kernel
    /// at once and faults them in again page by page, which is a third of what a forwarded byte costs.
    public static func keep() {
        tk_keep_freed_memory()
    }
}
