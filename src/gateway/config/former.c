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
};

#define BROKER \
	"use exec with the broker's own programs that read and write lines"
#define DEVICE \
	"use exec with a program that reads the device, or shmem with libbusbar-shmem"
#define WEB "use socket over tcp, or exec with a program that bridges"
#define FIELD_BUS "use exec with a program that speaks the protocol, or socket"

static const struct {
	const char *type, *hint;
} node_types[] = {
	{ "advio", "it is called file" },
	{ "amqp", BROKER },
	{ "api", WEB },
	{ "c37.118", FIELD_BUS },
	{ "can", FIELD_BUS },
	{ "cbuilder", DEVICE },
	{ "comedi", DEVICE },
	{ "delta_sharing", WEB },
	{ "ethercat", DEVICE },
	{ "example", "it moves nothing; loopback is there to try things out" },
	{ "fmu", "use shmem with libbusbar-shmem, or exec" },
	{ "fpga", DEVICE },
	{ "gateway", WEB },
	{ "iec60870-5-104", FIELD_BUS },
	{ "iec61850-8-1", FIELD_BUS },
	{ "iec61850-9-2", FIELD_BUS },
	{ "influxdb", "use file with csv or iotagent_ul, or exec" },
	{ "kafka", BROKER },
	{ "modbus", FIELD_BUS },
	{ "mqtt", BROKER },
	{ "nanomsg", "use socket, whose formats are the same" },
	{ "ngsi", WEB },
	{ "opal", DEVICE },
	{ "opal.async", "use socket over udp with the format opal.asyncip" },
	{ "opal.orchestra", DEVICE },
	{ "opendss", "use exec or shmem" },
	{ "redis", BROKER },
	{ "rtp", "use socket over udp" },
	{ "smu", DEVICE },
	{ "temper", DEVICE },
	{ "uldaq", DEVICE },
	{ "ulapi", DEVICE },
	{ "webrtc", WEB },
	{ "websocket", WEB },
	{ "zeromq", "use socket, whose formats are the same" },
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
