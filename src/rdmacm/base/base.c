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

static const char *const rtr_names[] = { "auto", "write", "read", "none", NULL };

static const struct setting settings[] = {
	{ .env = "BUSBAR_CM_TIMEOUT_MS", .fallback = "68000",
	  .help = "how long a connection request waits for the peer's answer",
	  .type = SETTING_UINT,
	  .offset = offsetof(struct cma_settings, timeout_ms),
	  .min = 10, .max = 3600000 },
	{ .env = "BUSBAR_IWARP_REVISION", .fallback = "2",
	  .help = "the revision of MPA with which connections of iWARP are requested: 1, or 2, which agrees on READs and on the first message",
	  .type = SETTING_UINT,
	  .offset = offsetof(struct cma_settings, mpa_revision),
	  .min = 1, .max = 2 },
	{ .env = "BUSBAR_IWARP_CRC", .fallback = "off",
	  .help = "whether connections of iWARP have checksums (CRC-32C); they have if either end wants them",
	  .type = SETTING_BOOL,
	  .offset = offsetof(struct cma_settings, mpa_crc) },
	{ .env = "BUSBAR_IWARP_MARKERS", .fallback = "off",
	  .help = "whether this end wants to receive markers in connections of iWARP, which Linux's siw refuses",
	  .type = SETTING_BOOL,
	  .offset = offsetof(struct cma_settings, mpa_markers) },
	{ .env = "BUSBAR_IWARP_RTR", .fallback = "auto",
	  .help = "the first message of an initiator of iWARP, which lets the responder send: auto (what the responder prefers), write, read, or none (the program has to send first)",
	  .type = SETTING_ENUM,
	  .names = rtr_names,
	  .offset = offsetof(struct cma_settings, mpa_rtr) },
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
