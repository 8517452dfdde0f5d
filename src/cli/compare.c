/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar compare` (villas-compare): compares files sample by sample; the exit status
 * says what differs in the first sample that differs. `busbar delivery`, in contrast,
 * matches samples by sequence number and reports losses.
 */
#define LOG_ROOM "compare"
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool_stream.h"
#include "gateway/sample/signals.h"
#include "gateway/sample/time.h"
#include "util/log.h"
#include "util/options.h"

enum difference {
	EQUAL,
	DIFFERENT_LENGTH,
	DIFFERENT_SEQUENCE,
	DIFFERENT_TIME,
	DIFFERENT_COUNT,
	DIFFERENT_VALUES,
	NOT_COMPARED, /* a status of its own, so that it is not taken for a result */
};

struct settings {
	const char *format;
	struct signal_list *signals;
	double epsilon;
	bool ignore_values, ignore_times, ignore_sequence, strict;
	char *const *paths;
	unsigned count;
};

struct side {
	struct tool_format format;
	struct tool_input in;
	struct sample *smps[TOOL_BATCH];
	unsigned at, have;
	bool open;
};

static bool numbers_differ(double a, double b, double epsilon)
{
	if (isnan(a) || isnan(b))
		return isnan(a) != isnan(b);
	/* a != b comes first, because the difference of equal infinities is NaN. */
	return a != b && !(fabs(a - b) <= epsilon);
}

static bool values_differ(enum signal_type type, const union signal_data *a,
			  const union signal_data *b, double epsilon)
{
	switch (type) {
	case SIGNAL_INTEGER:
	case SIGNAL_BOOLEAN:
		return a->i != b->i;
	case SIGNAL_COMPLEX:
		return numbers_differ((double)a->z.re, (double)b->z.re, epsilon) ||
		       numbers_differ((double)a->z.im, (double)b->z.im, epsilon);
	case SIGNAL_FLOAT:
		break;
	}
	return numbers_differ(a->f, b->f, epsilon);
}

/*
 * Without `strict` only a later time in the second file is a difference. Scripts compare
 * sent samples with received ones and rely on that.
 */
static bool times_differ(const struct sample *a, const struct sample *b,
			 double epsilon, bool strict)
{
	double later = (double)sample_time_since_ns(b->origin, a->origin) * 1e-9;

	return (strict ? fabs(later) : later) > epsilon;
}

/* Does exactly one of the two samples have the member that `flag` stands for? */
static bool only_one(const struct sample *a, const struct sample *b,
		     unsigned flag)
{
	return (a->flags ^ b->flags) & flag;
}

static enum difference compare_samples(const struct sample *a,
				       const struct sample *b,
				       const struct settings *s, unsigned *index)
{
	if (!s->ignore_sequence &&
	    (only_one(a, b, SAMPLE_HAS_SEQUENCE) ||
	     (a->flags & SAMPLE_HAS_SEQUENCE && a->sequence != b->sequence)))
		return DIFFERENT_SEQUENCE;
	if (!s->ignore_times &&
	    (only_one(a, b, SAMPLE_HAS_ORIGIN) ||
	     (a->flags & SAMPLE_HAS_ORIGIN &&
	      times_differ(a, b, s->epsilon, s->strict))))
		return DIFFERENT_TIME;
	if (s->ignore_values)
		return EQUAL;
	if (a->length != b->length)
		return DIFFERENT_COUNT;
	for (unsigned i = 0; i < a->length; i++) {
		enum signal_type type = s->signals && i < s->signals->count ?
			s->signals->signals[i].type : SIGNAL_FLOAT;

		*index = i;
		if (values_differ(type, &a->data[i], &b->data[i], s->epsilon))
			return DIFFERENT_VALUES;
	}
	return EQUAL;
}

/* Prints both samples in the format villas.human, which shows every bit. */
static void print_pair(char **argv, const struct sample *a, const char *a_name,
		       const struct sample *b, const char *b_name,
		       const struct settings *s)
{
	const struct sample *both[] = { a, b };
	const char *names[] = { a_name, b_name };
	struct tool_format f;
	char line[512];

	if (tool_format_open(&f, argv, 'f', "villas.human", s->signals))
		return;
	for (unsigned i = 0; i < 2; i++) {
		struct sample *smp = (struct sample *)both[i];
		size_t used;

		if (f.format->type->print(f.format, line, sizeof(line), &used,
					  &smp, 1) == 1)
			printf("  %s: %.*s", names[i], (int)used, line);
		else
			printf("  %s: %u values\n", names[i], smp->length);
	}
	tool_format_close(&f);
}

static void tell(char **argv, const struct side *a, const struct side *b,
		 const struct settings *s, enum difference d, uint64_t position,
		 unsigned index)
{
	static const char *const what[] = {
		[DIFFERENT_SEQUENCE] = "sequence numbers differ",
		[DIFFERENT_TIME] = "timestamps differ",
		[DIFFERENT_COUNT] = "the numbers of values differ",
	};

	if (d == DIFFERENT_VALUES)
		printf("sample %ju: value %u differs\n", (uintmax_t)position,
		       index);
	else
		printf("sample %ju: %s\n", (uintmax_t)position, what[d]);
	print_pair(argv, a->smps[a->at], a->in.name, b->smps[b->at], b->in.name,
		   s);
}

/* The next sample of a file. 1, 0 at its end, or a negative errno. */
static int advance(struct side *side)
{
	int ret;

	if (side->at < side->have)
		return 1;
	ret = tool_input_next(&side->in, side->smps, TOOL_BATCH);
	side->at = 0;
	side->have = ret > 0 ? (unsigned)ret : 0;
	return ret > 0 ? 1 : ret;
}

static enum difference compare(char **argv, struct side *sides,
			       const struct settings *s)
{
	for (uint64_t position = 0;; position++) {
		unsigned ended = 0, first_end = 0, index = 0;

		for (unsigned i = 0; i < s->count; i++) {
			int ret = advance(&sides[i]);

			if (ret < 0)
				return NOT_COMPARED;
			if (!ret && !ended++)
				first_end = i;
		}
		if (ended == s->count)
			return EQUAL;
		if (ended) {
			printf("%s has %ju samples, others have more\n",
			       sides[first_end].in.name, (uintmax_t)position);
			return DIFFERENT_LENGTH;
		}
		for (unsigned i = 1; i < s->count; i++) {
			struct side *a = &sides[0], *b = &sides[i];
			enum difference d = compare_samples(a->smps[a->at],
				b->smps[b->at], s, &index);

			if (d == EQUAL)
				continue;
			tell(argv, a, b, s, d, position, index);
			return d;
		}
		for (unsigned i = 0; i < s->count; i++)
			sides[i].at++;
	}
}

static int open_side(char **argv, struct side *side, const struct settings *s,
		     const char *path, struct pool *pool)
{
	if (tool_format_open(&side->format, argv, 'f', s->format, s->signals) ||
	    !tool_format_can_scan(argv, &side->format) ||
	    tool_input_open(&side->in, path, side->format.format))
		return -1;
	side->open = true;
	sample_alloc_many(pool, side->smps, TOOL_BATCH);
	return 0;
}

static enum difference run(char **argv, const struct settings *s)
{
	struct side *sides = calloc(s->count, sizeof(*sides));
	enum difference result = NOT_COMPARED;
	struct pool pool;
	bool all_open = true;

	if (!sides || pool_init(&pool, s->count * TOOL_BATCH, SIGNALS_MAX,
				&tool_memory)) {
		log_error("no memory for samples");
		free(sides);
		return NOT_COMPARED;
	}
	for (unsigned i = 0; i < s->count && all_open; i++)
		all_open = !open_side(argv, &sides[i], s, s->paths[i], &pool);
	if (all_open && !tool_catch_signals())
		result = compare(argv, sides, s);
	for (unsigned i = 0; i < s->count; i++) {
		if (sides[i].open) {
			sample_put_many(sides[i].smps, TOOL_BATCH);
			tool_input_close(&sides[i].in);
		}
		tool_format_close(&sides[i].format);
	}
	pool_destroy(&pool);
	free(sides);
	return result;
}

static const struct option_entry table[] = {
	{ "-e EPS: numbers may differ by EPS, and times of other files may be later than those of the first by "
		    "EPS seconds (1e-6)", OPTION_REAL(struct settings, epsilon, 0, 1e300) },
	{ "-S: strict: nor may times of other files be earlier by more than EPS",
	  OPTION_FLAG(struct settings, strict) },
	{ "-v: do not compare values", OPTION_FLAG(struct settings, ignore_values) },
	{ "-T: do not compare timestamps", OPTION_FLAG(struct settings, ignore_times) },
	{ "-s: do not compare sequence numbers", OPTION_FLAG(struct settings, ignore_sequence) },
	{ "-f FMT: format of all files, a name or {\"type\": ..., ...} (villas.human)",
	  OPTION_TEXT(struct settings, format) },
	{ "-t DT: types of the values, such as 12f3i (floats, as many as there are)",
	  OPTION_TAKE(struct settings, signals, tool_take_types) },
	TOOL_OPTIONS,
};

static const struct options options = {
	.synopsis = "[OPTIONS] FILE FILE...",
	.about = "Compares files sample by sample with the first one; '-' is standard input.\n"
		 "\n"
		 "Exit status: 0 equal; else what differs in the first sample that differs:\n"
		 "1 the number of samples, 2 sequence, 3 timestamp, 4 number of values, 5 values;\n"
		 "6 the files could not be compared.\n",
	.table = table,
	.operands_min = 2,
	.any_operands = true,
};

static bool take_paths(char *const *paths, int count, struct settings *s)
{
	unsigned streams = 0;

	s->paths = paths;
	s->count = (unsigned)count;
	for (unsigned i = 0; i < s->count; i++)
		streams += !strcmp(paths[i], "-");
	return streams <= 1;
}

int cli_compare(int argc, char **argv)
{
	struct settings s = { .format = "villas.human", .epsilon = 1e-6 };
	int status;

	tool_begin(argv);
	status = options_parse(&options, argc, argv, &s, NULL);
	if (status > 0)
		status = NOT_COMPARED;
	if (status < 0 && !take_paths(argv + optind, argc - optind, &s)) {
		options_wrong(&options, argv, "standard input cannot be compared with itself");
		status = NOT_COMPARED;
	}
	if (status < 0)
		status = (int)run(argv, &s);
	signal_list_put(s.signals);
	return status;
}
