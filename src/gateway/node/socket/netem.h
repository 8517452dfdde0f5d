/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Emulation of a bad network on the writing side: delay, jitter, loss, duplicates
 * and damaged bits, in user space, so it needs no right and no kernel module. The
 * same seed and the same messages give the same losses.
 */
#ifndef GATEWAY_NODE_SOCKET_NETEM_H
#define GATEWAY_NODE_SOCKET_NETEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/config/config.h"

struct netem;

/* Sends one message; from the thread of netem when there is a delay. `buf` may
 * be changed. */
typedef void (*netem_send_fn)(void *context, char *buf, size_t len);

struct netem_settings {
	bool enabled;
	double delay_us, jitter_us;
	int distribution;
	double loss, duplicate, corrupt; /* percent */
	json_t *corruption;              /* another name of corrupt */
	int64_t seed, limit;
	bool keep_order;                 /* of a stream: jitter does not reorder */
	size_t spare;                    /* bytes at the start of a message that
					  * are never damaged */
};

struct netem_counters {
	uint64_t messages, lost, duplicated, corrupted, overflown;
};

/* Key table of out.netem; fills struct netem_settings. 0 or -EINVAL. */
int netem_parse(struct netem_settings *s, struct config *c, json_t *cfg);

/* 0 or a negative errno; logs the cause. */
int netem_open(struct netem **out, const struct netem_settings *settings,
	       netem_send_fn send, void *context);

/* One message; copied. Not from several threads at a time. */
void netem_put(struct netem *n, const char *buf, size_t len);

/* Waits at most a second for what is delayed, then gives up; ends the thread. */
void netem_close(struct netem *n, const char *node);

const struct netem_counters *netem_counters(const struct netem *n);

#endif
