// What Linux offers and Glibc's module does not show to Swift: epoll, eventfd, timerfd, recvmmsg, UDP control messages,
// the error queue, netlink, a thread's own loop.
//
// A function that can fail returns a negative errno; otherwise zero or more. Addresses are plain values, so that callers
// handle no `sockaddr`. GNU-only declarations stay in CLinux.c: in this header they would change Glibc's module.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

// MARK: - Addresses

/// An IP address with a port. `family` is 4, 6, or 0 for none; IPv4 has its number in `low`, in host byte order.
/// IPv4-mapped IPv6 addresses are given out as IPv4.
typedef struct tk_address {
    uint64_t high;
    uint64_t low;
    uint32_t scope;
    uint16_t port;
    uint8_t family;
} tk_address;

// MARK: - Loop

static const uint32_t TK_EPOLL_IN = 0x001;
static const uint32_t TK_EPOLL_OUT = 0x004;
static const uint32_t TK_EPOLL_ERR = 0x008;
static const uint32_t TK_EPOLL_HUP = 0x010;
static const uint32_t TK_EPOLL_RDHUP = 0x2000;
static const uint32_t TK_EPOLL_ET = 0x80000000u;

typedef struct tk_event {
    uint64_t token;
    uint32_t events;
} tk_event;

int tk_epoll_create(void);
int tk_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t token);
int tk_epoll_change(int epoll, int descriptor, uint32_t events, uint64_t token);
int tk_epoll_remove(int epoll, int descriptor);
/// Waits for at most `timeout_nanoseconds`, or for ever if it is negative.
int tk_epoll_wait(int epoll, tk_event *events, int capacity, int64_t timeout_nanoseconds);

int tk_eventfd(void);
int tk_eventfd_signal(int descriptor);
/// A timer on CLOCK_BOOTTIME.
int tk_timerfd(void);
int tk_timerfd_arm(int descriptor, uint64_t boottime_nanoseconds);

/// What the calling thread was last marked with. Kept in C, because the Swift optimizer may keep `pthread_self()`, or a
/// thread-local, across an `await` that changes threads.
void *tk_thread_mark(void);
void tk_set_thread_mark(void *mark);
/// The calling thread's id, cached.
int tk_thread_id(void);
/// Names the calling thread; the name is cut at 15 bytes.
void tk_name_thread(const char *name);
/// Keeps the calling thread on one processor.
int tk_pin_thread(int processor);

uint64_t tk_boottime(void);
/// Like tk_boottime, but it stands still while the machine is suspended.
uint64_t tk_awaketime(void);
int64_t tk_walltime(void);
/// Processor time of the whole process in nanoseconds.
uint64_t tk_process_time(void);

// MARK: - Sockets of either kind

int tk_close(int descriptor);
tk_address tk_local_address(int descriptor);
tk_address tk_remote_address(int descriptor);
/// Takes the pending error of a socket; 0 if there is none.
int tk_take_socket_error(int descriptor);
/// Takes one error off the error queue: its errno, 0 if it tells nothing about reachability, or -EAGAIN at the end.
int tk_next_queued_error(int descriptor);

// MARK: - UDP

/// Opens and binds. With `v6_only` false an IPv6 socket on `::` serves IPv4 too.
int tk_udp_bind(tk_address local, int reuse_port, int v6_only);
/// Opens and connects; ICMP errors are reported.
int tk_udp_connect(tk_address remote);
/// Asks for a buffer of `bytes`, past the limit where this process may. Returns what it got.
int tk_grow_receive_buffer(int descriptor, int bytes);
int tk_grow_send_buffer(int descriptor, int bytes);
/// Sends one datagram, or, with `segment` above 0, one per `segment` bytes. `to` and `from` may have family 0.
int tk_udp_send(
    int descriptor, int is_ipv6, const void *bytes, size_t count, uint16_t segment, tk_address to, tk_address from,
    uint8_t ecn);

/// Room for one recvmmsg call.
typedef struct tk_receiver tk_receiver;

typedef struct tk_datagram {
    tk_address from;
    tk_address local;
    const void *bytes;
    uint32_t count;
    /// Bytes per datagram where the kernel joined several, otherwise 0.
    uint32_t segment;
    uint8_t ecn;
    uint8_t truncated;
} tk_datagram;

tk_receiver *tk_receiver_make(unsigned slots, size_t slot_bytes);
void tk_receiver_free(tk_receiver *receiver);
/// Receives up to `slots` datagrams without waiting.
int tk_receiver_receive(tk_receiver *receiver, int descriptor);
tk_datagram tk_receiver_datagram(const tk_receiver *receiver, int index);

// MARK: - TCP

typedef struct tk_accepted {
    int descriptor;
    tk_address remote;
} tk_accepted;

/// Opens and starts to connect; the socket turns writable once that has succeeded or failed.
int tk_tcp_connect(tk_address remote);
int tk_tcp_listen(tk_address local, int reuse_port, int v6_only, int backlog);
tk_accepted tk_tcp_accept(int descriptor);
int64_t tk_receive(int descriptor, void *bytes, size_t count);
int64_t tk_send(int descriptor, const void *bytes, size_t count);
int64_t tk_send_vector(int descriptor, const struct iovec *vector, size_t count);
int tk_shutdown_write(int descriptor);

typedef struct tk_tcp_progress {
    /// Bytes written that the peer's kernel has not acknowledged; negative if that is unknown.
    int64_t unacknowledged;
    /// Milliseconds since its last acknowledgement; negative if that is unknown.
    int64_t since_acknowledgement;
} tk_tcp_progress;

tk_tcp_progress tk_tcp_progress_of(int descriptor);
/// Makes the next close a reset.
int tk_reset_on_close(int descriptor);
/// A descriptor that is good for nothing but being closed, to have one in hand when they run out.
int tk_spare_descriptor(void);

// MARK: - Names and networks

/// Looks a name up, blocking. Writes at most `capacity` addresses and returns how many, or the negative EAI code.
int tk_resolve(const char *name, uint16_t port, tk_address *addresses, int capacity);
const char *tk_resolve_error(int code);
unsigned tk_interface_index(const char *name);

/// A routing socket that hears changes of links, addresses, routes and neighbours.
int tk_route_open(void);
/// Asks for all addresses (`what` 0), all routes (`what` 1) or all neighbours (`what` 2).
int tk_route_dump(int descriptor, int what, uint32_t sequence);

// MARK: - Memory

/// Has the allocator keep what was freed, up to a few MiB, instead of giving it back to the kernel.
void tk_keep_freed_memory(void);
