/* SPDX-License-Identifier: BSD-2-Clause */
/* See program_output.h. */
#define LOG_ROOM "bench/program"
#include "bench/suite/program_output.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result/columns.h"
#include "bench/tune/tree.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

#define NUMBERS_MAX 12
#define TIMES_MAX 100000000

/* What one of the numbers of a line means. */
struct column {
	size_t at;
	const char *name, *label, *unit;
	double factor;
};

struct output {
	bool table;                 /* the heading was seen */
	double ns;                  /* of one unit of its times */
	double numbers[NUMBERS_MAX];
	size_t count;               /* numbers of the last line of the table */
	int64_t *values;
	size_t times, room;
};

size_t program_numbers(const char *line, double *values, size_t max)
{
	size_t count = 0;

	for (;;) {
		char *end;
		double v;

		while (isspace((unsigned char)*line))
			line++;
		if (!*line)
			return count;
		v = strtod(line, &end);
		if (end == line || (*end && !isspace((unsigned char)*end)))
			return 0;
		if (count < max)
			values[count++] = v;
		line = end;
	}
}

bool program_time(const char *line, double *us)
{
	unsigned long long index;
	int end = 0;

	return sscanf(line, " %llu, %lf %n", &index, us, &end) == 2 && end && !line[end] &&
	       isfinite(*us) && fabs(*us) < 1e12;
}

static int add_time(struct output *o, double time)
{
	if (o->times == TIMES_MAX || columns_make_room(&o->values, 1, o->times, &o->room))
		return -ENOMEM;
	o->values[o->times++] = llround(time * o->ns);
	return 0;
}

/* "#, cycles" of -C stands above the times; the heading says usec all the same. A cycle is one of
 * the counter that is our clock, too. */
static int read_unit(struct output *o)
{
	o->ns = 1e9 / (double)clock_state.tick_hz;
	if (clock_state.tsc)
		return 0;
	log_warn("cycles cannot be told in ns: the clock is %s", clock_source());
	return -EOPNOTSUPP;
}

static int read_line(struct output *o, const char *line)
{
	double us, numbers[NUMBERS_MAX];
	size_t n;

	if (!strncmp(line + strspn(line, " "), "#bytes", 6))
		o->table = true;
	if (!strncmp(line, "#, cycles", 9))
		return read_unit(o);
	if (!o->table)
		return 0;
	if (program_time(line, &us))
		return add_time(o, us);
	n = program_numbers(line, numbers, NUMBERS_MAX);
	if (n >= 4) {
		memcpy(o->numbers, numbers, sizeof(numbers));
		o->count = n;
	}
	return 0;
}

static int read_output(const char *path, struct output *o)
{
	FILE *f = fopen(path, "re");
	char line[1000];
	int ret = f ? 0 : -errno;

	o->ns = 1000;
	while (!ret && fgets(line, sizeof(line), f))
		ret = read_line(o, line);
	if (f)
		fclose(f);
	if (!ret && !o->count) {
		log_error("%s has no table of results", path);
		ret = -EBADMSG;
	} else if (ret && ret != -EOPNOTSUPP) {
		log_error("%s cannot be read: %s", path, strerror(-ret));
	}
	return ret;
}

/* `unit`: of what the line counts in the column's unit. */
static int add_figures(const double *numbers, size_t count, const struct column *columns,
		       size_t columns_count, double unit, struct result_case *c)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < columns_count; i++)
		if (columns[i].at < count)
			ret = result_case_figure(c, &(struct result_figure){
				columns[i].name, columns[i].label, columns[i].unit,
				numbers[columns[i].at] * columns[i].factor * unit });
	return ret;
}

/* A time is the difference of two columns; the program does not say when it began. */
static int add_rows(const struct output *o, struct result_case *c)
{
	int64_t *zero = calloc(o->times ? o->times : 1, sizeof(*zero));
	const struct result_column columns[] = { { "zero", "ns", zero },
						 { "time", "ns", o->values } };
	const struct result_latency latency = {
		"t_lat", "as the program prints it: half the round trip, of a READ all of it",
		"zero", "time" };
	int ret = zero ? result_case_rows(c, columns, 2, o->times, &latency, 1) : -ENOMEM;

	free(zero);
	return ret;
}

