// One direction of the link as a value: packets and the time go in, packets come out when they are due. It does no I/O.
#pragma once

#include "packet.h"

/// Times are nanoseconds, sizes bytes, chances between 0 and 1. Zero is a link that delivers at once.
typedef struct direction_settings {
    uint64_t delay;
    uint64_t jitter;      // up to this much more, evenly spread; packets keep their order
    double loss;
    double burst_enter;   // chance per packet that a bad spell begins
    double burst_leave;   // chance per packet that it ends
    double burst_loss;    // loss while it lasts
    double reorder;       // chance that a packet is held back so that later ones overtake it
    uint64_t hold;        // for how long
    double duplicate;
    double bits_per_second;  // 0: without limit
    uint64_t queue;          // what may wait for a limited rate; 0: without limit
    uint64_t mtu;            // longer packets vanish; 0: none do
    bool blackhole;
} direction_settings;

typedef struct direction_counters {
    uint64_t packets, bytes;                  // that came in
    uint64_t udp, tcp, other;                 // of these
    uint64_t delivered, delivered_bytes;
    uint64_t lost, overflowed, blackholed, ruled_out, too_long, undeliverable;
    uint64_t duplicated, reordered;
    uint64_t late_total, late_worst;          // how much after its time a packet was delivered
} direction_counters;

typedef struct queued_packet {
    uint64_t due;
    uint64_t order;
    size_t count;
    uint8_t bytes[];
} queued_packet;

typedef struct direction {
    direction_settings settings;
    direction_counters counters;
    queued_packet **heap;
    size_t queued, capacity;
    uint64_t queued_bytes;
    uint64_t next_order;
    uint64_t busy_until;  // when the limited rate has sent all that waits
    uint64_t last_due;
    bool in_burst;
} direction;

/// Seeds the one source of chance that all links share.
void direction_seed(uint64_t seed);

/// A link that delivers at once.
direction_settings direction_defaults(void);
void direction_init(direction *way);
void direction_free(direction *way);
/// Takes a packet in at `now` and decides what becomes of it. `ruled_out` says that a rule drops it.
void direction_enter(
    direction *way, const uint8_t *bytes, size_t count, const packet_summary *summary, bool ruled_out, uint64_t now);
/// When the next packet is due; UINT64_MAX for none.
uint64_t direction_next_due(const direction *way);
/// The next packet that is due at `now`, or NULL. The caller frees it.
queued_packet *direction_leave(direction *way, uint64_t now);
