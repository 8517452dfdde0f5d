/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two ends of `busbar pipe` as node-types: standard input, which is read, and standard
 * output, which is written. There is one node of each.
 */
#ifndef CLI_PIPE_ENDS_H
#define CLI_PIPE_ENDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/tool_stream.h"
#include "gateway/plugin/plugin.h"

struct super_node;

#define PIPE_IN "standard-input"
#define PIPE_OUT "standard-output"

struct pipe_ends {
	/* Settings. */
	struct format *in_format, *out_format; /* borrowed */
	struct signal_list *signals;           /* of standard input; borrowed */
	bool any_signals;                      /* -t was not given */
	uint64_t send_max, receive_max;        /* samples; 0: no limit */
	bool stays;        /* the gateway does not end when the input ends */

	/* At run time. */
	struct tool_input in;
	struct tool_output out;
	bool in_open, out_open;
	uint64_t sent, received;
	atomic_bool failed;
};

extern struct pipe_ends pipe_ends;
/* For plugin_extend(). */
extern const struct plugin pipe_plugins[];

/* Writes the buffered output. From any thread. */
void pipe_flush(void);

#endif
