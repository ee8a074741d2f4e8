/// libFuzzer, where it is linked in. Ordinary test builds link without it, and only replay what is known.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// What is called with each input. Returns 0.
typedef int (*fuzz_callback)(const uint8_t *data, size_t size);

/// Whether libFuzzer is linked in.
bool fuzz_is_linked(void);

/// Hands the process to libFuzzer, with the arguments of its command line after the name of the program.
///
/// Returns its exit code; it exits by itself where an input fails. Needs `fuzz_is_linked()`.
int fuzz_run(int count, const char *const *arguments, fuzz_callback callback);
