/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of adapters as text; see profile.h. */
#include "engine/paging/profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/rc/rules.h"
#include "util/container_of.h"
#include "util/settings.h"

#define HOUR_US UINT64_C(3600000000)
#define MILLION UINT64_C(1000000)
#define LINE_BYTES 128

#define PARAMETER(name, default_text, most)                                    \
	{ .env = #name, .fallback = default_text, .type = SETTING_UINT,        \
	  .max = (most), .offset = offsetof(struct paging_profile, name) }
#define SWITCH(name)                                                           \
	{ .env = #name, .fallback = "off", .type = SETTING_BOOL,               \
	  .offset = offsetof(struct paging_profile, name) }

static const struct setting parameters[] = {
	PARAMETER(fault_us, "500", HOUR_US),
	PARAMETER(nak_read_us, "0", HOUR_US),
	PARAMETER(nak_us, "0", HOUR_US),
	PARAMETER(resend_us, "0", HOUR_US),
	PARAMETER(first_use_us, "0", HOUR_US),
	PARAMETER(rnr_permille, "1000", MILLION),
	PARAMETER(timeout_floor, "1", 31),
	PARAMETER(timeout_permille, "1000", MILLION),
	PARAMETER(burst, "0", 1000),
	PARAMETER(burst_permille, "0", MILLION),
	SWITCH(loses_posted),
	SWITCH(late_response),
	PARAMETER(refresh_us, "0", HOUR_US),
	PARAMETER(refresh_growth_ppm, "0", MILLION),
};

/* "Fukuoka" is the thesis of profile.h; "model" a value that no measurement gives by itself. */
#define CONNECTX4                                                                     \
	"# source: Fukuoka 2021, ConnectX-4, firmware 12.21 to 12.27\n"               \
	"fault_us = 500             # 250 to 1000: 5.2.1\n"                           \
	"nak_read_us = 140          # figure 4.2\n"                                   \
	"nak_us = 520               # figures 4.3 and 4.4\n"                          \
	"resend_us = 530            # 500 to 800: figure 4.2, 5.3\n"                  \
	"first_use_us = 80          # 75 to 95: figures 4.2, 5.3\n"                   \
	"rnr_permille = 3400        # 2650 to 5000: figures 4.2 to 5.3, 6.2\n"        \
	"timeout_floor = 16         # figure 4.5\n"                                   \
	"timeout_permille = 2000    # 1550 to 2000: figures 5.3, 6.2\n"               \
	"loses_posted = on          # 5.1\n"                                          \
	"late_response = on         # figure 4.2\n"                                   \
	"refresh_us = 140           # model, from figure 5.9\n"                       \
	"refresh_growth_ppm = 6000  # model, from figure 5.9\n"

#define CONNECTX5                                                                     \
	"# source: Fukuoka 2021, table 4.1 and figure 4.5, ConnectX-5, firmware\n"    \
	"# 16.26: the timeout. All else is unknown and taken from ConnectX-4; damming\n" \
	"# was not tested.\n"                                                         \
	"fault_us = 500\n"                                                            \
	"nak_read_us = 140\n"                                                         \
	"nak_us = 520\n"                                                              \
	"resend_us = 530\n"                                                           \
	"first_use_us = 80\n"                                                         \
	"rnr_permille = 3400\n"                                                       \
	"timeout_floor = 12         # figure 4.5\n"                                   \
	"timeout_permille = 1800    # figure 4.5\n"                                   \
	"late_response = on\n"                                                        \
	"refresh_us = 140\n"                                                          \
	"refresh_growth_ppm = 6000\n"

