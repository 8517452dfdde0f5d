/* SPDX-License-Identifier: BSD-2-Clause */
/* Widths and speeds of links, their words and rates (IBA volume 2, 5 and 6). See topology.h. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "fabric/topology/topology.h"
#include "util/container_of.h"
#include "util/num.h"

/* Of a lane, what packets get: 8b/10b up to QDR, 64b/66b up to EDR, then 256b/257b and RS(544,514). */
static const struct {
	const char *name;
	uint64_t bits_per_second;
} speeds[TOPOLOGY_SPEEDS] = {
	[TOPOLOGY_SDR] = { "SDR", UINT64_C(2000000000) },
	[TOPOLOGY_DDR] = { "DDR", UINT64_C(4000000000) },
	[TOPOLOGY_QDR] = { "QDR", UINT64_C(8000000000) },
	[TOPOLOGY_FDR10] = { "FDR10", UINT64_C(10000000000) },
	[TOPOLOGY_FDR] = { "FDR", UINT64_C(13636363636) },
	[TOPOLOGY_EDR] = { "EDR", UINT64_C(25000000000) },
	[TOPOLOGY_HDR] = { "HDR", UINT64_C(50000000000) },
	[TOPOLOGY_NDR] = { "NDR", UINT64_C(100000000000) },
};

static const struct {
	enum topology_width width;
	unsigned lanes;
	const char *name;
} widths[] = {
	{ TOPOLOGY_1X, 1, "1x" }, { TOPOLOGY_2X, 2, "2x" },    { TOPOLOGY_4X, 4, "4x" },
	{ TOPOLOGY_8X, 8, "8x" }, { TOPOLOGY_12X, 12, "12x" },
};

unsigned topology_lanes(enum topology_width width)
{
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++)
		if (widths[i].width == width)
			return widths[i].lanes;
	return 0;
}

const char *topology_speed_name(enum topology_speed speed)
{
	return speed < TOPOLOGY_SPEEDS ? speeds[speed].name : "unknown";
}

int topology_parse_width(const char *text, size_t bytes, enum topology_width *width)
{
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++)
		if (strlen(widths[i].name) == bytes && !strncasecmp(text, widths[i].name, bytes)) {
			*width = widths[i].width;
			return 0;
		}
	return -EINVAL;
}

int topology_parse_speed(const char *text, size_t bytes, enum topology_speed *speed)
{
	for (size_t i = 0; i < TOPOLOGY_SPEEDS; i++)
		if (strlen(speeds[i].name) == bytes && !strncasecmp(text, speeds[i].name, bytes)) {
			*speed = (enum topology_speed)i;
			return 0;
		}
	return -EINVAL;
}

int topology_parse_rate(const char *text, size_t bytes, enum topology_width *width,
			enum topology_speed *speed)
{
	enum topology_width w;
	enum topology_speed s;
	size_t lanes = 0;

	while (lanes < bytes && text[lanes] != 'x' && text[lanes] != 'X')
		lanes++;
	if (lanes == bytes || topology_parse_width(text, lanes + 1, &w) ||
	    topology_parse_speed(text + lanes + 1, bytes - lanes - 1, &s))
		return -EINVAL;
	*width = w;
	*speed = s;
	return 0;
}

uint64_t topology_link_bit_rate(const struct topology_link *l)
{
	return l->speed < TOPOLOGY_SPEEDS ? topology_lanes(l->width) * speeds[l->speed].bits_per_second : 0;
}

int topology_parse_delay(const char *text, size_t bytes, uint64_t *delay_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "", 1 }, { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	const char *end = text + bytes, *unit;
	double value;

	unit = num_parse_double(text, end, &value);
	if (!unit)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strlen(units[i].name) != (size_t)(end - unit) ||
		    memcmp(units[i].name, unit, (size_t)(end - unit)))
			continue;
		value = value * units[i].ns + 0.5;
		/* Also false for NaN. */
		if (!(value >= 0.5 && value < (double)(TOPOLOGY_DELAY_NS_MAX + 1)))
			return -EINVAL;
		*delay_ns = (uint64_t)value;
		return 0;
	}
	return -EINVAL;
}

int topology_parse_error_rate(const char *text, size_t bytes, double *bit_error_rate)
{
	const char *end = text + bytes;
	double value;

	if (num_parse_double(text, end, &value) != end || !(value >= 0 && value < 1))
		return -EINVAL;
	*bit_error_rate = value;
	return 0;
}
