/* SPDX-License-Identifier: BSD-2-Clause */
/* Words of VILLASnode that are called otherwise here; see former.h. */
#include "gateway/former.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gateway/format.h"
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
	{ "node", "the node stands in the name of the figure now: stats = \"NODE.METRIC.TYPE\"" },
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

/* raw.32.be: bits and byte order stood in the name. */
static json_t *raw_settings(const char *name)
{
	char order[4] = "";
	int bits = 0, end = 0;

	if (sscanf(name, "raw.%2d%n.%3s%n", &bits, &end, order, &end) < 1 ||
	    name[end] || (bits != 8 && bits != 16 && bits != 32 && bits != 64) ||
	    (*order && strcmp(order, "be") && strcmp(order, "le")))
		return NULL;
	return json_pack("{sssiss}", "type", "raw", "bits", bits, "endianess",
			 !strcmp(order, "be") ? "big" : "little");
}

/* villas-human: a dash where a dot stands now. */
static json_t *dotted(const char *name)
{
	char text[64];

	if (strlen(name) >= sizeof(text) || !strchr(name, '-'))
		return NULL;
	strcpy(text, name);
	for (char *p = text; (p = strchr(p, '-'));)
		*p = '.';
	return format_type_find(text) ? json_pack("{ss}", "type", text) : NULL;
}

json_t *former_format(const json_t *cfg)
{
	const char *name = json_string_value(json_is_string(cfg) ? cfg :
					     json_object_get(cfg, "type"));
	json_t *settings;

	if (!name || format_type_find(name))
		return NULL;
	if (!strcmp(name, "gtnet.fake"))
		settings = json_pack("{sssb}", "type", "gtnet", "fake", 1);
	else if (!strncmp(name, "raw.", 4))
		settings = raw_settings(name);
	else
		settings = dotted(name);
	if (settings && json_is_object(cfg))
		json_object_update_missing(settings, (json_t *)cfg);
	return settings;
}
