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
	bool stays;          /* the gateway does not end when the input ends */
	bool stays_if_empty; /* nor does it if the input ends without a sample */
	bool refuses;        /* the node cannot be written */
	bool served;         /* the node has clients of the HTTP server */

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

/*
 * For a node that cannot be written: a thread reads standard input and counts the samples
 * as lost. Not from a terminal. 0 or a negative errno, logged.
 */
int pipe_refuse_start(void);
/* Ends it; returns the number of samples (at least 1 if bytes were left), logged. */
uint64_t pipe_refuse_stop(const char *node);

#endif
