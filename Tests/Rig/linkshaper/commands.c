#include "commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 32 };

typedef struct command {
    shaper *shaper;
    FILE *answer;
    uint64_t now;
    char *words[MOST_WORDS];
    size_t count;
} command;

typedef struct unit {
    const char *name;
    double factor;
} unit;

// MARK: - Values

/// Reads a number of 0 or more with one of `units`, the last of which has no name. False if it is anything else.
static bool read_number(const char *text, const unit *units, double *value) {
    if ((*text < '0' || *text > '9') && *text != '.') return false;
    char *rest;
    double number = strtod(text, &rest);
    if (rest == text || strpbrk(text, "xXnN") == text + 1) return false;
    for (const unit *unit = units; unit->name; unit++) {
        if (strcmp(rest, unit->name) != 0) continue;
        *value = number * unit->factor;
        return *value < 1e18;
    }
    return false;
}

static bool read_duration(const char *text, uint64_t *nanoseconds) {
    static const unit units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
    double value;
    if (strcmp(text, "0") == 0 || strcmp(text, "off") == 0) value = 0;
    else if (!read_number(text, units, &value)) return false;
    *nanoseconds = (uint64_t)value;
    return true;
}

static bool read_chance(const char *text, double *chance) {
    static const unit units[] = {{"%", 0.01}, {NULL, 0}};
    double value;
    if (strcmp(text, "0") == 0 || strcmp(text, "off") == 0) value = 0;
    else if (!read_number(text, units, &value) || value > 1) return false;
    *chance = value;
    return true;
}

