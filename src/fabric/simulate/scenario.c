/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads scenarios; see scenario.h. This file knows the lines of one value, and what fits together. */
#include "fabric/simulate/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/simulate/lines.h"
#include "fabric/topology/generate.h"
#include "fabric/topology/say.h"
#include "util/text_file.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define AT(member) offsetof(struct simulate_scenario, member)

static const struct simulate_key values[] = {
	{ "lanes", SIMULATE_COUNT, AT(lanes), 1, 15, NULL },
	{ "high-limit", SIMULATE_COUNT, AT(high_limit), 0, 255, NULL },
	{ "buffer", SIMULATE_SIZE, AT(buffer_bytes), 4096, 64u << 20, NULL },
	{ "mtu", SIMULATE_COUNT, AT(mtu), 256, 4096, NULL },
	{ "hoq-life", SIMULATE_COUNT, AT(hoq_life), 0, 20, NULL },
	{ "seed", SIMULATE_LARGE, AT(seed), 0, UINT64_MAX, NULL },
	{ "duration", SIMULATE_TIME, AT(duration_ps), 1, SIMULATE_TIME_PS_MAX, NULL },
	{ "measure-from", SIMULATE_TIME, AT(measure_from_ps), 0, SIMULATE_TIME_PS_MAX, NULL },
	{ "sample", SIMULATE_TIME, AT(sample_ps), 100000, SIMULATE_TIME_PS_MAX, NULL },
	{ "deadlock-after", SIMULATE_TIME, AT(still_ps), 1000, SIMULATE_TIME_PS_MAX, NULL },
	{ "deadlock", SIMULATE_CHOICE, AT(goes_on), 0, 0, "stop|go-on" },
};

static const struct {
	struct simulate_key key;
	int (*take)(struct topology_scan *s, struct simulate_scenario *c);
} lines[] = {
	{ { .name = "switch" }, simulate_lines_switch },
	{ { .name = "level" }, simulate_lines_level },
	{ { .name = "arbitration" }, simulate_lines_arbitration },
	{ { .name = "congestion-switch" }, simulate_lines_congestion_switch },
	{ { .name = "congestion-host" }, simulate_lines_congestion_host },
	{ { .name = "congestion-table" }, simulate_lines_congestion_table },
	{ { .name = "traffic" }, simulate_lines_traffic },
	{ { .name = "fault" }, simulate_lines_fault },
	{ { .name = "expect" }, simulate_lines_expect },
};

/* Each word that a line may begin with, for the search of the nearest. */
static const char *const others[] = { "title", "topology", "routing" };

static const char *const routings[] = {
	[SIMULATE_MIN_HOP] = "min-hop", [SIMULATE_UP_DOWN] = "up-down", [SIMULATE_LASH] = "lash",
	[SIMULATE_DFSSSP] = "dfsssp",
};

const char *simulate_routing_name(enum simulate_routing routing)
{
	return routings[routing];
}

/* ---- lines ---- */

static int take_title(struct topology_scan *s, struct simulate_scenario *c)
{
	struct topology_word text;

	topology_scan_blanks(s);
	text = (struct topology_word){ s->at, (size_t)(s->end - s->at) };
	while (text.bytes && strchr(" \t\r", text.at[text.bytes - 1]))
		text.bytes--;
	if (!text.bytes || text.bytes > SIMULATE_TITLE_MAX)
		return topology_scan_refuse(s, "title: expected a text of up to %d bytes", SIMULATE_TITLE_MAX);
	topology_word_text(&text, c->title, sizeof(c->title));
	return 0;
}

static int take_routing(struct topology_scan *s, struct simulate_scenario *c)
{
	struct topology_word word;

	topology_scan_word(s, &word);
	for (unsigned i = 0; i < COUNT(routings); i++)
		if (topology_word_is(&word, routings[i])) {
			c->routing = (enum simulate_routing)i;
			return simulate_words_end(s);
		}
	return topology_scan_refuse(s, "routing: expected min-hop, up-down, lash or dfsssp");
}

