// Sockets and threads inside network namespaces, for tests. A function that can fail returns a negative errno.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// Moves the calling thread into the network namespace at `path`. Only a thread of one's own may be moved.
int rig_enter(const char *path);

static const int RIG_UDP = 0;
static const int RIG_TCP = 1;

/// Opens a socket inside the namespace at `path` (NULL: this process's own) and binds it to a numeric address; a TCP socket
/// listens. The socket stays in the namespace; every thread may use it.
int rig_open_bound(const char *path, int kind, const char *address, uint16_t port);
/// Opens a socket inside the namespace and connects it to a numeric address, TCP for at most `milliseconds`.
int rig_open_connected(const char *path, int kind, const char *address, uint16_t port, int milliseconds);
/// Waits for a connection, at most `milliseconds`; -ETIMEDOUT after that.
int rig_accept(int descriptor, int milliseconds);
/// Where a datagram came from, and when the kernel got it by CLOCK_MONOTONIC (0: unknown).
typedef struct rig_origin {
    char address[64];
    uint16_t port;
    uint64_t arrived;
} rig_origin;
/// Waits for bytes or a datagram; 0 is the end of a TCP stream, or an empty datagram. `origin` may be NULL.
int64_t rig_receive(int descriptor, void *bytes, size_t count, int milliseconds, rig_origin *origin);
/// Sends one datagram, or all bytes. Where `address` is not NULL the datagram goes there.
int64_t rig_send(
    int descriptor, const void *bytes, size_t count, int milliseconds, const char *address, uint16_t port);
int rig_finish(int descriptor);
/// Closes; with `resets` a TCP peer sees a reset.
int rig_close(int descriptor, int resets);
uint16_t rig_local_port(int descriptor);
/// Asks for buffers of `bytes` both ways, past the system's limit.
int rig_grow_buffers(int descriptor, int bytes);

/// CLOCK_MONOTONIC in nanoseconds.
uint64_t rig_now(void);

/// Starts a program with these descriptors as its standard streams, its signals as a shell would set them, and a process
/// group of its own.
int rig_spawn(
    const char *path, char *const arguments[], char *const environment[], int input, int output, int errors);
/// Waits for its end. Returns its exit code, or minus the signal that ended it.
int rig_wait(int process);
/// A pipe that programs do not inherit: `ends[0]` is read from.
int rig_pipe(int ends[2]);
/// Whether this process may administer networks and enter namespaces.
int rig_is_privileged(void);