static bool read_rate(const char *text, double *bits_per_second) {
    static const unit units[] = {{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {NULL, 0}};
    double value;
    if (strcmp(text, "off") == 0) value = 0;
    else if (!read_number(text, units, &value) || value < 1) return false;
    *bits_per_second = value;
    return true;
}

static bool read_size(const char *text, uint64_t *bytes) {
    static const unit units[] = {{"", 1}, {"k", 1024}, {"m", 1024 * 1024}, {NULL, 0}};
    double value;
    if (strcmp(text, "off") == 0) value = 0;
    else if (!read_number(text, units, &value)) return false;
    *bytes = (uint64_t)value;
    return true;
}

static bool read_integer(const char *text, uint64_t most, uint64_t *value) {
    if (*text < '0' || *text > '9') return false;
    char *rest;
    unsigned long long number = strtoull(text, &rest, 10);
    if (*rest != 0 || number > most) return false;
    *value = number;
    return true;
}

/// `enter,leave` or `enter,leave,loss`, or `off`.
static bool read_burst(char *text, direction_settings *settings) {
    if (strcmp(text, "off") == 0) {
        settings->burst_enter = 0;
        return true;
    }
    double parts[3] = {0, 0, 1};
    size_t count = 0;
    char *next = text;
    for (char *part; (part = strsep(&next, ","));) {
        if (count == 3 || !read_chance(part, &parts[count++])) return false;
    }
    if (count < 2 || parts[0] == 0 || parts[1] == 0) return false;
    settings->burst_enter = parts[0];
    settings->burst_leave = parts[1];
    settings->burst_loss = parts[2];
    return true;
}

static bool read_numbers(char *text, rule *rule) {
    rule->number_count = 0;
    char *next = text;
    for (char *part; (part = strsep(&next, ","));) {
        uint64_t number;
        if (rule->number_count == MOST_NUMBERS || !read_integer(part, UINT64_MAX, &number) || number == 0) return false;
        rule->numbers[rule->number_count++] = number;
    }
    return true;
}

/// `udp`, `tcp`, `icmp` or `all`, with a port behind a colon if wanted.
static bool read_flow(char *text, rule *rule) {
    char *port = strchr(text, ':');
    if (port) *port++ = 0;
    if (strcmp(text, "udp") == 0) rule->protocol = PROTOCOL_UDP;
    else if (strcmp(text, "tcp") == 0) rule->protocol = PROTOCOL_TCP;
    else if (strcmp(text, "icmp") == 0) rule->protocol = PROTOCOL_ICMP;
    else if (strcmp(text, "all") == 0) rule->protocol = PROTOCOL_ANY;
    else return false;
    uint64_t number = 0;
    if (port && (!read_integer(port, UINT16_MAX, &number) || number == 0)) return false;
    rule->port = (uint16_t)number;
    return true;
}

// MARK: - Answers

static void fail(command *command, const char *what, const char *word) {
    fprintf(command->answer, "error: %s", what);
    if (word) fprintf(command->answer, " \"%s\"", word);
    fputc('\n', command->answer);
}

static void succeed(command *command) { fputs("ok\n", command->answer); }

/// Reads the direction, which is a command's first word after its name.
static bool read_direction(command *command, bool ways[2]) {
    const char *word = command->count > 1 ? command->words[1] : "";
    ways[0] = strcmp(word, "a>b") == 0 || strcmp(word, "both") == 0;
    ways[1] = strcmp(word, "b>a") == 0 || strcmp(word, "both") == 0;
    if (ways[0] || ways[1]) return true;
    fail(command, "a direction is a>b, b>a or both, not", word);
    return false;
}

/// Cuts `key=value` in two; NULL if there is no value.
static char *cut_value(char *word) {
    char *value = strchr(word, '=');
    if (value) *value++ = 0;
    return value;
}

// MARK: - Commands

static bool apply_setting(direction_settings *settings, const char *key, char *value, bool *known) {
    *known = true;
    if (strcmp(key, "delay") == 0) return read_duration(value, &settings->delay);
    if (strcmp(key, "jitter") == 0) return read_duration(value, &settings->jitter);
    if (strcmp(key, "loss") == 0) return read_chance(value, &settings->loss);
    if (strcmp(key, "burst") == 0) return read_burst(value, settings);
    if (strcmp(key, "reorder") == 0) return read_chance(value, &settings->reorder);
    if (strcmp(key, "hold") == 0) return read_duration(value, &settings->hold);
    if (strcmp(key, "duplicate") == 0) return read_chance(value, &settings->duplicate);
    if (strcmp(key, "rate") == 0) return read_rate(value, &settings->bits_per_second);
    if (strcmp(key, "queue") == 0) return read_size(value, &settings->queue);
    if (strcmp(key, "mtu") == 0) return read_size(value, &settings->mtu);
    *known = false;
    return false;
}

static void perform_set(command *command) {
    bool ways[2];
    if (!read_direction(command, ways)) return;
    if (command->count < 3) return fail(command, "set what? key=value is missing", NULL);
    direction_settings changed[2] = {command->shaper->ways[0].settings, command->shaper->ways[1].settings};
    for (size_t i = 2; i < command->count; i++) {
        char *key = command->words[i], *value = cut_value(key);
        if (!value) return fail(command, "key=value expected, not", key);
        char copy[64];
        if (strlen(value) >= sizeof copy) return fail(command, "this value is too long:", value);
        for (int way = 0; way < 2; way++) {
            // Reading a list cuts it up, so each direction reads its own.
            bool known;
            strcpy(copy, value);
            if (!ways[way] || apply_setting(&changed[way], key, copy, &known)) continue;
            return known ? fail(command, "this is no value for the key before it:", value)
                         : fail(command, "there is no setting", key);
        }
    }
    for (int way = 0; way < 2; way++) command->shaper->ways[way].settings = changed[way];
    succeed(command);
}

static void perform_blackhole(command *command) {
    bool ways[2];
    if (!read_direction(command, ways)) return;
    const char *word = command->count == 3 ? command->words[2] : "";
    bool is_on = strcmp(word, "on") == 0;
    if (!is_on && strcmp(word, "off") != 0) return fail(command, "blackhole is on or off, not", word);
    for (int way = 0; way < 2; way++) {
        if (ways[way]) command->shaper->ways[way].settings.blackhole = is_on;
    }
    succeed(command);
}

static void add_rule(command *command, const rule *rule) {
    unsigned id = rules_add(&command->shaper->rules, *rule);
    if (id == 0) return fail(command, "there is no room for another rule", NULL);
    fprintf(command->answer, "ok rule=%u\n", id);
}

static void perform_drop(command *command) {
    rule rule = {0};
    bool ways[2];
    if (!read_direction(command, ways)) return;
    rule.from_a = ways[0];
    rule.from_b = ways[1];
    if (command->count < 3) return fail(command, "drop what? udp, tcp, icmp or all is missing", NULL);
    if (!read_flow(command->words[2], &rule)) {
        return fail(command, "udp, tcp, icmp or all, with :port if wanted, expected, not", command->words[2]);
    }
    for (size_t i = 3; i < command->count; i++) {
        char *key = command->words[i], *value = cut_value(key);
        if (!value) return fail(command, "key=value expected, not", key);
        bool is_read;
        if (strcmp(key, "larger") == 0) is_read = read_size(value, &rule.larger);
        else if (strcmp(key, "after") == 0) is_read = rule.has_after = read_integer(value, UINT64_MAX, &rule.after);
        else if (strcmp(key, "numbers") == 0) is_read = read_numbers(value, &rule);
        else return fail(command, "a rule has larger=, after= and numbers=, not", key);
        if (!is_read) return fail(command, "this is no value for the key before it:", value);
    }
    add_rule(command, &rule);
}

/// `drop-after flow=udp:443 packets=8`: the same as `drop both udp:443 after=8`.
static void perform_drop_after(command *command) {
    rule rule = {.from_a = true, .from_b = true};
    bool has_flow = false;
    for (size_t i = 1; i < command->count; i++) {
        char *key = command->words[i], *value = cut_value(key);
        if (!value) return fail(command, "key=value expected, not", key);
        if (strcmp(key, "flow") == 0) {
            if (!(has_flow = read_flow(value, &rule))) return fail(command, "a flow is like udp:443, not", value);
        } else if (strcmp(key, "packets") == 0) {
            rule.has_after = read_integer(value, UINT64_MAX, &rule.after);
            if (!rule.has_after) return fail(command, "packets is a number, not", value);
        } else {
            return fail(command, "drop-after has flow= and packets=, not", key);
        }
    }
    if (!has_flow || !rule.has_after) return fail(command, "drop-after needs flow= and packets=", NULL);
    add_rule(command, &rule);
}

static void perform_remove(command *command) {
    uint64_t id;
    const char *word = command->count == 2 ? command->words[1] : "";
    if (!read_integer(word, UINT32_MAX, &id) || !rules_remove(&command->shaper->rules, (unsigned)id)) {
        return fail(command, "there is no rule", word);
    }
    succeed(command);
}

/// Everything back to a link that delivers at once; what is under way stays so.
static void perform_reset(command *command) {
    rules_clear(&command->shaper->rules);
    for (int way = 0; way < 2; way++) command->shaper->ways[way].settings = direction_defaults();
    succeed(command);
}

static void write_counters(FILE *file, const char *name, const direction *way) {
    const direction_counters *c = &way->counters;
    double mean = c->delivered > 0 ? (double)c->late_total / (double)c->delivered / 1e3 : 0;
    fprintf(
        file,
        "\"%s\":{\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"udp\":%" PRIu64 ",\"tcp\":%" PRIu64 ",\"other\":%" PRIu64
        ",\"delivered\":%" PRIu64 ",\"deliveredBytes\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"overflowed\":%" PRIu64
        ",\"blackholed\":%" PRIu64 ",\"ruledOut\":%" PRIu64 ",\"tooLong\":%" PRIu64 ",\"undeliverable\":%" PRIu64
        ",\"duplicated\":%" PRIu64 ",\"reordered\":%" PRIu64 ",\"queued\":%zu,\"lateMeanMicroseconds\":%.1f"
        ",\"lateWorstMicroseconds\":%.1f}",
        name, c->packets, c->bytes, c->udp, c->tcp, c->other, c->delivered, c->delivered_bytes, c->lost, c->overflowed,
        c->blackholed, c->ruled_out, c->too_long, c->undeliverable, c->duplicated, c->reordered, way->queued, mean,
        (double)c->late_worst / 1e3);
}

static void perform_counters(command *command) {
    const shaper *shaper = command->shaper;
    FILE *answer = command->answer;
    if (command->count > 1) return fail(command, "counters takes no words, not", command->words[1]);
    fputc('{', answer);
    write_counters(answer, "a>b", &shaper->ways[0]);
    fputc(',', answer);
    write_counters(answer, "b>a", &shaper->ways[1]);
    fputs(",\"rules\":[", answer);
    for (size_t i = 0; i < shaper->rules.count; i++) {
        const rule *rule = &shaper->rules.rules[i];
        fprintf(
            answer, "%s{\"rule\":%u,\"dropped\":%" PRIu64 ",\"flows\":%zu}", i > 0 ? "," : "", rule->id, rule->dropped,
            rule->flow_total);
    }
    fprintf(
        answer, "],\"seed\":%" PRIu64 ",\"milliseconds\":%" PRIu64 "}\n", shaper->seed,
        (command->now - shaper->started) / 1000000);
}

static void perform_quit(command *command) {
    command->shaper->ended = true;
    succeed(command);
}

void command_perform(shaper *shaper, char *line, uint64_t now, FILE *answer) {
    command command = {.shaper = shaper, .answer = answer, .now = now};
    for (char *word; (word = strsep(&line, " \t\r\n"));) {
        if (*word == 0) continue;
        if (command.count == MOST_WORDS) return fail(&command, "this command has too many words", NULL);
        command.words[command.count++] = word;
    }
    static const struct {
        const char *name;
        void (*perform)(struct command *);
    } verbs[] = {
        {"set", perform_set},       {"blackhole", perform_blackhole},   {"drop", perform_drop},
        {"remove", perform_remove}, {"drop-after", perform_drop_after}, {"reset", perform_reset},
        {"quit", perform_quit},     {"counters", perform_counters},
    };
    if (command.count == 0) return fail(&command, "the command is missing", NULL);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(verbs[i].name, command.words[0]) == 0) return verbs[i].perform(&command);
    }
    fail(&command, "commands are set, blackhole, drop, drop-after, remove, reset, counters and quit, not",
         command.words[0]);
}