#define CONNECTX6                                                                     \
	"# source: Fukuoka 2021, appendix A, ConnectX-6, firmware 20.26 and 20.27: no\n" \
	"# damming, the flood; public measurements of 2026, firmware 20.43: timeouts.\n" \
	"# What neither has is taken from ConnectX-4.\n"                              \
	"fault_us = 500\n"                                                            \
	"nak_read_us = 140\n"                                                         \
	"nak_us = 520\n"                                                              \
	"resend_us = 530\n"                                                           \
	"first_use_us = 80\n"                                                         \
	"rnr_permille = 3400\n"                                                       \
	"timeout_floor = 16         # 2026: 536.9 ms up to code 16\n"                 \
	"timeout_permille = 2000    # 2026\n"                                         \
	"burst = 7                  # 2026: 4 to 11\n"                                \
	"burst_permille = 820       # 2026: 3.50 to 3.76 s with 7 retries\n"          \
	"late_response = on\n"                                                        \
	"refresh_us = 350           # model, from figure A.2\n"                       \
	"refresh_growth_ppm = 6000\n"

#define IDEAL                                                                         \
	"# source: none; an adapter that keeps to the specification and loses no time\n" \
	"# but that of the faults.\n"                                                 \
	"fault_us = 500\n"

static const struct {
	const char *name, *text;
} built_in[] = {
	{ "connectx4", CONNECTX4 },
	{ "connectx5", CONNECTX5 },
	{ "connectx6", CONNECTX6 },
	{ "ideal", IDEAL },
};
const char paging_profile_names[] = "connectx4, connectx5, connectx6, ideal";

const char *paging_profile_text(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(built_in); i++)
		if (!strcmp(built_in[i].name, name))
			return built_in[i].text;
	return NULL;
}

static const struct setting *parameter_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(parameters); i++)
		if (!strcmp(parameters[i].env, name))
			return &parameters[i];
	return NULL;
}

/* Removes spaces at both ends. */
static char *trim(char *text)
{
	size_t length;

	text += strspn(text, " \t\r");
	length = strlen(text);
	while (length && strchr(" \t\r", text[length - 1]))
		length--;
	text[length] = '\0';
	return text;
}

/* One line without its end. 0 or -EINVAL. */
static int parse_line(char *line, unsigned number, struct paging_profile *out, char *why,
		      size_t why_bytes)
{
	const struct setting *parameter;
	char *name, *value;

	line[strcspn(line, "#")] = '\0';
	name = trim(line);
	if (!*name)
		return 0;
	value = strchr(name, '=');
	if (!value) {
		snprintf(why, why_bytes, "line %u: expected PARAMETER = VALUE", number);
		return -EINVAL;
	}
	*value++ = '\0';
	name = trim(name);
	value = trim(value);
	parameter = parameter_of(name);
	if (!parameter) {
		snprintf(why, why_bytes, "line %u: there is no parameter '%.40s'", number, name);
		return -EINVAL;
	}
	if (!setting_parse(parameter, value, (char *)out + parameter->offset))
		return 0;
	if (parameter->type == SETTING_BOOL)
		snprintf(why, why_bytes, "line %u: %s is on or off, not '%.40s'", number, name,
			 value);
	else
		snprintf(why, why_bytes, "line %u: %s is a number up to %ju, not '%.40s'",
			 number, name, (uintmax_t)parameter->max, value);
	return -EINVAL;
}

int paging_profile_parse(const char *text, struct paging_profile *out, char *why, size_t why_bytes)
{
	struct paging_profile p = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(parameters); i++)
		setting_parse(&parameters[i], parameters[i].fallback,
			      (char *)&p + parameters[i].offset);
	for (unsigned number = 1; *text; number++) {
		size_t length = strcspn(text, "\n");
		char line[LINE_BYTES];

		if (length >= sizeof(line)) {
			snprintf(why, why_bytes, "line %u is longer than %d characters", number,
				 LINE_BYTES - 1);
			return -EINVAL;
		}
		memcpy(line, text, length);
		line[length] = '\0';
		if (parse_line(line, number, &p, why, why_bytes))
			return -EINVAL;
		text += length;
		text += *text == '\n';
	}
	*out = p;
	return 0;
}

uint64_t paging_timeout_ns(const struct paging_profile *p, uint8_t code)
{
	code &= 31;
	if (!code)
		return 0;
	if (code < p->timeout_floor)
		code = (uint8_t)p->timeout_floor;
	return rc_timeout_ns(code) / 1000 * p->timeout_permille;
}