static int read_topology(struct topology_scan *s, struct simulate_scenario *c, const char *folder)
{
	char why[300] = "", path[1024];
	const char *name = c->topology_name;
	int err, n;

	/* Files are names with a dot or a slash; families have neither before their colon. */
	if (strcspn(name, "./") > strcspn(name, ":")) {
		err = topology_generate(name, &c->topology, why, sizeof(why));
	} else if (!folder) {
		return topology_scan_refuse(s, "topology: files are not read here, only families such as ring:8");
	} else {
		n = snprintf(path, sizeof(path), "%s%s%s", *name == '/' ? "" : folder, *name == '/' ? "" : "/", name);
		if (n < 0 || (size_t)n >= sizeof(path))
			return topology_scan_refuse(s, "topology: the path is too long");
		err = topology_read_file(path, &c->topology, why, sizeof(why));
	}
	if (!err)
		err = topology_check_connected(c->topology, why, sizeof(why));
	if (err)
		topology_scan_refuse(s, "topology: %s", *why ? why : strerror(-err));
	return err;
}

static int take_topology(struct topology_scan *s, struct simulate_scenario *c, const char *folder)
{
	struct topology_word word;
	int err;

	if (c->topology)
		return topology_scan_refuse(s, "topology: it stands in an earlier line already");
	if (!topology_scan_word(s, &word) || word.bytes >= sizeof(c->topology_name))
		return topology_scan_refuse(s, "topology: expected a file, or a family such as ring:8");
	topology_word_text(&word, c->topology_name, sizeof(c->topology_name));
	err = simulate_words_end(s);
	return err ? err : read_topology(s, c, folder);
}

static int refuse_key(struct topology_scan *s, const struct topology_word *word)
{
	struct simulate_key known[COUNT(values) + COUNT(lines) + COUNT(others)];
	const struct simulate_key *found;
	unsigned count = 0;

	memcpy(known, values, sizeof(values));
	count = COUNT(values);
	for (unsigned i = 0; i < COUNT(lines); i++)
		known[count++] = lines[i].key;
	for (unsigned i = 0; i < COUNT(others); i++)
		known[count++] = (struct simulate_key){ .name = others[i] };
	return simulate_words_find(s, word, known, count, &found);
}

static int take_line(struct topology_scan *s, struct simulate_scenario *c, const char *folder)
{
	struct topology_word key, value;

	if (!topology_scan_word(s, &key))
		return 0;
	if (topology_word_is(&key, "title"))
		return take_title(s, c);
	if (topology_word_is(&key, "topology"))
		return take_topology(s, c, folder);
	if (topology_word_is(&key, "routing"))
		return take_routing(s, c);
	for (unsigned i = 0; i < COUNT(values); i++)
		if (topology_word_is(&key, values[i].name)) {
			int err;

			c->value_lines[i] = s->line;
			topology_scan_word(s, &value);
			err = simulate_words_value(s, &values[i], &value, (char *)c + values[i].offset);
			return err ? err : simulate_words_end(s);
		}
	for (unsigned i = 0; i < COUNT(lines); i++)
		if (topology_word_is(&key, lines[i].key.name))
			return c->topology ? lines[i].take(s, c) :
			       topology_scan_refuse(s, "%s: the line 'topology' has to stand before it",
						    lines[i].key.name);
	return refuse_key(s, &key);
}

/* ---- what fits together ---- */

static int check_traffic(struct topology_scan *s, struct simulate_scenario *c, struct simulate_traffic *f)
{
	s->line = f->line;
	if (f->packet_bytes > c->mtu)
		return topology_scan_refuse(s, "packet: %u bytes are more than the mtu, %u", f->packet_bytes, c->mtu);
	if (c->routing >= SIMULATE_LASH && f->sl)
		return topology_scan_refuse(s, "sl: with lash and dfsssp the layer of the path is the service level");
	if (!c->duration_ps && !f->messages && f->stop_ps == UINT64_MAX)
		return topology_scan_refuse(s, "traffic '%s' never ends: give duration, or stop= or messages= here", f->name);
	if (!f->packet_bytes)
		f->packet_bytes = f->message_bytes < c->mtu ? f->message_bytes : c->mtu;
	return 0;
}

/* Messages name the line of the value of that name, if there is one. */
static void point_at(struct topology_scan *s, const struct simulate_scenario *c, const char *name)
{
	for (unsigned i = 0; i < COUNT(values); i++)
		if (!strcmp(values[i].name, name) && c->value_lines[i])
			s->line = c->value_lines[i];
}

