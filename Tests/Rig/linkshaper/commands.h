// The line protocol: one command per line, one line as the answer.
#pragma once

#include <stdio.h>

#include "direction.h"
#include "rules.h"

/// The whole shaper as commands see it. `ways[0]` leads from a to b.
typedef struct shaper {
    direction ways[2];
    rule_list rules;
    uint64_t seed;
    uint64_t started;  // nanoseconds
    bool ended;        // `quit` was asked for
} shaper;

/// Performs one command and writes its answer: `ok`, `ok rule=ID`, a line of JSON, or `error: …`. A command that is
/// wrong changes nothing.
void command_perform(shaper *shaper, char *line, uint64_t now, FILE *answer);
