#define _GNU_SOURCE
#include "CRig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t time_of(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t rig_now(void) { return time_of(CLOCK_MONOTONIC); }

int rig_enter(const char *path) {
    int namespace = open(path, O_RDONLY | O_CLOEXEC);
    if (namespace < 0) return -errno;
    int result = setns(namespace, CLONE_NEWNET) == 0 ? 0 : -errno;
    close(namespace);
    return result;
}

// MARK: - Opening

typedef struct opening {
    const char *path;
    int kind;
    const char *address;
    uint16_t port;
    int connects;
    int result;
} opening;

static int find_address(int kind, const char *address, uint16_t port, struct addrinfo **found) {
    struct addrinfo hints = {
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = kind == RIG_TCP ? SOCK_STREAM : SOCK_DGRAM};
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    return getaddrinfo(address, service, &hints, found) == 0 ? 0 : -EINVAL;
}

static int open_here(const opening *opening) {
    struct addrinfo *found;
    int result = find_address(opening->kind, opening->address, opening->port, &found);
    if (result < 0) return result;
    int descriptor =
        socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, found->ai_protocol), on = 1;
    if (descriptor < 0) {
        result = -errno;
    } else if (opening->connects) {
        if (opening->kind == RIG_TCP) setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (connect(descriptor, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) result = -errno;
    } else {
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
        if (bind(descriptor, found->ai_addr, found->ai_addrlen) != 0) result = -errno;
        if (result == 0 && opening->kind == RIG_TCP && listen(descriptor, 128) != 0) result = -errno;
    }
    freeaddrinfo(found);
    if (result == 0) return descriptor;
    if (descriptor >= 0) close(descriptor);
    return result;
}

static void *open_inside(void *argument) {
    opening *opening = argument;
    opening->result = rig_enter(opening->path);
    if (opening->result == 0) opening->result = open_here(opening);
    return NULL;
}

/// A thread of its own enters the namespace, so that no other code ever runs there by accident.
static int perform(opening *opening) {
    if (!opening->path) return open_here(opening);
    pthread_t thread;
    int result = pthread_create(&thread, NULL, open_inside, opening);
    if (result != 0) return -result;
    pthread_join(thread, NULL);
    return opening->result;
}

static int wait_for(int descriptor, short events, int milliseconds) {
    struct pollfd polled = {.fd = descriptor, .events = events};
    int result;
    do result = poll(&polled, 1, milliseconds);
    while (result < 0 && errno == EINTR);
    if (result < 0) return -errno;
    return result == 0 ? -ETIMEDOUT : 0;
}

int rig_open_bound(const char *path, int kind, const char *address, uint16_t port) {
    opening opening = {.path = path, .kind = kind, .address = address, .port = port};
    return perform(&opening);
}

int rig_open_connected(const char *path, int kind, const char *address, uint16_t port, int milliseconds) {
    opening opening = {.path = path, .kind = kind, .address = address, .port = port, .connects = 1};
    int descriptor = perform(&opening);
    if (descriptor < 0 || kind == RIG_UDP) return descriptor;
    int result = wait_for(descriptor, POLLOUT, milliseconds), failure = 0;
    socklen_t size = sizeof failure;
    if (result == 0) getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) result = -failure;
    if (result == 0) return descriptor;
    close(descriptor);
    return result;
}

int rig_accept(int descriptor, int milliseconds) {
    for (;;) {
        int accepted = accept4(descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (accepted >= 0) return accepted;
        if (errno != EAGAIN && errno != EINTR) return -errno;
        int result = wait_for(descriptor, POLLIN, milliseconds);
        if (result < 0) return result;
    }
}

// MARK: - Using

static void write_peer(const struct sockaddr_storage *from, char *peer, uint16_t *port) {
    if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *address = (const struct sockaddr_in6 *)from;
        inet_ntop(AF_INET6, &address->sin6_addr, peer, 64);
        *port = ntohs(address->sin6_port);
    } else if (from->ss_family == AF_INET) {
        const struct sockaddr_in *address = (const struct sockaddr_in *)from;
        inet_ntop(AF_INET, &address->sin_addr, peer, 64);
        *port = ntohs(address->sin_port);
    }
}

