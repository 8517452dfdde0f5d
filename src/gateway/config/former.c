/* SPDX-License-Identifier: BSD-2-Clause */
/* Words of VILLASnode that are called otherwise here; see former.h. */
#include "gateway/config/former.h"

#include <string.h>

#include "util/container_of.h"

static const struct {
	const char *key, *hint;
} keys[] = {
	{ "local", "it is called `in = { address = ... }` now" },
	{ "remote", "it is called `out = { address = ... }` now" },
	{ "header", "it is called `format` now, \"villas.binary\" or \"gtnet\"" },
	{ "endian", "it belongs to the format now: format = { type = \"raw\", endianess = \"big\" }" },
	{ "samplelen", "samples have any length, leave it out" },
	{ "poll_mode", "it is called `polling` now: busy, event or adaptive" },
	{ "command", "it is called `exec` now" },
	{ "series", "the signals of a node stand in `in = { signals = ... }` now" },
	{ "index", "it is called `signal` now, a name or an index" },
	{ "estimation_range", "it belongs to the hook ip-dft-pmu" },
	{ "bucket", "it is called `buckets`" },
	{ "startTime", "it is called `start_time`" },
	{ "stopTime", "it is called `stop_time`" },
	{ "stepSize", "it is called `step_size`" },
	{ "fmuWritefirst", "it is called `fmu_writing_turn`" },
};

#define DEVICE \
	"use exec or shmem (libbusbar-shmem) with a program that reads the device"
#define OTHER_PROTOCOL \
	"use exec with a program that speaks the protocol and reads and writes lines"

static const struct {
	const char *type, *hint;
} node_types[] = {
	{ "advio", "it is called file" },
	{ "api", OTHER_PROTOCOL },
	{ "cbuilder", DEVICE },
	{ "delta_sharing", OTHER_PROTOCOL },
	{ "example", "it moves nothing; loopback is there to try things out" },
	{ "gateway", OTHER_PROTOCOL },
	{ "iec61850-goose", "it is called iec61850-8-1" },
	{ "opal", "it is called opal.async" },
	{ "smu", DEVICE },
	{ "ulapi", DEVICE },
	{ "webrtc", OTHER_PROTOCOL },
};

const char *former_key_hint(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].key, key))
			return keys[i].hint;
	return NULL;
}

const char *former_node_hint(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(node_types); i++)
		if (!strcmp(node_types[i].type, type))
			return node_types[i].hint;
	return NULL;
}
