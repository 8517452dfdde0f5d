/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings and random numbers. */
#include "rdmacm/base/base.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/random.h>

#include "util/container_of.h"
#include "util/log.h"
#include "util/settings.h"

struct cma_settings cma_settings;

static const struct setting settings[] = {
	{ .env = "BUSBAR_CM_TIMEOUT_MS", .fallback = "68000",
	  .help = "how long a connection request waits for the peer's answer",
	  .type = SETTING_UINT,
	  .offset = offsetof(struct cma_settings, timeout_ms),
	  .min = 10, .max = 3600000 },
};

__attribute__((constructor)) static void cma_load(void)
{
	const char *level = getenv("BUSBAR_LOG");

	/* libibverbs reports an invalid value. */
	if (level && log_level_parse(level) >= 0)
		log_set_level((enum log_level)log_level_parse(level));
	settings_load(settings, ARRAY_SIZE(settings), &cma_settings);
}

uint32_t cma_random(uint32_t mask)
{
	uint32_t value;

	while (getrandom(&value, sizeof(value), 0) != sizeof(value))
		;
	return value & mask;
}
