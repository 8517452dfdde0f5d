/* SPDX-License-Identifier: BSD-2-Clause */
/* What one case of the benchmark of node-types measures. */
#ifndef BENCH_NODE_SETTINGS_H
#define BENCH_NODE_SETTINGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/kind/kind.h"

#define BENCH_NODE_BESIDE_MAX 64

struct bench_node_medium;

/* The two ends; also indices. With one process there is a SOURCE only, which holds both. */
enum bench_node_end { BENCH_NODE_SOURCE, BENCH_NODE_TARGET, BENCH_NODE_ENDS };

struct bench_node_settings {
	const struct bench_node_medium *medium;
	/* Borrowed from the parameters. */
	const char *node, *service, *timer, *polling, *recording, *simulator;
	unsigned values;
	double rate_hz;
	uint64_t steps;              /* of the generator, after scaling */
	unsigned processes;
	bool namespaces;
	bool budget;                 /* time stamps inside of the node (budget.h) */
	int64_t catch_up_ns;         /* < 0: as the generator does by itself */
	int64_t hold_ns;
	int cpus[BENCH_NODE_ENDS];   /* -1: any */
	int priority, nice;
	unsigned beside;             /* busy loops; at most BENCH_NODE_BESIDE_MAX */
	char host[BENCH_NODE_ENDS][64];
	json_t *keys, *in, *out;     /* owned; of the user; NULL: none */

	/* Of this run, set by who starts it. */
	unsigned port[BENCH_NODE_ENDS];
	char tag[48];                /* for names that nobody else on this host has */
};

extern const struct bench_parameter bench_node_parameters[];

/* 0; -EINVAL after saying which parameter is wrong and why. Free it also then. */
int bench_node_settings_read(const json_t *parameters, double scale,
			     struct bench_node_settings *s);
void bench_node_settings_free(struct bench_node_settings *s);

/* How long the generator runs. */
static inline double bench_node_seconds(const struct bench_node_settings *s)
{
	return (double)s->steps / s->rate_hz;
}

#endif
