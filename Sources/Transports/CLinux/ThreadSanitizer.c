// Read by the thread sanitizer's run time; nothing else calls it.
//
// A contended Synchronization.Mutex is handed over inside the kernel (FUTEX_LOCK_PI), where the sanitizer sees no order
// between the two holders and reports a race for what the lock protects. The value of a Mutex can only be touched inside
// the closure given to withLock, so nothing real is hidden by leaving out what happens in such closures: in their mangled
// names `zYu…YTXEfU` is a function literal of type (inout sending State) -> sending Result.
//
// A continuation that is resumed before its task sleeps is ordered by an atomic inside the Swift run time, which is not
// instrumented. Only reports whose innermost frame is that function itself, or the one that resumes it (`Scc6resume`), are
// left out.
const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
	return "race:zYu*YTXEfU\n"
		   "race_top:withUnsafeContinuation\n"
		   "race_top:Scc6resume9returning\n";
}
