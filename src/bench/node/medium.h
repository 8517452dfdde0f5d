/* SPDX-License-Identifier: BSD-2-Clause */
/* The node-types by the names that `--node` takes, and their two ends as configurations. */
#ifndef BENCH_NODE_MEDIUM_H
#define BENCH_NODE_MEDIUM_H

#include <limits.h>

#include "bench/node/settings.h"

/* What the node file under test writes, in the folder of the gateways. */
#define BENCH_NODE_LOGGED "logged.txt"

struct bench_node_medium {
	const char *name;   /* of --node */
	const char *type;   /* node-type; NULL: the name given is that of the node-type */
	/* What the log of the target says once it can be reached; NULL: it is running. */
	const char *ready;
	bool both_ends;     /* one node is both ends: what is written to it is read from it */
	bool addressed;     /* its ends reach each other by addresses of the network */
	bool services;      /* it has service types */
	bool logs;          /* nothing comes out of it but a file (rows.h) */
	bool removable;     /* it leaves an object in shared memory when it is killed */
	const char *node;   /* the node-type of its ends; NULL: `type` */
	/* Keys as of bench_node_keys(). With both_ends only `source`, for both directions. */
	const char *source, *target;
};

/*
 * A node of this type, a new object; `words` are its keys: "out.address=$target in.vectorize=16".
 * A value is a number, true, {}, a list of texts "[a,b]" or a text. $source and $target stand for the
 * addresses of the ends, $service, $polling, $values, $tag and $program for the settings,
 * $waiting, $mark and $program_mode for how nodes, the mark behind a file and the program wait.
 */
json_t *bench_node_keys(const struct bench_node_settings *s, const char *type, const char *words);

/* By name, of the table or any node-type of the gateway. NULL: there is none; `why` says it. */
const struct bench_node_medium *bench_node_medium_find(const char *name);

/* All names, "infiniband shmem ..."; one line without an end. */
void bench_node_medium_list(char *text, size_t size);

/* Is the node-type in this build? Else says so and returns -EOPNOTSUPP. */
int bench_node_medium_is_there(const struct bench_node_settings *s);

/* The gateway of one end; NULL: no memory. With one process SOURCE holds everything. */
json_t *bench_node_configuration(const struct bench_node_settings *s,
				 enum bench_node_end end);

/* Bytes that a sample takes in the memory of a recording. */
size_t bench_node_record_bytes(const struct bench_node_settings *s);

/* Makes a folder below TMPDIR and chooses free ports. 0; -EOPNOTSUPP: memory or disk has no room
 * for the recordings; or another negative errno; logged. The folder is there unless dir[0] is
 * '\0'; files_remove_dir() removes it. */
int bench_node_place_make(struct bench_node_settings *s, char dir[PATH_MAX]);

#endif