static int check_lanes(struct topology_scan *s, struct simulate_scenario *c)
{
	point_at(s, c, "lanes");
	if ((c->lanes & (c->lanes - 1)) && c->lanes != 15)
		return topology_scan_refuse(s, "lanes: a port has 1, 2, 4, 8 or 15");
	for (unsigned i = 0; i < 16; i++) {
		if (c->lane_of_level[i] == UINT8_MAX)
			c->lane_of_level[i] = (uint8_t)(i % c->lanes);
		else if (c->lane_of_level[i] >= c->lanes)
			return topology_scan_refuse(s, "level %u: there are lanes 0 to %u", i, c->lanes - 1);
	}
	return 0;
}

static int check(struct topology_scan *s, struct simulate_scenario *c)
{
	if (!s->line)
		s->line = 1;
	if (!c->topology || !c->traffic_count)
		return topology_scan_refuse(s, "%s is missing: a scenario has a line 'topology' and lines 'traffic'",
					    c->topology ? "traffic" : "topology");
	point_at(s, c, "mtu");
	if (c->mtu & (c->mtu - 1))
		return topology_scan_refuse(s, "mtu: it is 256, 512, 1024, 2048 or 4096");
	point_at(s, c, "buffer");
	if (c->buffer_bytes < c->mtu + 128)
		return topology_scan_refuse(s, "buffer: it has to take a packet of the mtu with its headers, %u bytes",
					    c->mtu + 128);
	if (check_lanes(s, c))
		return -EINVAL;
	point_at(s, c, "measure-from");
	if (c->duration_ps && c->measure_from_ps >= c->duration_ps)
		return topology_scan_refuse(s, "measure-from: it is not before the end, duration");
	for (uint32_t i = 0; i < c->traffic_count; i++) {
		int err = check_traffic(s, c, &c->traffic[i]);

		if (err)
			return err;
	}
	return 0;
}

static struct simulate_scenario *new_scenario(void)
{
	struct simulate_scenario *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->lanes = 1;
	c->high_limit = 255;
	c->buffer_bytes = 32768;
	c->mtu = 4096;
	c->hoq_life = 20;
	c->latency_ps = 200000;
	c->seed = 1;
	c->still_ps = UINT64_C(50000000);
	memset(c->lane_of_level, 0xff, sizeof(c->lane_of_level));
	c->congestion.increase = 1;
	c->congestion.trigger = 2;
	c->congestion.limit = 127;
	c->congestion.timer = 150;
	return c;
}

int simulate_scenario_read(const char *text, size_t bytes, const char *name, const char *folder,
			   struct simulate_scenario **to, char *why, size_t why_bytes)
{
	struct topology_scan s = { .file = name, .why = why, .why_bytes = why_bytes };
	struct simulate_scenario *c = new_scenario();
	const char *at = text, *end = text + bytes;
	int err = c ? 0 : -ENOMEM;

	if (why_bytes)
		*why = '\0';
	while (!err && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		s.at = at;
		s.end = newline ? newline : end;
		s.line++;
		at = s.end + 1;
		err = take_line(&s, c, folder);
	}
	if (!err)
		err = check(&s, c);
	if (!err) {
		*to = c;
		return 0;
	}
	simulate_scenario_free(c);
	return why_bytes && *why ? err : topology_say(why, why_bytes, err, "%s: %s", name, strerror(-err));
}

int simulate_scenario_read_file(const char *path, struct simulate_scenario **s, char *why, size_t why_bytes)
{
	const char *slash = strrchr(path, '/');
	char reason[300] = "", folder[1024];
	size_t bytes;
	char *text;
	int err;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	text = text_file_read(path, SIMULATE_TEXT_MAX, &bytes, reason, sizeof(reason));
	if (!text)
		return topology_say(why, why_bytes, -ENOENT, "%s: %s", path, reason);
	err = simulate_scenario_read(text, bytes, path, folder, s, why, why_bytes);
	free(text);
	return err;
}

void simulate_scenario_free(struct simulate_scenario *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->traffic_count; i++) {
		free(s->traffic[i].sources);
		free(s->traffic[i].targets);
	}
	free(s->traffic);
	free(s->faults);
	free(s->expect);
	free(s->rules);
	topology_free(s->topology);
	free(s);
}
