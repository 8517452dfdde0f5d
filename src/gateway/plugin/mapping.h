/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mapping expressions say which values a path takes from a node. These functions parse the
 * text and find the places of names in a list of signals; path_map.c copies values.
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
	MAPPING_SIGNAL,    /* after a point */
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

/* 0, or -EINVAL with the error in `problem`. `text` must outlive *m. */
int mapping_parse(struct mapping *m, const char *text, char *problem,
		  size_t size);

/*
 * Finds the first value and the number of values in samples with the signals `l`; for the
 * first three kinds. In brackets a number is an index, even if it is also the name of a
 * signal; after a point names come first. 0, or -EINVAL with `problem`.
 */
int mapping_resolve(const struct mapping *m, const struct signal_list *l,
		    unsigned *first, unsigned *count, char *problem,
		    size_t size);

#endif
