/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One case while it runs: its tally, its file, and the line of results at the
 * file's end.
 */
#ifndef GATEWAY_NODE_TEST_RTT_MEASUREMENT_H
#define GATEWAY_NODE_TEST_RTT_MEASUREMENT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/plugin/format.h"
#include "gateway/part/writer.h"
#include "gateway/node/test_rtt/cases.h"
#include "gateway/node/test_rtt/tally.h"
#include "gateway/sample/sample.h"

struct measurement {
	struct tally tally;
	struct node *node;
	const struct rtt_case *setting;
	unsigned id;
	uint64_t missed, made_up;   /* steps of the timer */
	struct hist late_ns;        /* how late those were that were taken */
	uint64_t warmup_sent;
	uint64_t wrong_length;      /* came back with other values */
	uint64_t unrecorded;        /* came back, but not into the file */
	struct timespec started, stopped;
	struct format *format;      /* borrowed */
	struct writer *writer;
	char path[PATH_MAX];
};

/*
 * Opens the file of case `id`: PREFIX_valuesV_rateR.log below `prefix`, which
 * holds the folder too; `node` counts what cannot be written. 0 or a negative errno; logs the cause.
 */
int measurement_open(struct measurement *m, struct node *node,
		     const struct rtt_case *setting, unsigned id,
		     const char *prefix, struct format *format);

/* A sample came back; from the receiver's thread. */
void measurement_record(struct measurement *m, const struct sample *s,
			struct timespec received, uint64_t now_ns);

/*
 * Writes what is left and the line of results, closes the file. `complete`: the
 * case came to its end. 0 or a negative errno; logs the cause.
 */
int measurement_close(struct measurement *m, bool complete);

#endif
