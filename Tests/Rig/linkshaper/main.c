// linkshaper: joins two network namespaces by a link whose every direction has its own delay, jitter, loss, order,
// rate, queue and packet size, and can be told to change them while it runs. See docs/rig.md.
//
//     linkshaper a=NAMESPACE:INTERFACE b=NAMESPACE:INTERFACE [seed=NUMBER]
//
// It makes both interfaces (TUN devices that end with it), prints one line that begins with `ready`, and then answers
// each line of standard input with one line. It ends when standard input does.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"

enum { MOST_LINE_BYTES = 4096, PACKETS_PER_TURN = 64 };

typedef struct side {
    char name;  // a or b
    const char *namespace;
    const char *interface;
    int device;
} side;

typedef struct input {
    char bytes[MOST_LINE_BYTES];
    size_t count;
    bool skipping;  // the rest of a line that was too long
} input;

__attribute__((noreturn, format(printf, 2, 3))) static void give_up(int code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("linkshaper: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    exit(code);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// MARK: - Start

static void open_device(side *side) {
    char path[128];
    snprintf(path, sizeof path, "/run/netns/%s", side->namespace);
    int namespace = open(path, O_RDONLY | O_CLOEXEC);
    if (namespace < 0) give_up(1, "cannot open the namespace %s: %s", path, strerror(errno));
    if (setns(namespace, CLONE_NEWNET) != 0) give_up(1, "cannot enter the namespace %s: %s", path, strerror(errno));
    close(namespace);
    // The device belongs to the namespace that the thread is in when it opens it.
    side->device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (side->device < 0) give_up(1, "cannot open /dev/net/tun: %s", strerror(errno));
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    strncpy(request.ifr_name, side->interface, IFNAMSIZ - 1);
    if (ioctl(side->device, TUNSETIFF, &request) != 0) {
        give_up(1, "cannot make the interface %s in %s: %s", side->interface, side->namespace, strerror(errno));
    }
}

static bool read_side(char *word, side *side) {
    if (word[0] != side->name || word[1] != '=') return false;
    char *interface = strchr(word, ':');
    if (!interface || interface == word + 2 || strlen(interface) < 2 || strlen(interface) > IFNAMSIZ) {
        give_up(2, "a side is given as NAMESPACE:INTERFACE, not \"%s\"", word + 2);
    }
    *interface++ = 0;
    side->namespace = word + 2;
    side->interface = interface;
    return true;
}

static void read_words(int count, char **words, side sides[2], uint64_t *seed) {
    if (getrandom(seed, sizeof *seed, 0) != sizeof *seed) *seed = now();
    *seed >>= 32;  // short enough to be typed again
    for (int i = 1; i < count; i++) {
        if (read_side(words[i], &sides[0]) || read_side(words[i], &sides[1])) continue;
        char *rest = NULL;
        if (strncmp(words[i], "seed=", 5) == 0) *seed = strtoull(words[i] + 5, &rest, 10);
        if (!rest || rest == words[i] + 5 || *rest != 0) give_up(2, "what is \"%s\"? a=, b= and seed= are known", words[i]);
    }
    if (!sides[0].namespace || !sides[1].namespace) {
        give_up(2, "usage: linkshaper a=NAMESPACE:INTERFACE b=NAMESPACE:INTERFACE [seed=NUMBER]");
    }
}

/// Asks for what keeps times exact beside a busy machine; without it the link is a little less exact.
static void become_punctual(void) {
    prctl(PR_SET_TIMERSLACK, 1);
    struct sched_param parameters = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_RR, &parameters) != 0 && nice(-20) == -1 && errno != 0) return;
}

// MARK: - Turns

