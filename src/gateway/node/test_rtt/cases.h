/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cases of a round-trip test: each rate with each number of values, and how
 * long each lasts. Only the configuration, nothing that runs.
 */
#ifndef GATEWAY_NODE_TEST_RTT_CASES_H
#define GATEWAY_NODE_TEST_RTT_CASES_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/config/config.h"

/* Which of `count` and `duration` ends a case. */
enum rtt_mode {
	RTT_MIN,                 /* the one that is reached first */
	RTT_MAX,                 /* the one that is reached last */
	RTT_STOP_AFTER_COUNT,    /* so many have been sent */
	RTT_STOP_AFTER_DURATION,
	RTT_AT_LEAST_COUNT,      /* so many have come back */
	RTT_AT_LEAST_DURATION,   /* the same as STOP_AFTER_DURATION */
};

/* NULL terminated, for CONFIG_ENUM. */
extern const char *const rtt_mode_names[];

/* What may stand on the node and in each case. */
struct rtt_settings {
	json_t *rates, *values;
	int64_t count;           /* 0: no limit */
	int64_t limit;           /* the same, by its older name */
	double duration_s;       /* 0: no limit */
	double warmup_s, cooldown_s;
	int mode;
};

#define RTT_SETTING_COUNT 8
/* Offsets are those in struct rtt_settings. */
extern const struct config_key rtt_setting_keys[RTT_SETTING_COUNT];

struct rtt_case {
	double rate_hz;
	unsigned values;
	uint64_t count;
	double duration_s, warmup_s, cooldown_s;
	enum rtt_mode mode;
};

/*
 * All cases of `cfg`, in order: those of an entry of `cases` together, and of
 * these each rate with all numbers of values. What an entry does not say it
 * takes from `common`. 0 with *cases (to be freed) and *count, or a negative
 * errno after reporting.
 */
int rtt_cases_parse(struct rtt_case **cases, unsigned *count, struct config *c,
		    json_t *cfg, const struct rtt_settings *common);

/*
 * Whether a case that has sent and got back so many, `passed_s` after its first
 * sample, is over.
 */
bool rtt_case_is_over(const struct rtt_case *k, uint64_t sent,
		      uint64_t received, double passed_s);

#endif
