/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mapping expressions: what a path takes from a node. Only text to structure,
 * and names to places in a list of signals; copying is the path's (path_map.c).
 *
 *	node                          all values
 *	node[2], node[0-3]            values by number, both ends included
 *	node[u], node[ua-uc]          values by name
 *	node.u, node.data.u           the value named u
 *	node.data[...]                as node[...]
 *	node.hdr.sequence|length      of the sample
 *	node.ts.origin|received       two values: seconds, nanoseconds
 *	node.stats.METRIC.TYPE        a figure of the hook `stats` (stats.h)
 */
#ifndef GATEWAY_PLUGIN_MAPPING_H
#define GATEWAY_PLUGIN_MAPPING_H

#include <stddef.h>

#include "gateway/sample/sample.h"
#include "gateway/plugin/stats.h"

enum mapping_kind {
	MAPPING_NODE,
	MAPPING_RANGE,     /* in brackets */
	MAPPING_SIGNAL,    /* behind a point */
	MAPPING_SEQUENCE,
	MAPPING_LENGTH,
	MAPPING_ORIGIN,
	MAPPING_RECEIVED,
	MAPPING_STATS,
};

struct mapping {
	enum mapping_kind kind;
	const char *node;          /* borrowed from the text, not terminated */
	size_t node_len;
	const char *what;          /* range or signal; likewise */
	size_t what_len;
	enum stats_metric metric;  /* MAPPING_STATS */
	enum stats_type type;
};

#define MAPPING_PROBLEM_MAX 256

/* 0, or -EINVAL with what is wrong in `problem`. `text` must outlive *m. */
int mapping_parse(struct mapping *m, const char *text, char *problem,
		  size_t size);

/*
 * Which values of a sample with these signals are meant; for the first three
 * kinds. In brackets a number is a place, also where a signal has it for a
 * name; behind a point names go first. 0, or -EINVAL with `problem`.
 */
int mapping_resolve(const struct mapping *m, const struct signal_list *l,
		    unsigned *first, unsigned *count, char *problem,
		    size_t size);

#endif
