/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples out of messages that have come: one for all connections of a thread. */
#ifndef GATEWAY_WS_INLET_H
#define GATEWAY_WS_INLET_H

#include <stddef.h>

#include "gateway/plugin/format.h"
#include "gateway/sample/sample.h"

#define WS_INLET_BATCH 128

struct ws_inlet {
	struct pool pool;
	struct sample *smps[WS_INLET_BATCH];
	/* The samples stay the caller's, who takes them back after the call. */
	void (*received)(void *arg, struct sample *const smps[], unsigned count);
	void *arg;
};

/* Samples of up to `values` values. 0 or -ENOMEM. */
int ws_inlet_init(struct ws_inlet *in, unsigned values,
		  void (*received)(void *arg, struct sample *const smps[], unsigned count),
		  void *arg);
void ws_inlet_destroy(struct ws_inlet *in);

/*
 * Reads a whole message in the format of its sender (f->message is set). The number of pieces
 * that are no samples, with the cause of the last one in format_error(); *count: samples.
 */
unsigned ws_inlet_take(struct ws_inlet *in, struct format *f, const void *data, size_t len,
		       unsigned *count);

#endif
