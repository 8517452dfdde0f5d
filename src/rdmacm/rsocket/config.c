/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Defaults of the administrator: one file per value below /etc/rdma/rsocket, each with
 * one number; names as in rsocket(7). rsetsockopt() of a program overrides them.
 */
#define LOG_ROOM "rsocket"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/rsocket/rs.h"
#include "util/log.h"

static struct rs_config config = {
	.recv_size = 512 << 10,
	.send_size = 256 << 10,
	.sq_size = 128,
	.rq_size = 128,
	.inline_size = 64,
	.map_count = 0,
	.polling_us = 10,
	.wake_up_ms = 5000,
};

static const struct {
	const char *file;
	uint32_t *field;
	uint32_t min, max;
} values[] = {
	{ "mem_default", &config.recv_size, 4096, 1u << 30 },
	{ "wmem_default", &config.send_size, 4096, 1u << 30 },
	{ "sqsize_default", &config.sq_size, 8, 16384 },
	{ "rqsize_default", &config.rq_size, 2, 16384 },
	{ "inline_default", &config.inline_size, 0, 1024 },
	{ "iomap_size", &config.map_count, 0, RS_MAPS_MAX },
	{ "polling_time", &config.polling_us, 0, 1000000 },
	{ "wake_up_interval", &config.wake_up_ms, 1, 3600000 },
};

static void value_read(const char *folder, size_t i)
{
	unsigned long long number;
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, values[i].file);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fscanf(f, "%llu", &number) != 1 || number < values[i].min ||
	    number > values[i].max)
		log_warn("%s: not a number from %u to %u, %u is used", path,
			 values[i].min, values[i].max, *values[i].field);
	else
		*values[i].field = (uint32_t)number;
	fclose(f);
}

static void config_read(void)
{
	const char *folder = secure_getenv("BUSBAR_RSOCKET_CONFIG");

	if (!folder || !*folder)
		folder = "/etc/rdma/rsocket";
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		value_read(folder, i);
}

const struct rs_config *rs_config_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, config_read);
	return &config;
}