static void receive(shaper *shaper, int way, const side *from) {
    static uint8_t bytes[65536];
    for (int i = 0; i < PACKETS_PER_TURN; i++) {
        ssize_t count = read(from->device, bytes, sizeof bytes);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (count <= 0) give_up(1, "the interface %s is gone: %s", from->interface, strerror(errno));
        packet_summary summary = packet_summarize(bytes, (size_t)count);
        bool is_ruled_out = rules_drop(&shaper->rules, way == 0, &summary, (size_t)count);
        direction_enter(&shaper->ways[way], bytes, (size_t)count, &summary, is_ruled_out, now());
    }
}

static void deliver(direction *way, const side *to) {
    uint64_t time = now();
    for (queued_packet *packet; (packet = direction_leave(way, time));) {
        // An interface that is down takes nothing, as a cable that was pulled.
        if (write(to->device, packet->bytes, packet->count) == (ssize_t)packet->count) {
            way->counters.delivered++;
            way->counters.delivered_bytes += packet->count;
        } else {
            way->counters.undeliverable++;
        }
        free(packet);
    }
}

/// Reads what has come on standard input and performs the lines that are complete.
static void take_commands(shaper *shaper, input *input) {
    ssize_t count = read(STDIN_FILENO, input->bytes + input->count, sizeof input->bytes - input->count);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
        shaper->ended = true;
        return;
    }
    input->count += (size_t)count;
    char *end;
    while (!shaper->ended && (end = memchr(input->bytes, '\n', input->count))) {
        *end = 0;
        if (!input->skipping) command_perform(shaper, input->bytes, now(), stdout);
        input->skipping = false;
        input->count -= (size_t)(end + 1 - input->bytes);
        memmove(input->bytes, end + 1, input->count);
    }
    if (input->count == sizeof input->bytes) {
        if (!input->skipping) puts("error: this line is too long");
        input->skipping = true;
        input->count = 0;
    }
    fflush(stdout);
}

static void wait_for_work(struct pollfd polled[3], const shaper *shaper) {
    uint64_t due = direction_next_due(&shaper->ways[0]), other = direction_next_due(&shaper->ways[1]);
    if (other < due) due = other;
    struct timespec timeout = {0}, *wait = NULL;
    if (due != UINT64_MAX) {
        uint64_t time = now(), left = due > time ? due - time : 0;
        timeout.tv_sec = (time_t)(left / 1000000000u);
        timeout.tv_nsec = (long)(left % 1000000000u);
        wait = &timeout;
    }
    if (ppoll(polled, 3, wait, NULL) < 0 && errno != EINTR) give_up(1, "poll failed: %s", strerror(errno));
}

int main(int count, char **words) {
    side sides[2] = {{.name = 'a'}, {.name = 'b'}};
    shaper *shaper = calloc(1, sizeof *shaper);
    if (!shaper) give_up(1, "no memory");
    read_words(count, words, sides, &shaper->seed);
    direction_seed(shaper->seed);
    shaper->started = now();
    for (int i = 0; i < 2; i++) {
        direction_init(&shaper->ways[i]);
        open_device(&sides[i]);
    }
    become_punctual();
    printf("ready seed=%" PRIu64 "\n", shaper->seed);
    fflush(stdout);

    static input input;
    struct pollfd polled[3] = {
        {.fd = sides[0].device, .events = POLLIN},
        {.fd = sides[1].device, .events = POLLIN},
        {.fd = STDIN_FILENO, .events = POLLIN},
    };
    while (!shaper->ended) {
        wait_for_work(polled, shaper);
        for (int i = 0; i < 2; i++) {
            if (polled[i].revents) receive(shaper, i, &sides[i]);
        }
        for (int i = 0; i < 2; i++) deliver(&shaper->ways[i], &sides[1 - i]);
        if (polled[2].revents) take_commands(shaper, &input);
        for (int i = 0; i < 3; i++) polled[i].revents = 0;
    }
    for (int i = 0; i < 2; i++) direction_free(&shaper->ways[i]);
    rules_clear(&shaper->rules);
    free(shaper);
    return 0;
}
