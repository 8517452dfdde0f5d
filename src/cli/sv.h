/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of `busbar sv`. */
#ifndef CLI_SV_H
#define CLI_SV_H

#include <jansson.h>
#include <stdbool.h>

#include "util/options.h"

#define SV_CHANNELS_MAX 64

/* What a stream carries: the code of IEC 61869-9 without its fixed order, such as F4800S2I4U4. */
struct sv_variant {
	unsigned rate, asdus, currents, voltages;
};

/* Takes the code of an option into the variant that is its member. */
int sv_variant_take(const struct option_given *g);
/* The data set of a node `iec61850-9-2`: int32 with quality, of signals that are floats. */
json_t *sv_variant_signals(const struct sv_variant *v);
/* The group of a node, made where it is missing. */
json_t *sv_group(json_t *node, const char *name);
/* Runs the gateway of this configuration, for `seconds` at most (< 0: without a limit), or only
 * prints it. Takes it over; the exit status. */
int sv_run(json_t *config, bool print, double seconds);

int cli_sv_record(int argc, char **argv);
int cli_sv_play(int argc, char **argv);
/* The words of the command become texts of a configuration, which are UTF-8. False: one is not;
 * reported. */
bool sv_check_words(int argc, char **argv);

#endif
