#define _GNU_SOURCE
#include "CLinux.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <malloc.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

_Static_assert(EPOLLIN == 0x001 && EPOLLOUT == 0x004 && EPOLLERR == 0x008, "the header's numbers are the kernel's");
_Static_assert(EPOLLHUP == 0x010 && EPOLLRDHUP == 0x2000, "the header's numbers are the kernel's");

static int result(int value) { return value < 0 ? -errno : value; }

// MARK: - Addresses

static uint64_t load64(const uint8_t *bytes) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value = value << 8 | bytes[i];
    return value;
}

static void store64(uint8_t *bytes, uint64_t value) {
    for (int i = 7; i >= 0; i--, value >>= 8) bytes[i] = (uint8_t)value;
}

static void set_in6(tk_address *address, const struct in6_addr *in6, uint32_t scope) {
    uint64_t high = load64(in6->s6_addr), low = load64(in6->s6_addr + 8);
    if (high == 0 && low >> 32 == 0xffff) {
        address->family = 4;
        address->low = low & 0xffffffffu;
    } else {
        address->family = 6;
        address->high = high;
        address->low = low;
        // Only link-local addresses need their interface; a scope on others would make equal addresses differ.
        address->scope = IN6_IS_ADDR_LINKLOCAL(in6) ? scope : 0;
    }
}

static tk_address from_sockaddr(const struct sockaddr_storage *storage) {
    tk_address address = {0};
    if (storage->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)storage;
        address.family = 4;
        address.low = ntohl(in->sin_addr.s_addr);
        address.port = ntohs(in->sin_port);
    } else if (storage->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)storage;
        set_in6(&address, &in6->sin6_addr, in6->sin6_scope_id);
        address.port = ntohs(in6->sin6_port);
    }
    return address;
}

static struct in6_addr to_in6(tk_address address) {
    struct in6_addr in6;
    store64(in6.s6_addr, address.family == 4 ? 0 : address.high);
    store64(in6.s6_addr + 8, address.family == 4 ? 0xffff00000000ull | address.low : address.low);
    return in6;
}

/// An IPv4 address becomes an IPv4-mapped one where the socket is of IPv6.
static socklen_t to_sockaddr(tk_address address, int is_ipv6, struct sockaddr_storage *storage) {
    if (is_ipv6) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)storage;
        memset(in6, 0, sizeof *in6);
        in6->sin6_family = AF_INET6;
        in6->sin6_addr = to_in6(address);
        in6->sin6_port = htons(address.port);
        in6->sin6_scope_id = address.scope;
        return sizeof *in6;
    }
    struct sockaddr_in *in = (struct sockaddr_in *)storage;
    memset(in, 0, sizeof *in);
    in->sin_family = AF_INET;
    in->sin_addr.s_addr = htonl((uint32_t)address.low);
    in->sin_port = htons(address.port);
    return sizeof *in;
}

// MARK: - Loop

int tk_epoll_create(void) { return result(epoll_create1(EPOLL_CLOEXEC)); }

static int control(int epoll, int operation, int descriptor, uint32_t events, uint64_t token) {
    struct epoll_event event = {.events = events, .data.u64 = token};
    return result(epoll_ctl(epoll, operation, descriptor, &event));
}

int tk_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t token) {
    return control(epoll, EPOLL_CTL_ADD, descriptor, events, token);
}

int tk_epoll_change(int epoll, int descriptor, uint32_t events, uint64_t token) {
    return control(epoll, EPOLL_CTL_MOD, descriptor, events, token);
}

int tk_epoll_remove(int epoll, int descriptor) { return control(epoll, EPOLL_CTL_DEL, descriptor, 0, 0); }

