#include "packet.h"

#include <string.h>

enum { PROTOCOL_UNKNOWN = 255 };

static uint16_t read_16(const uint8_t *bytes) { return (uint16_t)(bytes[0] << 8 | bytes[1]); }

/// FNV-1a; flows of one test are few, so 64 bits do not collide.
static uint64_t hash(uint64_t state, const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        state ^= bytes[i];
        state *= 0x100000001b3u;
    }
    return state;
}

/// Hashes an end by itself, so that the sum of both ends does not depend on the direction.
static uint64_t hash_end(const uint8_t *address, size_t count, uint16_t port) {
    uint8_t number[2] = {(uint8_t)(port >> 8), (uint8_t)port};
    return hash(hash(0xcbf29ce484222325u, address, count), number, sizeof number);
}

/// Finds the upper protocol of an IPv6 packet behind its extension headers. Returns its offset, or 0 for none.
static size_t skip_extensions(const uint8_t *bytes, size_t count, uint8_t *protocol, bool *later_fragment) {
    size_t at = 40;
    uint8_t next = bytes[6];
    for (;;) {
        if (next != 0 && next != 43 && next != 44 && next != 60) {
            *protocol = next;
            return at;
        }
        if (at + 8 > count) return 0;
        size_t length = 8;
        if (next == 44) {
            *later_fragment = (read_16(bytes + at + 2) & 0xfff8) != 0;
        } else {
            length = 8 + 8 * (size_t)bytes[at + 1];
        }
        next = bytes[at];
        at += length;
        if (at > count) return 0;
    }
}

packet_summary packet_summarize(const uint8_t *bytes, size_t count) {
    packet_summary summary = {.protocol = PROTOCOL_UNKNOWN};
    bool later_fragment = false;
    size_t upper = 0, address_bytes = 0;
    const uint8_t *addresses = bytes;
    if (count >= 20 && bytes[0] >> 4 == 4) {
        summary.protocol = bytes[9];
        later_fragment = (read_16(bytes + 6) & 0x1fff) != 0;
        upper = 4 * (size_t)(bytes[0] & 15);
        address_bytes = 4;
        addresses += 12;
    } else if (count >= 40 && bytes[0] >> 4 == 6) {
        upper = skip_extensions(bytes, count, &summary.protocol, &later_fragment);
        address_bytes = 16;
        addresses += 8;
        if (summary.protocol == 58) summary.protocol = PROTOCOL_ICMP;
    }
    if (address_bytes == 0 || upper == 0) return summary;
    bool has_ports = summary.protocol == PROTOCOL_TCP || summary.protocol == PROTOCOL_UDP;
    if (has_ports && !later_fragment && upper + 4 <= count) {
        summary.source_port = read_16(bytes + upper);
        summary.destination_port = read_16(bytes + upper + 2);
    }
    summary.flow = hash_end(addresses, address_bytes, summary.source_port) +
        hash_end(addresses + address_bytes, address_bytes, summary.destination_port) + summary.protocol;
    return summary;
}
