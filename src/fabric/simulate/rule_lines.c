/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of scenarios about switches, lanes, arbitration, congestion control and faults; see lines.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/simulate/lines.h"
#include "util/num.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

int simulate_lines_switch(struct topology_scan *s, struct simulate_scenario *c)
{
	static const struct simulate_key keys[] = {
		{ "latency", SIMULATE_TIME, offsetof(struct simulate_scenario, latency_ps), 0,
		  UINT64_C(1000000000000), NULL },
		{ "mode", SIMULATE_CHOICE, offsetof(struct simulate_scenario, store_and_forward), 0, 0,
		  "cut-through|store-and-forward" },
		{ "queues", SIMULATE_CHOICE, offsetof(struct simulate_scenario, output_queues), 0, 0, "input|output" },
	};

	return simulate_words_pairs(s, keys, COUNT(keys), c);
}

int simulate_lines_congestion_switch(struct topology_scan *s, struct simulate_scenario *c)
{
#define AT(member) offsetof(struct simulate_congestion, member)
	static const struct simulate_key keys[] = {
		{ "threshold", SIMULATE_COUNT, AT(threshold), 0, 15, NULL },
		{ "marking-rate", SIMULATE_COUNT, AT(marking_rate), 0, UINT16_MAX, NULL },
		{ "packet", SIMULATE_SIZE, AT(marked_bytes), 0, 4096, NULL },
		{ "victims", SIMULATE_CHOICE, AT(victims), 0, 0, "no|yes" },
	};

	c->congestion.at_switches = true;
	return simulate_words_pairs(s, keys, COUNT(keys), &c->congestion);
}

int simulate_lines_congestion_host(struct topology_scan *s, struct simulate_scenario *c)
{
	static const struct simulate_key keys[] = {
		{ "timer", SIMULATE_COUNT, AT(timer), 0, UINT16_MAX, NULL },
		{ "increase", SIMULATE_COUNT, AT(increase), 0, UINT8_MAX, NULL },
		{ "trigger", SIMULATE_COUNT, AT(trigger), 0, UINT8_MAX, NULL },
		{ "minimum", SIMULATE_COUNT, AT(minimum), 0, UINT8_MAX, NULL },
		{ "limit", SIMULATE_COUNT, AT(limit), 0, SIMULATE_TABLE_MAX - 1, NULL },
	};
	int err = simulate_words_pairs(s, keys, COUNT(keys), &c->congestion);
#undef AT

	c->congestion.at_hosts = true;
	if (!err && c->congestion.minimum > c->congestion.limit)
		return topology_scan_refuse(s, "minimum: it is above limit, %u", c->congestion.limit);
	return err;
}

/* "step=4/8": entry i is i * 4 / 8 of a packet's time. Otherwise "MULTIPLIER" or "MULTIPLIER/POWER-OF-TWO". */
static int take_entry(struct topology_scan *s, const struct topology_word *word, uint64_t *multiplier, unsigned *shift)
{
	static const char right[] = "N or N/M, N up to 16383 and M 1, 2, 4 or 8: packet times";
	const char *end = word->at + word->bytes, *at = num_parse_u64(word->at, end, multiplier);
	uint64_t by = 1;

	if (at && at < end && *at == '/')
		at = num_parse_u64(at + 1, end, &by);
	for (*shift = 0; *shift < 3 && UINT64_C(1) << *shift != by; ++*shift)
		;
	if (at != end || UINT64_C(1) << *shift != by || *multiplier > 0x3fff)
		return topology_scan_refuse(s, "congestion-table: an entry is %s", right);
	return 0;
}

int simulate_lines_congestion_table(struct topology_scan *s, struct simulate_scenario *c)
{
	struct simulate_congestion *g = &c->congestion;
	struct topology_word word;
	uint64_t multiplier;
	unsigned shift;
	int err;

	g->table_count = 0;
	if (topology_scan_word(s, &word) && word.bytes > 5 && !memcmp(word.at, "step=", 5)) {
		word = (struct topology_word){ word.at + 5, word.bytes - 5 };
		err = take_entry(s, &word, &multiplier, &shift);
		for (; !err && g->table_count < SIMULATE_TABLE_MAX; g->table_count++) {
			uint64_t entry = g->table_count * multiplier;

			g->table[g->table_count] = (uint16_t)((entry < 0x3fff ? entry : 0x3fff) | shift << 14);
		}
		return err ? err : simulate_words_end(s);
	}
	do {
		if (g->table_count == SIMULATE_TABLE_MAX)
			return topology_scan_refuse(s, "congestion-table: up to %d entries", SIMULATE_TABLE_MAX);
		err = take_entry(s, &word, &multiplier, &shift);
		if (err)
			return err;
		g->table[g->table_count++] = (uint16_t)(multiplier | shift << 14);
	} while (topology_scan_word(s, &word));
	return simulate_words_end(s);
}

