// What the shaper reads off an IP packet.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The protocol numbers that commands name.
enum { PROTOCOL_ANY = 0, PROTOCOL_ICMP = 1, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };

/// `source_port` and `destination_port` are 0 where the packet shows none, as in a later fragment.
typedef struct packet_summary {
    uint8_t protocol;  // ICMP for ICMPv6 too
    uint16_t source_port;
    uint16_t destination_port;
    uint64_t flow;  // the same for both directions of a flow
} packet_summary;

/// Reads the headers of an IPv4 or IPv6 packet; what is cut short or is neither has the protocol 255.
packet_summary packet_summarize(const uint8_t *bytes, size_t count);
