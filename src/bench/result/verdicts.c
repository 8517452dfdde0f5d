/* SPDX-License-Identifier: BSD-2-Clause */
/* See verdicts.h. */
#include "bench/result/verdicts.h"

#include <errno.h>
#include <string.h>

#include "bench/result/number.h"
#include "bench/result/result.h"
#include "bench/result/shapes.h"
#include "bench/result/show.h"
#include "util/container_of.h"

#define SHOWN_MAX 3

/* Latencies in which a message passes from one processor to another; others, such as the time
 * until a call returns, may be shorter than any transfer. */
static const struct {
	const char *latency;
	double ways;
} crossing[] = {
	{ "t_lat", 1 }, { "t_lat_send", 1 }, { "t_rtt", 2 }, { "from_step", 1 },
	{ "from_plan", 1 },
};

static int mark(json_t *list, const struct result_read *c, const char *name, const char *unit,
		double value, double floor, const char *of)
{
	json_t *one = json_pack("{s:s, s:s, s:s, s:f, s:f, s:s}", "case", c->id, "value_of", name,
				"unit", unit, "value", value, "floor", floor, "floor_of", of);

	return json_array_append_new(list, one) ? -ENOMEM : 0;
}

static int mark_latencies(json_t *list, const struct result_read *c, double line_ns)
{
	const json_t *latencies = json_object_get(c->summary, "latencies");
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(crossing); i++) {
		double floor = crossing[i].ways * line_ns;
		double v = number_of(json_object_get(latencies, crossing[i].latency), "p50");

		if (v < floor)
			ret = mark(list, c, crossing[i].latency, "ns", v, floor,
				   "cacheline_oneway_ns");
	}
	return ret;
}

/* No payload can go through faster than the processor copies at best; inside of a cache it copies
 * several times as fast. */
static int mark_payload(json_t *list, const struct result_read *c, double copy_gbs)
{
	const json_t *figures = json_object_get(c->summary, "figures");
	double v = number_of(json_object_get(figures, "bandwidth"), "value") / 1e3;
	const char *unit = text_of(json_object_get(figures, "bandwidth"), "unit");

	if (strcmp(unit, "MB/s") || !(v > copy_gbs))
		return 0;
	return mark(list, c, "bandwidth", "GB/s", v, copy_gbs, "memcpy");
}

static double best_copy(const json_t *floor)
{
	static const char *const names[] = { "memcpy_4k_gbs", "memcpy_64k_gbs", "memcpy_1m_gbs" };
	double best = NAN;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		best = fmax(best, number_of(json_object_get(floor, names[i]), "best"));
	return best;
}

/* Values that are better than the machine's own floor: then the floor was measured while the
 * machine was slower than it can be, or what is called by that name is something else. */
static json_t *below_floor(const struct result_folder *f)
{
	const json_t *floor = json_object_get(f->machine, "floor");
	double line = number_of(json_object_get(floor, "cacheline_oneway_ns"), "best");
	double copy = best_copy(floor);
	json_t *list = json_array();
	int ret = list ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < f->count; i++) {
		ret = mark_latencies(list, &f->cases[i], line) ?:
		      mark_payload(list, &f->cases[i], copy);
	}
	return list;
}

json_t *verdicts_of(const struct result_folder *f)
{
	json_t *disturbance = json_object_get(f->run, "disturbance");
	json_t *shapes = shapes_evaluate(f->dir, disturbance, f->cases, f->count);

	return json_pack("{s:i, s:O?, s:o, s:o}", "layout", RESULT_LAYOUT, "disturbance",
			 disturbance, "shapes", shapes, "below_floor",
			 below_floor(f));
}

int verdicts_read(const char *dir, json_t **verdicts)
{
	struct result_folder f;
	int ret = result_folder_open(dir, &f);

	*verdicts = ret ? NULL : verdicts_of(&f);
	result_folder_close(&f);
	return ret ? ret : *verdicts ? 0 : -ENOMEM;
}

static const char *shown(const json_t *one, const char *key, char buf[32])
{
	double v = number_of(one, key);
	const char *unit = json_string_value(json_object_get(one, "unit"));

	if (!strcmp(unit, "ns"))
		return show_ns(v, buf);
	snprintf(buf, 32, "%.3g %s", v, unit);
	return buf;
}

void verdicts_print_doubts(FILE *f, const json_t *verdicts)
{
	const json_t *below = json_object_get(verdicts, "below_floor"), *one;
	const char *line = text_of(json_object_get(verdicts, "disturbance"), "line");
	char v[32], floor[32];
	size_t i;

	json_array_foreach(below, i, one) {
		if (i == SHOWN_MAX) {
			fprintf(f, "%zu more values are better than the floor\n",
				json_array_size(below) - i);
			break;
		}
		fprintf(f, "%s of %s, %s, is better than the machine's floor, %s: that was measured "
			"while the machine was slower\n",
			text_of(one, "value_of"), text_of(one, "case"), shown(one, "value", v),
			shown(one, "floor", floor));
	}
	if (*line)
		fprintf(f, "%s\n", line);
}