int tk_epoll_wait(int epoll, tk_event *events, int capacity, int64_t timeout_nanoseconds) {
    struct epoll_event ready[256];
    if (capacity > 256) capacity = 256;
    int count;
    if (timeout_nanoseconds <= 0) {
        count = epoll_wait(epoll, ready, capacity, timeout_nanoseconds < 0 ? -1 : 0);
    } else {
        struct timespec timeout = {timeout_nanoseconds / 1000000000, timeout_nanoseconds % 1000000000};
        count = epoll_pwait2(epoll, ready, capacity, &timeout, NULL);
        if (count < 0 && errno == ENOSYS) {
            int64_t milliseconds = (timeout_nanoseconds + 999999) / 1000000;
            count = epoll_wait(epoll, ready, capacity, milliseconds > INT32_MAX ? INT32_MAX : (int)milliseconds);
        }
    }
    if (count < 0) return -errno;
    for (int i = 0; i < count; i++) events[i] = (tk_event){ready[i].data.u64, ready[i].events};
    return count;
}

int tk_eventfd(void) { return result(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

int tk_eventfd_signal(int descriptor) {
    uint64_t one = 1;
    return write(descriptor, &one, sizeof one) < 0 ? -errno : 0;
}

int tk_timerfd(void) { return result(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)); }

int tk_timerfd_arm(int descriptor, uint64_t boottime_nanoseconds) {
    struct itimerspec spec = {0};
    spec.it_value.tv_sec = (time_t)(boottime_nanoseconds / 1000000000);
    spec.it_value.tv_nsec = (long)(boottime_nanoseconds % 1000000000);
    return result(timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &spec, NULL));
}

// Reached without a call: a loop asks on every send and every job.
#define FAST_THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
FAST_THREAD_LOCAL void *thread_mark;
FAST_THREAD_LOCAL int thread_id;

void *tk_thread_mark(void) { return thread_mark; }
void tk_set_thread_mark(void *mark) { thread_mark = mark; }

int tk_thread_id(void) {
    if (thread_id == 0) thread_id = (int)syscall(SYS_gettid);
    return thread_id;
}

void tk_name_thread(const char *name) {
    char cut[16];
    strncpy(cut, name, 15);
    cut[15] = 0;
    pthread_setname_np(pthread_self(), cut);
}

int tk_pin_thread(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    return result(sched_setaffinity(0, sizeof set, &set));
}

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t tk_boottime(void) { return nanoseconds(CLOCK_BOOTTIME); }
uint64_t tk_awaketime(void) { return nanoseconds(CLOCK_MONOTONIC); }
int64_t tk_walltime(void) { return (int64_t)(nanoseconds(CLOCK_REALTIME) / 1000000000u); }
uint64_t tk_process_time(void) { return nanoseconds(CLOCK_PROCESS_CPUTIME_ID); }

// MARK: - Sockets of either kind

int tk_close(int descriptor) { return result(close(descriptor)); }

tk_address tk_local_address(int descriptor) {
    struct sockaddr_storage storage = {0};
    socklen_t length = sizeof storage;
    if (getsockname(descriptor, (struct sockaddr *)&storage, &length) < 0) return (tk_address){0};
    return from_sockaddr(&storage);
}

tk_address tk_remote_address(int descriptor) {
    struct sockaddr_storage storage = {0};
    socklen_t length = sizeof storage;
    if (getpeername(descriptor, (struct sockaddr *)&storage, &length) < 0) return (tk_address){0};
    return from_sockaddr(&storage);
}

int tk_take_socket_error(int descriptor) {
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) < 0) return errno;
    return error;
}