/* Times and figures of the programs of perftest; the first two columns are bytes and iterations. */
static int read_table(const char *path, const struct column *columns, size_t count, bool times,
		      struct result_case *c)
{
	struct output o = { .table = false };
	int ret = read_output(path, &o);

	if (!ret && times && o.times)
		ret = add_rows(&o, c);
	ret = ret ?: add_figures(o.numbers, o.count, columns, count, times ? o.ns : 1, c);
	free(o.values);
	return ret;
}

int program_read_latency(const char *path, struct result_case *c)
{
	static const struct column columns[] = {
		{ 2, "program_min", "the program's minimum", "ns", 1 },
		{ 3, "program_max", "the program's maximum", "ns", 1 },
		{ 4, "program_median", "the program's typical value", "ns", 1 },
		{ 5, "program_mean", "the program's mean", "ns", 1 },
		{ 6, "program_deviation", "the program's deviation", "ns", 1 },
		{ 7, "program_p99", "the program's 99 %", "ns", 1 },
		{ 8, "program_p99.9", "the program's 99.9 %", "ns", 1 },
	};

	return read_table(path, columns, ARRAY_SIZE(columns), true, c);
}

int program_read_bandwidth(const char *path, struct result_case *c)
{
	static const struct column columns[] = {
		{ 2, "bandwidth_peak", "largest bandwidth", "MiB/s", 1 },
		{ 3, "bandwidth", "bandwidth", "MiB/s", 1 },
		{ 4, "message_rate", "messages a second", "1/s", 1e6 },
	};

	return read_table(path, columns, ARRAY_SIZE(columns), false, c);
}

/* What follows `word` in the last line that has it. */
static bool last_line(const char *path, const char *word, char rest[1000])
{
	char *text = NULL, *last = NULL;

	tune_tree_read(&tune_here, path, &text);
	for (char *at = text; at && (at = strstr(at, word));)
		last = at += strlen(word);
	if (last)
		snprintf(rest, 1000, "%.*s", (int)strcspn(last, "\n"), last);
	free(text);
	return last;
}

static int no_line(const char *path)
{
	return log_fail(-EBADMSG, "%s has no line of results", path);
}

/* A pingpong of ibverbs-utils: "1000 iters in 0.01 seconds = 12.34 usec/iter", and an iteration
 * is a round trip. */
int program_read_pingpong(const char *path, struct result_case *c)
{
	char rest[1000];
	double us;

	if (!last_line(path, " iters in ", rest) ||
	    sscanf(rest, "%*f seconds = %lf usec/iter", &us) != 1 || !isfinite(us))
		return no_line(path);
	return result_case_figure(c, &(struct result_figure){
		"program_mean", "the program's mean, half a round trip", "ns", us * 1000 / 2 });
}

/* "Final: 200000 0.154 0.156 0.156 0.4 0.4 6.4e6 6.4e6": messages; the median, the last mean and
 * the mean of microseconds; MiB a second and messages a second, each since the last report and of
 * the whole. A test of bandwidth has the time of a call in the place of that of one way. */
int program_read_ucx(const char *path, bool rate, struct result_case *c)
{
	static const struct column columns[] = {
		{ 1, "program_median", "the program's median", "ns", 1000 },
		{ 2, "program_mean", "the program's mean", "ns", 1000 },
		{ 5, "bandwidth", "bandwidth", "MiB/s", 1 },
		{ 7, "message_rate", "messages a second", "1/s", 1 },
	};
	char rest[1000];
	double v[8];
	size_t count = last_line(path, "Final:", rest) ? program_numbers(rest, v, ARRAY_SIZE(v)) : 0;

	if (count < (rate ? 8 : 3))
		return no_line(path);
	return add_figures(v, count, columns + (rate ? 2 : 0), 2, 1, c);
}
