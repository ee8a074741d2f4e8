#include "rules.h"

#include <stdlib.h>

unsigned rules_add(rule_list *list, rule new_rule) {
    if (list->count == MOST_RULES) return 0;
    new_rule.id = ++list->last_id;
    list->rules[list->count++] = new_rule;
    return new_rule.id;
}

bool rules_remove(rule_list *list, unsigned id) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->rules[i].id != id) continue;
        free(list->rules[i].flows);
        list->rules[i] = list->rules[--list->count];
        return true;
    }
    return false;
}

void rules_clear(rule_list *list) {
    while (list->count > 0) free(list->rules[--list->count].flows);
}

/// Counts a packet of the flow; the first one gives 1.
static uint64_t count_in_flow(rule *rule, uint64_t flow) {
    // A test has few flows, and the busiest is found first.
    for (size_t i = 0; i < rule->flow_total; i++) {
        if (rule->flows[i].flow != flow) continue;
        uint64_t packets = ++rule->flows[i].packets;
        if (i > 0 && packets > rule->flows[i - 1].packets) {
            flow_count before = rule->flows[i - 1];
            rule->flows[i - 1] = rule->flows[i];
            rule->flows[i] = before;
        }
        return packets;
    }
    if (rule->flow_total == rule->flow_capacity) {
        rule->flow_capacity = rule->flow_capacity ? 2 * rule->flow_capacity : 16;
        rule->flows = realloc(rule->flows, rule->flow_capacity * sizeof *rule->flows);
        if (!rule->flows) abort();
    }
    rule->flows[rule->flow_total++] = (flow_count){.flow = flow, .packets = 1};
    return 1;
}

static bool drops(rule *rule, bool from_a, const packet_summary *summary, size_t count) {
    if (from_a ? !rule->from_a : !rule->from_b) return false;
    if (rule->protocol != PROTOCOL_ANY && rule->protocol != summary->protocol) return false;
    if (rule->port != 0 && rule->port != summary->source_port && rule->port != summary->destination_port) return false;
    if (count <= rule->larger) return false;
    if (!rule->has_after && rule->number_count == 0) return true;
    uint64_t number = count_in_flow(rule, summary->flow);
    if (rule->has_after && number > rule->after) return true;
    for (size_t i = 0; i < rule->number_count; i++) {
        if (rule->numbers[i] == number) return true;
    }
    return false;
}

bool rules_drop(rule_list *list, bool from_a, const packet_summary *summary, size_t count) {
    bool dropped = false;
    for (size_t i = 0; i < list->count; i++) {
        if (!drops(&list->rules[i], from_a, summary, count)) continue;
        list->rules[i].dropped++;
        dropped = true;
    }
    return dropped;
}