int tk_next_queued_error(int descriptor) {
    uint8_t ignored[64], room[512];
    struct iovec vector = {ignored, sizeof ignored};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (recvmsg(descriptor, &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return -errno;
    for (struct cmsghdr *message = CMSG_FIRSTHDR(&header); message; message = CMSG_NXTHDR(&header, message)) {
        if ((message->cmsg_level == SOL_IP && message->cmsg_type == IP_RECVERR)
            || (message->cmsg_level == SOL_IPV6 && message->cmsg_type == IPV6_RECVERR)) {
            struct sock_extended_err error;
            memcpy(&error, CMSG_DATA(message), sizeof error);
            // A packet that was too big says something about the path's MTU, which QUIC probes itself.
            return error.ee_errno == EMSGSIZE ? 0 : (int)error.ee_errno;
        }
    }
    return 0;
}

static void set_option(int descriptor, int level, int name, int value) {
    // Options that a kernel lacks cost speed or detail, never function, so their failure is let pass.
    (void)setsockopt(descriptor, level, name, &value, sizeof value);
}

// MARK: - UDP

static int udp_open(int is_ipv6) {
    int descriptor = socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) return -errno;
    // An IPv6 socket may carry IPv4 too, so it gets the options of both.
    set_option(descriptor, SOL_IP, IP_PKTINFO, 1);
    set_option(descriptor, SOL_IP, IP_RECVTOS, 1);
    // Datagrams are never fragmented: path MTU discovery of QUIC needs that (RFC 9000 §14).
    set_option(descriptor, SOL_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    if (is_ipv6) {
        set_option(descriptor, SOL_IPV6, IPV6_RECVPKTINFO, 1);
        set_option(descriptor, SOL_IPV6, IPV6_RECVTCLASS, 1);
        set_option(descriptor, SOL_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    }
    set_option(descriptor, SOL_UDP, UDP_GRO, 1);
    return descriptor;
}

static int close_with(int descriptor, int error) {
    close(descriptor);
    return -error;
}

int tk_udp_bind(tk_address local, int reuse_port, int v6_only) {
    int is_ipv6 = local.family == 6;
    int descriptor = udp_open(is_ipv6);
    if (descriptor < 0) return descriptor;
    if (is_ipv6) set_option(descriptor, SOL_IPV6, IPV6_V6ONLY, v6_only);
    if (reuse_port) set_option(descriptor, SOL_SOCKET, SO_REUSEPORT, 1);
    struct sockaddr_storage storage;
    socklen_t length = to_sockaddr(local, is_ipv6, &storage);
    if (bind(descriptor, (struct sockaddr *)&storage, length) < 0) return close_with(descriptor, errno);
    return descriptor;
}

int tk_udp_connect(tk_address remote) {
    int is_ipv6 = remote.family == 6;
    int descriptor = udp_open(is_ipv6);
    if (descriptor < 0) return descriptor;
    // Without these only "port unreachable" would be seen.
    set_option(descriptor, SOL_IP, IP_RECVERR, 1);
    if (is_ipv6) set_option(descriptor, SOL_IPV6, IPV6_RECVERR, 1);
    struct sockaddr_storage storage;
    socklen_t length = to_sockaddr(remote, is_ipv6, &storage);
    if (connect(descriptor, (struct sockaddr *)&storage, length) < 0) return close_with(descriptor, errno);
    return descriptor;
}

static int grow_buffer(int descriptor, int force, int plain, int bytes) {
    if (setsockopt(descriptor, SOL_SOCKET, force, &bytes, sizeof bytes) < 0) {
        set_option(descriptor, SOL_SOCKET, plain, bytes);
    }
    int got = 0;
    socklen_t length = sizeof got;
    if (getsockopt(descriptor, SOL_SOCKET, plain, &got, &length) < 0) return -errno;
    // The kernel doubles the number for its own bookkeeping.
    return got / 2;
}

int tk_grow_receive_buffer(int descriptor, int bytes) {
    return grow_buffer(descriptor, SO_RCVBUFFORCE, SO_RCVBUF, bytes);
}

int tk_grow_send_buffer(int descriptor, int bytes) {
    return grow_buffer(descriptor, SO_SNDBUFFORCE, SO_SNDBUF, bytes);
}

static void *add_control(struct msghdr *header, int level, int type, size_t count) {
    struct cmsghdr *message = (struct cmsghdr *)((uint8_t *)header->msg_control + header->msg_controllen);
    message->cmsg_level = level;
    message->cmsg_type = type;
    message->cmsg_len = CMSG_LEN(count);
    header->msg_controllen += CMSG_SPACE(count);
    return CMSG_DATA(message);
}

int tk_udp_send(
    int descriptor, int is_ipv6, const void *bytes, size_t count, uint16_t segment, tk_address to, tk_address from,
    uint8_t ecn) {
    struct sockaddr_storage name;
    struct iovec vector = {(void *)bytes, count};
    _Alignas(struct cmsghdr) uint8_t room[256];
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = room};
    // A datagram to an IPv4-mapped address is sent by the IPv4 code, which wants the control messages of IPv4.
    int as_ipv4 = to.family ? to.family == 4 : !is_ipv6;
    memset(room, 0, sizeof room);
    if (to.family) {
        header.msg_name = &name;
        header.msg_namelen = to_sockaddr(to, is_ipv6, &name);
    }
    if (from.family == 4 && as_ipv4) {
        struct in_pktinfo info = {0};
        info.ipi_spec_dst.s_addr = htonl((uint32_t)from.low);
        memcpy(add_control(&header, SOL_IP, IP_PKTINFO, sizeof info), &info, sizeof info);
    } else if (from.family == 6 && !as_ipv4) {
        struct in6_pktinfo info = {0};
        info.ipi6_addr = to_in6(from);
        info.ipi6_ifindex = from.scope;
        memcpy(add_control(&header, SOL_IPV6, IPV6_PKTINFO, sizeof info), &info, sizeof info);
    }
    if (ecn) {
        int value = ecn;
        void *data = as_ipv4 ? add_control(&header, SOL_IP, IP_TOS, sizeof value)
                             : add_control(&header, SOL_IPV6, IPV6_TCLASS, sizeof value);
        memcpy(data, &value, sizeof value);
    }
    if (segment) memcpy(add_control(&header, SOL_UDP, UDP_SEGMENT, sizeof segment), &segment, sizeof segment);
    if (header.msg_controllen == 0) header.msg_control = NULL;
    ssize_t sent;
    do {
        sent = sendmsg(descriptor, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : (int)sent;
}

#define CONTROL_ROOM 192

struct tk_receiver {
    unsigned slots;
    size_t slot_bytes;
    struct mmsghdr *headers;
    struct iovec *vectors;
    struct sockaddr_storage *names;
    uint8_t *controls;
    uint8_t *bytes;
};

tk_receiver *tk_receiver_make(unsigned slots, size_t slot_bytes) {
    tk_receiver *receiver = calloc(1, sizeof *receiver);
    if (!receiver) abort();
    receiver->slots = slots;
    receiver->slot_bytes = slot_bytes;
    receiver->headers = calloc(slots, sizeof *receiver->headers);
    receiver->vectors = calloc(slots, sizeof *receiver->vectors);
    receiver->names = calloc(slots, sizeof *receiver->names);
    receiver->controls = calloc(slots, CONTROL_ROOM);
    // Not cleared: pages that no datagram reaches cost nothing.
    receiver->bytes = malloc(slots * slot_bytes);
    if (!receiver->headers || !receiver->vectors || !receiver->names || !receiver->controls || !receiver->bytes) abort();
    for (unsigned i = 0; i < slots; i++) {
        receiver->vectors[i] = (struct iovec){receiver->bytes + i * slot_bytes, slot_bytes};
        struct msghdr *header = &receiver->headers[i].msg_hdr;
        header->msg_name = &receiver->names[i];
        header->msg_iov = &receiver->vectors[i];
        header->msg_iovlen = 1;
        header->msg_control = receiver->controls + i * CONTROL_ROOM;
        header->msg_namelen = sizeof *receiver->names;
        header->msg_controllen = CONTROL_ROOM;
    }
    return receiver;
}

void tk_receiver_free(tk_receiver *receiver) {
    free(receiver->headers);
    free(receiver->vectors);
    free(receiver->names);
    free(receiver->controls);
    free(receiver->bytes);
    free(receiver);
}

int tk_receiver_receive(tk_receiver *receiver, int descriptor) {
    // The kernel writes back the lengths of the slots it filled; which ones the last call filled is not known any more.
    for (unsigned i = 0; i < receiver->slots; i++) {
        struct msghdr *header = &receiver->headers[i].msg_hdr;
        header->msg_namelen = sizeof *receiver->names;
        header->msg_controllen = CONTROL_ROOM;
    }
    int count;
    do {
        count = recvmmsg(descriptor, receiver->headers, receiver->slots, MSG_DONTWAIT, NULL);
    } while (count < 0 && errno == EINTR);
    return count < 0 ? -errno : count;
}

tk_datagram tk_receiver_datagram(const tk_receiver *receiver, int index) {
    struct msghdr *header = &receiver->headers[index].msg_hdr;
    tk_datagram datagram = {0};
    if (header->msg_namelen) datagram.from = from_sockaddr(&receiver->names[index]);
    datagram.bytes = receiver->vectors[index].iov_base;
    datagram.count = receiver->headers[index].msg_len;
    datagram.truncated = (header->msg_flags & MSG_TRUNC) != 0;
    for (struct cmsghdr *message = CMSG_FIRSTHDR(header); message; message = CMSG_NXTHDR(header, message)) {
        const uint8_t *data = CMSG_DATA(message);
        if (message->cmsg_level == SOL_IP && message->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            memcpy(&info, data, sizeof info);
            datagram.local.family = 4;
            datagram.local.high = 0;
            datagram.local.low = ntohl(info.ipi_addr.s_addr);
        } else if (message->cmsg_level == SOL_IPV6 && message->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, data, sizeof info);
            set_in6(&datagram.local, &info.ipi6_addr, info.ipi6_ifindex);
        } else if (message->cmsg_level == SOL_IP && message->cmsg_type == IP_TOS) {
            datagram.ecn = *data & 3;
        } else if (message->cmsg_level == SOL_IPV6 && message->cmsg_type == IPV6_TCLASS) {
            int value;
            memcpy(&value, data, sizeof value);
            datagram.ecn = value & 3;
        } else if (message->cmsg_level == SOL_UDP && message->cmsg_type == UDP_GRO) {
            int value;
            memcpy(&value, data, sizeof value);
            datagram.segment = value > 0 ? (uint32_t)value : 0;
        }
    }
    return datagram;
}

// MARK: - TCP

int tk_tcp_connect(tk_address remote) {
    int is_ipv6 = remote.family == 6;
    int descriptor = socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) return -errno;
    set_option(descriptor, SOL_TCP, TCP_NODELAY, 1);
    struct sockaddr_storage storage;
    socklen_t length = to_sockaddr(remote, is_ipv6, &storage);
    if (connect(descriptor, (struct sockaddr *)&storage, length) < 0 && errno != EINPROGRESS && errno != EINTR) {
        return close_with(descriptor, errno);
    }
    return descriptor;
}

int tk_tcp_listen(tk_address local, int reuse_port, int v6_only, int backlog) {
    int is_ipv6 = local.family == 6;
    int descriptor = socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) return -errno;
    set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
    if (reuse_port) set_option(descriptor, SOL_SOCKET, SO_REUSEPORT, 1);
    if (is_ipv6) set_option(descriptor, SOL_IPV6, IPV6_V6ONLY, v6_only);
    // Accepted sockets inherit it, which saves a call for each.
    set_option(descriptor, SOL_TCP, TCP_NODELAY, 1);
    struct sockaddr_storage storage;
    socklen_t length = to_sockaddr(local, is_ipv6, &storage);
    if (bind(descriptor, (struct sockaddr *)&storage, length) < 0) return close_with(descriptor, errno);
    if (listen(descriptor, backlog) < 0) return close_with(descriptor, errno);
    return descriptor;
}

tk_accepted tk_tcp_accept(int descriptor) {
    struct sockaddr_storage storage = {0};
    tk_accepted accepted = {0};
    do {
        socklen_t length = sizeof storage;
        accepted.descriptor =
            accept4(descriptor, (struct sockaddr *)&storage, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    } while (accepted.descriptor < 0 && errno == EINTR);
    if (accepted.descriptor < 0) {
        accepted.descriptor = -errno;
    } else {
        accepted.remote = from_sockaddr(&storage);
    }
    return accepted;
}

int64_t tk_receive(int descriptor, void *bytes, size_t count) {
    ssize_t received;
    do {
        received = recv(descriptor, bytes, count, MSG_DONTWAIT);
    } while (received < 0 && errno == EINTR);
    return received < 0 ? -errno : received;
}

int64_t tk_send(int descriptor, const void *bytes, size_t count) {
    ssize_t sent;
    do {
        sent = send(descriptor, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

int64_t tk_send_vector(int descriptor, const struct iovec *vector, size_t count) {
    struct msghdr header = {.msg_iov = (struct iovec *)vector, .msg_iovlen = count};
    ssize_t sent;
    do {
        sent = sendmsg(descriptor, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

int tk_shutdown_write(int descriptor) { return result(shutdown(descriptor, SHUT_WR)); }

tk_tcp_progress tk_tcp_progress_of(int descriptor) {
    tk_tcp_progress progress = {-1, -1};
    int waiting = 0;
    if (ioctl(descriptor, SIOCOUTQ, &waiting) == 0) progress.unacknowledged = waiting;
    struct tcp_info info;
    socklen_t length = sizeof info;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) == 0) {
        progress.since_acknowledgement = info.tcpi_last_ack_recv;
    }
    return progress;
}

int tk_reset_on_close(int descriptor) {
    struct linger linger = {1, 0};
    return result(setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
}

int tk_spare_descriptor(void) { return result(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// MARK: - Names and networks

int tk_resolve(const char *name, uint16_t port, tk_address *addresses, int capacity) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int code = getaddrinfo(name, NULL, &hints, &found);
    if (code != 0) return code < 0 ? code : -code;
    int count = 0;
    for (struct addrinfo *each = found; each && count < capacity; each = each->ai_next) {
        struct sockaddr_storage storage = {0};
        if (each->ai_addrlen > sizeof storage) continue;
        memcpy(&storage, each->ai_addr, each->ai_addrlen);
        tk_address address = from_sockaddr(&storage);
        if (address.family == 0) continue;
        address.port = port;
        addresses[count++] = address;
    }
    freeaddrinfo(found);
    return count;
}

const char *tk_resolve_error(int code) { return gai_strerror(code); }

unsigned tk_interface_index(const char *name) { return if_nametoindex(name); }

int tk_route_open(void) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (descriptor < 0) return -errno;
    struct sockaddr_nl local = {.nl_family = AF_NETLINK};
    local.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
    local.nl_groups |= RTMGRP_NEIGH;
    if (bind(descriptor, (struct sockaddr *)&local, sizeof local) < 0) return close_with(descriptor, errno);
    return descriptor;
}

int tk_route_dump(int descriptor, int what, uint32_t sequence) {
    struct {
        struct nlmsghdr header;
        struct rtmsg body;
    } request = {0};
    request.header.nlmsg_len = sizeof request;
    request.header.nlmsg_type = what == 0 ? RTM_GETADDR : what == 1 ? RTM_GETROUTE : RTM_GETNEIGH;
    request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    request.header.nlmsg_seq = sequence;
    return send(descriptor, &request, sizeof request, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void tk_keep_freed_memory(void) {
    // As much as the buffers of a few flows; blocks below the second number come from the heap that is kept.
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
}