/* "level N lane=N" */
int simulate_lines_level(struct topology_scan *s, struct simulate_scenario *c)
{
	static const struct simulate_key level = { "level", SIMULATE_COUNT, 0, 0, 15, NULL };
	static const struct simulate_key lane = { "lane", SIMULATE_LEVEL, 0, 0, 15, NULL };
	struct topology_word word;
	uint32_t number;
	int err;

	topology_scan_word(s, &word);
	err = simulate_words_value(s, &level, &word, &number);
	return err ? err : simulate_words_pairs(s, &lane, 1, &c->lane_of_level[number]);
}

static int take_weight(struct topology_scan *s, const struct topology_word *word, struct simulate_arbitration *a)
{
	const char *end = word->at + word->bytes;
	uint64_t lane, weight;
	const char *at = num_parse_u64(word->at, end, &lane);

	if (!at || at == end || *at != ':' || num_parse_u64(at + 1, end, &weight) != end || lane > 14 || weight > 255)
		return topology_scan_refuse(s, "arbitration: an entry is LANE:WEIGHT, 0 to 14 and 0 to 255 (of 64 bytes)");
	if (a->count == SIMULATE_ARBITRATION_MAX)
		return topology_scan_refuse(s, "arbitration: a table has up to %d entries", SIMULATE_ARBITRATION_MAX);
	a->entries[a->count++] = (struct simulate_weight){ (uint8_t)lane, (uint8_t)weight };
	return 0;
}

/* "arbitration low|high [at=NODE:PORT] LANE:WEIGHT..." */
int simulate_lines_arbitration(struct topology_scan *s, struct simulate_scenario *c)
{
	struct simulate_arbitration *more, *a;
	struct topology_word word, key, value;
	int err = 0;

	if (c->rule_count == SIMULATE_RULES_MAX)
		return topology_scan_refuse(s, "arbitration: a scenario has up to %d such lines", SIMULATE_RULES_MAX);
	more = realloc(c->rules, (c->rule_count + 1U) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->rules = more;
	a = &c->rules[c->rule_count++];
	*a = (struct simulate_arbitration){ .at.node = TOPOLOGY_NONE };
	topology_scan_word(s, &word);
	a->high = topology_word_is(&word, "high");
	if (!a->high && !topology_word_is(&word, "low"))
		return topology_scan_refuse(s, "arbitration: expected high or low");
	while (!err && topology_scan_word(s, &word)) {
		if (simulate_words_split(&word, &key, &value) && topology_word_is(&key, "at"))
			err = simulate_words_end_port(s, c->topology, &value, false, &a->at);
		else
			err = take_weight(s, &word, a);
	}
	return err ? err : simulate_words_end(s);
}

/* "fault TIME cut|join NODE:PORT" and "fault TIME bit-errors NODE:PORT RATE" */
int simulate_lines_fault(struct topology_scan *s, struct simulate_scenario *c)
{
	static const struct simulate_key at = { "fault", SIMULATE_TIME, 0, 0, SIMULATE_TIME_PS_MAX, NULL };
	struct simulate_fault *more, f = { .kind = SIMULATE_CUT };
	struct topology_word word;
	uint32_t i;
	int err;

	topology_scan_word(s, &word);
	err = simulate_words_value(s, &at, &word, &f.at_ps);
	if (err)
		return err;
	topology_scan_word(s, &word);
	if (topology_word_is(&word, "bit-errors"))
		f.kind = SIMULATE_BIT_ERRORS;
	else if (topology_word_is(&word, "join"))
		f.kind = SIMULATE_JOIN;
	else if (!topology_word_is(&word, "cut"))
		return topology_scan_refuse(s, "fault: expected cut, join or bit-errors");
	topology_scan_word(s, &word);
	err = simulate_words_end_port(s, c->topology, &word, false, &f.end);
	if (err)
		return err;
	if (f.kind == SIMULATE_BIT_ERRORS) {
		topology_scan_word(s, &word);
		if (topology_parse_error_rate(word.at, word.bytes, &f.rate))
			return topology_scan_refuse(s, "fault: expected a bit error rate from 0 to below 1, such as 1e-9");
	}
	if (c->fault_count == SIMULATE_FAULTS_MAX)
		return topology_scan_refuse(s, "fault: a scenario has up to %d faults", SIMULATE_FAULTS_MAX);
	more = realloc(c->faults, (c->fault_count + 1U) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->faults = more;
	for (i = c->fault_count++; i && more[i - 1].at_ps > f.at_ps; i--)
		more[i] = more[i - 1];
	more[i] = f;
	return simulate_words_end(s);
}