/// The kernel stamps what it receives by the wall clock.
static uint64_t arrival_of(struct msghdr *message) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
        struct timespec stamp;
        memcpy(&stamp, CMSG_DATA(part), sizeof stamp);
        uint64_t age = time_of(CLOCK_REALTIME) - ((uint64_t)stamp.tv_sec * 1000000000u + (uint64_t)stamp.tv_nsec);
        return rig_now() - age;
    }
    return 0;
}

int64_t rig_receive(int descriptor, void *bytes, size_t count, int milliseconds, rig_origin *origin) {
    for (;;) {
        struct sockaddr_storage from = {0};
        struct iovec vector = {.iov_base = bytes, .iov_len = count};
        char control[256];
        struct msghdr message = {
            .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control,
            .msg_controllen = sizeof control};
        ssize_t result = recvmsg(descriptor, &message, 0);
        if (result >= 0) {
            if (origin) {
                write_peer(&from, origin->address, &origin->port);
                origin->arrived = arrival_of(&message);
            }
            return result;
        }
        if (errno != EAGAIN && errno != EINTR) return -errno;
        int waited = wait_for(descriptor, POLLIN, milliseconds);
        if (waited < 0) return waited;
    }
}

int64_t rig_send(
    int descriptor, const void *bytes, size_t count, int milliseconds, const char *address, uint16_t port) {
    struct addrinfo *to = NULL;
    if (address) {
        int result = find_address(RIG_UDP, address, port, &to);
        if (result < 0) return result;
    }
    size_t sent = 0;
    int64_t failure = 0;
    do {
        ssize_t result = sendto(
            descriptor, (const uint8_t *)bytes + sent, count - sent, MSG_NOSIGNAL, to ? to->ai_addr : NULL,
            to ? to->ai_addrlen : 0);
        if (result >= 0) {
            sent += (size_t)result;
        } else if (errno == EAGAIN || errno == EINTR) {
            failure = wait_for(descriptor, POLLOUT, milliseconds);
        } else {
            failure = -errno;
        }
    } while (sent < count && failure == 0);
    if (to) freeaddrinfo(to);
    return failure < 0 ? failure : (int64_t)sent;
}

int rig_finish(int descriptor) { return shutdown(descriptor, SHUT_WR) == 0 ? 0 : -errno; }

int rig_close(int descriptor, int resets) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (resets) setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return close(descriptor) == 0 ? 0 : -errno;
}

uint16_t rig_local_port(int descriptor) {
    struct sockaddr_storage local = {0};
    socklen_t size = sizeof local;
    char text[64];
    uint16_t port = 0;
    if (getsockname(descriptor, (struct sockaddr *)&local, &size) == 0) write_peer(&local, text, &port);
    return port;
}

int rig_grow_buffers(int descriptor, int bytes) {
    if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0) return -errno;
    if (setsockopt(descriptor, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0) return -errno;
    return 0;
}

// MARK: - Programs

int rig_spawn(
    const char *path, char *const arguments[], char *const environment[], int input, int output, int errors) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, input, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, errors, 2);
    // The test process ignores SIGPIPE, and a program would inherit that.
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    pid_t process = 0;
    int result = posix_spawnp(&process, path, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return result == 0 ? process : -result;
}

int rig_wait(int process) {
    int status = 0;
    while (waitpid(process, &status, 0) < 0) {
        if (errno != EINTR) return -errno;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int rig_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC) == 0 ? 0 : -errno; }

static void *try_namespace(void *result) {
    *(int *)result = unshare(CLONE_NEWNET) == 0;
    return NULL;
}

int rig_is_privileged(void) {
    int device = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    if (device < 0) return 0;
    close(device);
    pthread_t thread;
    int result = 0;
    if (pthread_create(&thread, NULL, try_namespace, &result) != 0) return 0;
    pthread_join(thread, NULL);
    return result;
}
