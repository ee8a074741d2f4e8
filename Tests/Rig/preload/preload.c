// Loaded into a program with LD_PRELOAD: moves its clocks, and lets its segmented sends fail. The tests compile it.
//
// RIG_CLOCK names a file of two numbers, 64 bits each: nanoseconds that the wall clock is ahead, and that CLOCK_BOOTTIME
// is ahead. They may change at any time. When CLOCK_BOOTTIME jumps ahead while CLOCK_MONOTONIC does not, the program sees
// what it would see after the machine had slept, its timers that became due included.
//
// RIG_SEGMENT_FAILURE=ERRNO,N lets every UDP_SEGMENT send after the first N fail with that error number.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MOST_TIMERS = 1024, UDP_SEGMENT_OPTION = 103 };

typedef struct offsets {
    _Atomic int64_t wall;
    _Atomic int64_t boot;
} offsets;

/// A timer on a clock that can jump, as the program set it.
typedef struct timer {
    clockid_t clock;  // 0 (the wall clock) with `is_known` false for a descriptor that is none
    int is_known;
    int is_absolute;
    struct itimerspec setting;
} timer;

static offsets unmoved;
static offsets *moved = &unmoved;
static timer timers[MOST_TIMERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t watching = PTHREAD_ONCE_INIT;

static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_create)(int, int);
static int (*real_settime)(int, int, const struct itimerspec *, struct itimerspec *);
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static int segment_errno;
static atomic_long segments_left;

__attribute__((constructor)) static void begin(void) {
    real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    real_create = dlsym(RTLD_NEXT, "timerfd_create");
    real_settime = dlsym(RTLD_NEXT, "timerfd_settime");
    real_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
    const char *path = getenv("RIG_CLOCK");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *mapped = mmap(NULL, sizeof *moved, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) moved = mapped;
        close(file);
    }
    const char *failure = getenv("RIG_SEGMENT_FAILURE");
    long after = 0;
    if (failure && sscanf(failure, "%d,%ld", &segment_errno, &after) == 2) segments_left = after;
}

// MARK: - Clocks

static int64_t offset_of(clockid_t clock) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE: return moved->wall;
    case CLOCK_BOOTTIME: return moved->boot;
    default: return 0;
    }
}

static void move(struct timespec *time, int64_t nanoseconds) {
    int64_t sum = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec + nanoseconds;
    if (sum < 1) sum = 1;  // 0 would disarm a timer
    time->tv_sec = sum / 1000000000;
    time->tv_nsec = sum % 1000000000;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    // The first calls may come before the constructor.
    if (!real_gettime) real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real_gettime(clock, time);
    if (result == 0 && offset_of(clock) != 0) move(time, offset_of(clock));
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

// MARK: - Timers

/// Arms a timer by the machine's clock for what the program set by its own.
static int arm(int descriptor, int flags, const timer *timer, struct itimerspec *old) {
    struct itimerspec setting = timer->setting;
    if (timer->is_absolute && (setting.it_value.tv_sec != 0 || setting.it_value.tv_nsec != 0)) {
        move(&setting.it_value, -offset_of(timer->clock));
    }
    return real_settime(descriptor, flags, &setting, old);
}

/// Arms what waits again after a jump, so that what became due fires.
static void arm_again(void) {
    pthread_mutex_lock(&lock);
    for (int descriptor = 0; descriptor < MOST_TIMERS; descriptor++) {
        timer *timer = &timers[descriptor];
        struct itimerspec left;
        if (!timer->is_known || !timer->is_absolute) continue;
        if (timerfd_gettime(descriptor, &left) != 0) {
            timer->is_known = 0;  // closed
        } else if (left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0) {
            arm(descriptor, TFD_TIMER_ABSTIME, timer, NULL);
        }
    }
    pthread_mutex_unlock(&lock);
}

static void *watch(void *unused) {
    (void)unused;
    int64_t wall = moved->wall, boot = moved->boot;
    for (;;) {
        usleep(2000);
        if (moved->wall == wall && moved->boot == boot) continue;
        wall = moved->wall;
        boot = moved->boot;
        arm_again();
    }
}

static void start_watching(void) {
    pthread_t thread;
    if (moved != &unmoved && pthread_create(&thread, NULL, watch, NULL) == 0) pthread_detach(thread);
}

int timerfd_create(int clock, int flags) {
    pthread_once(&watching, start_watching);
    int descriptor = real_create(clock, flags);
    if (descriptor >= 0 && descriptor < MOST_TIMERS) {
        pthread_mutex_lock(&lock);
        timers[descriptor] = (timer){.clock = clock, .is_known = 1};
        pthread_mutex_unlock(&lock);
    }
    return descriptor;
}

int timerfd_settime(int descriptor, int flags, const struct itimerspec *new, struct itimerspec *old) {
    if (descriptor < 0 || descriptor >= MOST_TIMERS) return real_settime(descriptor, flags, new, old);
    pthread_mutex_lock(&lock);
    timer *timer = &timers[descriptor];
    timer->setting = *new;
    timer->is_absolute = timer->is_known && flags & TFD_TIMER_ABSTIME;
    int result = arm(descriptor, flags, timer, old);
    pthread_mutex_unlock(&lock);
    return result;
}

// MARK: - Sends

ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
    if (segment_errno != 0) {
        for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR((struct msghdr *)message, part)) {
            if (part->cmsg_level != IPPROTO_UDP || part->cmsg_type != UDP_SEGMENT_OPTION) continue;
            long left = atomic_fetch_sub(&segments_left, 1);
            if (left > 0) continue;
            // Whoever reads the log of the test sees that the failure was there.
            if (left == 0) dprintf(STDERR_FILENO, "rig: segmented sends fail from here on\n");
            errno = segment_errno;
            return -1;
        }
    }
    return real_sendmsg(descriptor, message, flags);
}
