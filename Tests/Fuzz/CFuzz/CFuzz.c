#include "CFuzz.h"

#include <stdlib.h>

// The entry of libFuzzer as a library: https://llvm.org/docs/LibFuzzer.html#using-libfuzzer-as-a-library
extern int LLVMFuzzerRunDriver(int *argc, char ***argv, fuzz_callback callback) __attribute__((weak));

bool fuzz_is_linked(void) { return LLVMFuzzerRunDriver != NULL; }

int fuzz_run(int count, const char *const *arguments, fuzz_callback callback) {
    char **argv = calloc((size_t)count + 2, sizeof *argv);
    if (!argv) return 1;
    argv[0] = "fuzz";
    for (int i = 0; i < count; i++) argv[i + 1] = (char *)arguments[i];
    int argc = count + 1;
    // libFuzzer keeps the arguments for as long as the process lives.
    return LLVMFuzzerRunDriver(&argc, &argv, callback);
}
