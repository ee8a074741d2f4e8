// Rules that drop packets by what they are, and by their number within their flow.
#pragma once

#include "packet.h"

enum { MOST_RULES = 64, MOST_NUMBERS = 32 };

typedef struct flow_count {
    uint64_t flow;
    uint64_t packets;
} flow_count;

/// Drops what matches all of protocol, port and size. With `has_after` it lets the first `after` packets of each flow
/// pass, with `number_count` it drops only those of a flow that have one of these numbers (the first is 1).
typedef struct rule {
    unsigned id;
    bool from_a, from_b;  // the directions it looks at; it counts a flow over both
    uint8_t protocol;
    uint16_t port;        // of either end; 0: any
    uint64_t larger;      // than this many bytes, headers included; 0: any
    bool has_after;
    uint64_t after;
    uint64_t numbers[MOST_NUMBERS];
    size_t number_count;
    uint64_t dropped;
    flow_count *flows;
    size_t flow_total, flow_capacity;
} rule;

typedef struct rule_list {
    rule rules[MOST_RULES];
    size_t count;
    unsigned last_id;
} rule_list;

/// Adds a rule and gives it an id; 0 if there is no room.
unsigned rules_add(rule_list *list, rule new_rule);
/// Removes one; false if there is none with that id.
bool rules_remove(rule_list *list, unsigned id);
void rules_clear(rule_list *list);
/// Counts the packet with every rule that matches it, and says whether one of them drops it.
bool rules_drop(rule_list *list, bool from_a, const packet_summary *summary, size_t count);
