/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests with several instances in one process: checks that end it, and how one is opened. */
#ifndef TESTS_RIPC_INSTANCE_H
#define TESTS_RIPC_INSTANCE_H

#include <busbar/ripc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(what) \
	do { \
		if (!(what)) { \
			printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, ripc_error()); \
			exit(1); \
		} \
	} while (0)

enum { LIMIT_MS = 5000 };

/* At a port of this process, so that no other one takes part. */
static inline struct ripc *open_instance(struct ripc_config c)
{
	struct ripc *r;

	c.resolver_port = (uint16_t)(20000 + getpid() % 12000);
	c.claim_ms = UINT32_MAX;
	c.resolve_timeout_ms = LIMIT_MS;
	if (!c.connect_timeout_ms)
		c.connect_timeout_ms = LIMIT_MS;
	CHECK(!ripc_open(&c, &r));
	return r;
}

#endif
