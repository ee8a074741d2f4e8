#include "direction.h"

#include <stdlib.h>
#include <string.h>

/// What may wait for its delay, so that a flood cannot take the machine's memory.
static const uint64_t most_queued_bytes = 256u << 20;

// MARK: - Chance

static uint64_t chance_state[4];

static uint64_t rotate(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

/// xoshiro256**, by Blackman and Vigna.
static uint64_t next_random(void) {
    uint64_t *s = chance_state;
    uint64_t result = rotate(s[1] * 5, 7) * 9, shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

void direction_seed(uint64_t seed) {
    // splitmix64 fills the state, as xoshiro's authors advise.
    for (int i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15u;
        uint64_t mixed = seed;
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
        chance_state[i] = mixed ^ mixed >> 31;
    }
}

static double unit_random(void) { return (double)(next_random() >> 11) * 0x1p-53; }

static bool happens(double chance) { return chance > 0 && unit_random() < chance; }

// MARK: - The queue: a binary heap by due time, then by arrival

static bool is_before(const queued_packet *a, const queued_packet *b) {
    return a->due < b->due || (a->due == b->due && a->order < b->order);
}

static void insert(direction *way, queued_packet *packet) {
    if (way->queued == way->capacity) {
        way->capacity = way->capacity ? 2 * way->capacity : 1024;
        way->heap = realloc(way->heap, way->capacity * sizeof *way->heap);
        if (!way->heap) abort();
    }
    size_t at = way->queued++;
    while (at > 0 && is_before(packet, way->heap[(at - 1) / 2])) {
        way->heap[at] = way->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    way->heap[at] = packet;
    way->queued_bytes += packet->count;
}

static queued_packet *remove_first(direction *way) {
    queued_packet *first = way->heap[0], *last = way->heap[--way->queued];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= way->queued) break;
        if (child + 1 < way->queued && is_before(way->heap[child + 1], way->heap[child])) child++;
        if (!is_before(way->heap[child], last)) break;
        way->heap[at] = way->heap[child];
        at = child;
    }
    way->heap[at] = last;
    way->queued_bytes -= first->count;
    return first;
}

// MARK: - A packet's way

direction_settings direction_defaults(void) {
    return (direction_settings){.hold = 10 * 1000 * 1000, .queue = 256 << 10};
}

void direction_init(direction *way) {
    memset(way, 0, sizeof *way);
    way->settings = direction_defaults();
}

void direction_free(direction *way) {
    while (way->queued > 0) free(remove_first(way));
    free(way->heap);
}

static bool is_lost(direction *way) {
    const direction_settings *settings = &way->settings;
    if (settings->burst_enter > 0) {
        way->in_burst = way->in_burst ? !happens(settings->burst_leave) : happens(settings->burst_enter);
        if (way->in_burst && happens(settings->burst_loss)) return true;
    } else {
        way->in_burst = false;
    }
    return happens(settings->loss);
}

static void enqueue(direction *way, const uint8_t *bytes, size_t count, uint64_t due) {
    queued_packet *packet = malloc(sizeof *packet + count);
    if (!packet) abort();
    packet->due = due;
    packet->order = way->next_order++;
    packet->count = count;
    memcpy(packet->bytes, bytes, count);
    insert(way, packet);
}

void direction_enter(
    direction *way, const uint8_t *bytes, size_t count, const packet_summary *summary, bool ruled_out, uint64_t now) {
    const direction_settings *settings = &way->settings;
    direction_counters *counters = &way->counters;
    counters->packets++;
    counters->bytes += count;
    if (summary->protocol == PROTOCOL_UDP) counters->udp++;
    else if (summary->protocol == PROTOCOL_TCP) counters->tcp++;
    else counters->other++;

    if (settings->blackhole) {
        counters->blackholed++;
        return;
    }
    if (ruled_out) {
        counters->ruled_out++;
        return;
    }
    if (settings->mtu > 0 && count > settings->mtu) {
        counters->too_long++;
        return;
    }
    if (is_lost(way)) {
        counters->lost++;
        return;
    }

    uint64_t sent = now;
    if (settings->bits_per_second > 0) {
        uint64_t start = way->busy_until > now ? way->busy_until : now;
        double waiting_bytes = (double)(start - now) * settings->bits_per_second / 8e9;
        if (settings->queue > 0 && waiting_bytes + (double)count > (double)settings->queue) {
            counters->overflowed++;
            return;
        }
        sent = way->busy_until = start + (uint64_t)((double)count * 8e9 / settings->bits_per_second);
    } else {
        way->busy_until = 0;
    }
    if (way->queued_bytes + count > most_queued_bytes) {
        counters->overflowed++;
        return;
    }

    uint64_t due = sent + settings->delay + (uint64_t)(unit_random() * (double)settings->jitter);
    if (happens(settings->reorder)) {
        counters->reordered++;
        due += settings->hold;
    } else {
        // Jitter, or a delay that was just made shorter, keeps the order of what is under way.
        if (way->queued > 0 && due < way->last_due) due = way->last_due;
        way->last_due = due;
    }
    enqueue(way, bytes, count, due);
    if (happens(settings->duplicate)) {
        counters->duplicated++;
        enqueue(way, bytes, count, due);
    }
}

uint64_t direction_next_due(const direction *way) { return way->queued > 0 ? way->heap[0]->due : UINT64_MAX; }

queued_packet *direction_leave(direction *way, uint64_t now) {
    if (direction_next_due(way) > now) return NULL;
    queued_packet *packet = remove_first(way);
    uint64_t late = now - packet->due;
    way->counters.late_total += late;
    if (late > way->counters.late_worst) way->counters.late_worst = late;
    return packet;
}
