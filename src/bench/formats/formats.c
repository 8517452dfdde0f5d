/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar bench formats`: how fast each format of the registry writes and reads samples in memory,
 * in the processor time of one thread, and as a ratio to memcpy() of the same bytes in the same run.
 * Files, nodes and paths are not measured.
 */
#define LOG_ROOM "bench/formats"
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/kind/command.h"
#include "gateway/base/memory.h"
#include "gateway/plugin/format.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/options.h"

#define SAMPLES 512
/* Largest size of a value in any format, and of the rest of a sample. */
#define VALUE_BYTES_MAX 260
#define SAMPLE_BYTES_MAX 400
#define ROUNDS 5

struct settings {
	unsigned values;
	double seconds; /* per format and direction */
	bool json;
	char **names;   /* of formats; none: all */
	int name_count;
};

struct bench {
	struct pool pool;
	struct signal_list *signals;
	struct sample *in[SAMPLES], *out[SAMPLES];
	char *buf, *copy;
	size_t size;
	double memcpy_mb; /* MB/s */
};

struct result {
	double write_s, read_s; /* samples per second; 0: the format cannot do it */
	double bytes;           /* per sample */
};

/* ---- json by the library jansson alone, which makes a tree of each sample ---- */

static json_t *tree_of(const struct sample *s)
{
	json_t *data = json_array();

	for (unsigned i = 0; i < s->length; i++)
		json_array_append_new(data, json_real(s->data[i].f));
	return json_pack("{s{s[II]s[II]}sIso}", "ts", "origin",
			 (json_int_t)s->origin.tv_sec, (json_int_t)s->origin.tv_nsec,
			 "received", (json_int_t)s->received.tv_sec,
			 (json_int_t)s->received.tv_nsec, "sequence",
			 (json_int_t)s->sequence, "data", data);
}

static int jansson_print(struct format *f, char *buf, size_t size, size_t *used,
			 struct sample *const smps[], unsigned cnt)
{
	unsigned i;

	*used = 0;
	for (i = 0; i < cnt; i++) {
		json_t *tree = tree_of(smps[i]);
		size_t need = json_dumpb(tree, buf + *used, size - *used, 0);

		json_decref(tree);
		if (!need || need + 1 > size - *used)
			break;
		*used += need;
		buf[(*used)++] = '\n';
	}
	return (int)i;
}

static int jansson_take(const char *at, size_t len, struct sample *s)
{
	json_int_t origin[2], received[2], sequence;
	json_t *tree = json_loadb(at, len, 0, NULL), *data, *v;
	size_t i;
	int ret = json_unpack(tree, "{s{s[II]s[II]}sIso}", "ts", "origin",
			      &origin[0], &origin[1], "received", &received[0],
			      &received[1], "sequence", &sequence, "data", &data);

	if (!ret) {
		s->origin = (struct timespec){ origin[0], origin[1] };
		s->received = (struct timespec){ received[0], received[1] };
		s->sequence = (uint64_t)sequence;
		s->length = 0;
		json_array_foreach(data, i, v)
			if (i < s->capacity)
				s->data[s->length++].f = json_number_value(v);
	}
	json_decref(tree);
	return ret ? -EBADMSG : 0;
}

static int jansson_scan(struct format *f, const char *buf, size_t len, size_t *used,
			struct sample *smps[], unsigned cnt)
{
	unsigned i;

	*used = 0;
	for (i = 0; i < cnt; i++) {
		const char *end = memchr(buf + *used, '\n', len - *used);

		if (!end || jansson_take(buf + *used, (size_t)(end - buf) - *used, smps[i]))
			break;
		*used = (size_t)(end - buf) + 1;
	}
	return (int)i;
}

static const struct format_type jansson = {
	.name = "jansson",
	.description = "json by the library jansson alone",
	.lines = true,
	.carries.types = FORMAT_TYPE(SIGNAL_FLOAT),
	.print = jansson_print,
	.scan = jansson_scan,
};

/* ---- measuring ---- */

/* Processor time of this thread: other threads and processes do not count. */
static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)timespec_to_ns(t) * 1e-9;
}

/* Values as of a measured signal, with full mantissas. */
static void fill(struct bench *b, unsigned values)
{
	for (unsigned i = 0; i < SAMPLES; i++) {
		struct sample *s = b->in[i];

		s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
			   SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA;
		s->signals = b->signals;
		s->sequence = 1000000 + i;
		s->origin = (struct timespec){ 1700000000, 123456789 + 1000 * i };
		s->received = (struct timespec){ 1700000000, 123468789 + 1000 * i };
		s->length = values;
		for (unsigned k = 0; k < values; k++)
			s->data[k].f = 325.27 * sin(0.001 * i + 0.7 * k);
	}
}

static int prepare(struct bench *b, unsigned values)
{
	memset(b, 0, sizeof(*b));
	b->signals = signal_list_new(values, SIGNAL_FLOAT);
	b->size = SAMPLES * (SAMPLE_BYTES_MAX + (size_t)values * VALUE_BYTES_MAX);
	b->buf = malloc(b->size);
	b->copy = malloc(b->size);
	if (!b->signals || !b->buf || !b->copy ||
	    pool_init(&b->pool, 2 * SAMPLES, values, &memory_heap))
		return -ENOMEM;
	sample_alloc_many(&b->pool, b->in, SAMPLES);
	sample_alloc_many(&b->pool, b->out, SAMPLES);
	fill(b, values);
	memset(b->buf, 1, b->size);
	memset(b->copy, 1, b->size);
	return 0;
}

static void clean_up(struct bench *b)
{
	if (b->pool.block) {
		sample_put_many(b->in, SAMPLES);
		sample_put_many(b->out, SAMPLES);
		pool_destroy(&b->pool);
	}
	signal_list_put(b->signals);
	free(b->buf);
	free(b->copy);
}

/* The best round counts, because the others were disturbed. */
static double measure_copy(struct bench *b, size_t bytes, double seconds)
{
	double best = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		double begin = cpu_s(), now;
		uint64_t n = 0;

		do {
			memcpy(b->copy, b->buf, bytes);
		/* Otherwise the compiler could remove the copy. */
			__asm__ volatile("" : : "r"(b->copy) : "memory");
			n++;
			now = cpu_s();
		} while (now - begin < seconds / ROUNDS);
		best = MAX(best, (double)n * (double)bytes / (now - begin) / 1e6);
	}
	return best;
}

static int print_all(struct bench *b, struct format *f, size_t *used)
{
	int n = f->type->print(f, b->buf, b->size, used, b->in, SAMPLES);

	return n == SAMPLES ? 0 : -EIO;
}

static int scan_all(struct bench *b, struct format *f, size_t bytes)
{
	size_t pos = 0, used;
	unsigned n = 0;

	while (n < SAMPLES) {
		int ret = f->type->scan(f, b->buf + pos, bytes - pos, &used,
					b->out + n, SAMPLES - n);

		if (ret <= 0)
			return -EIO;
		pos += used;
		n += (unsigned)ret;
	}
	return 0;
}

static int measure(struct bench *b, struct format *f, double seconds,
		   struct result *r)
{
	size_t bytes;
	int ret = print_all(b, f, &bytes);

	if (ret)
		return ret;
	r->bytes = (double)bytes / SAMPLES;
	for (unsigned round = 0; round < 2 * ROUNDS; round++) {
		bool reading = round % 2;
		double begin = cpu_s(), now, *best = reading ? &r->read_s : &r->write_s;
		uint64_t n = 0;

		do {
			ret = reading ? scan_all(b, f, bytes) :
					print_all(b, f, &bytes);
			if (ret)
				return ret;
			n += SAMPLES;
			now = cpu_s();
		} while (now - begin < seconds / ROUNDS);
		*best = MAX(*best, (double)n / (now - begin));
	}
	return 0;
}

static void print_result(const struct settings *s, const struct bench *b,
			 const char *name, const struct result *r, bool first)
{
	double write_mb = r->write_s * r->bytes / 1e6;
	double read_mb = r->read_s * r->bytes / 1e6;

	if (s->json)
		printf("%s\n  \"%s\": {\"write_samples_per_s\": %.0f, \"read_samples_per_s\": %.0f, \"bytes_per_sample\": %.1f, \"write_mb_per_s\": %.1f, \"read_mb_per_s\": %.1f, \"memcpy_mb_per_s\": %.0f}",
		       first ? "" : ",", name, r->write_s, r->read_s, r->bytes,
		       write_mb, read_mb, b->memcpy_mb);
	else
		printf("%-14s %8.1f %12.0f %9.1f %8.1f %12.0f %9.1f %8.1f\n", name,
		       r->bytes, r->write_s, write_mb, b->memcpy_mb / write_mb,
		       r->read_s, read_mb, b->memcpy_mb / read_mb);
	fflush(stdout);
}

static bool is_wanted(const struct settings *s, const char *name)
{
	bool wanted = !s->name_count;

	for (int i = 0; i < s->name_count; i++)
		wanted |= !strcmp(s->names[i], name);
	return wanted;
}

/* Measures one format. 0 also for a format that is no plain stream (comtrade). */
static int run_one(const struct settings *s, struct bench *b, const char *name,
		   bool *first)
{
	const struct format_type *type = format_type_find(name);
	struct result r = { 0 };
	struct format *f;
	int ret;

	/* comtrade declares no types. */
	if (!type || !type->print || !type->scan ||
	    !(type->carries.types & FORMAT_TYPE(SIGNAL_FLOAT)))
		return 0;
	ret = format_new(&f, NULL, NULL, name, b->signals);
	if (ret)
		return ret;
	ret = measure(b, f, s->seconds, &r);
	if (ret)
		log_error("%s cannot be measured: %s", name, format_error(f));
	b->memcpy_mb = measure_copy(b, (size_t)(r.bytes * SAMPLES),
				    MIN(s->seconds, 0.05));
	format_destroy(f);
	if (!ret)
		print_result(s, b, name, &r, *first);
	*first = false;
	return ret;
}

static int run(const struct settings *s, struct bench *b)
{
	bool first = true;
	int ret = 0;

	if (!s->json)
		printf("%u values per sample; samples and MB per second of processor time of one thread; "
		       "xcopy: how many times memcpy() of the same bytes is faster\n"
		       "%-14s %8s %12s %9s %8s %12s %9s %8s\n", s->values,
		       "format", "bytes", "written/s", "MB/s", "xcopy",
		       "read/s", "MB/s", "xcopy");
	else
		printf("{\"values\": %u, \"formats\": {", s->values);
	for (const struct plugin *p = format_plugins; p->name && !ret; p++)
		if (is_wanted(s, p->name))
			ret = run_one(s, b, p->name, &first);
	if (!ret && is_wanted(s, jansson.name))
		ret = run_one(s, b, jansson.name, &first);
	if (s->json)
		printf("\n}}\n");
	return ret;
}

static const struct option_entry table[] = {
	{ "-n, --values N: values per sample (8)",
	  OPTION_WHOLE(struct settings, values, 1, 10000) },
	{ "-t, --time S: seconds per format and direction (0.3)",
	  OPTION_REAL(struct settings, seconds, 1e-9, 1e9) },
	{ "--json: figures as JSON", OPTION_FLAG(struct settings, json) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar bench formats",
	.synopsis = "[OPTIONS] [FORMAT...]",
	.about = "Writes and reads samples in memory, in each format or those named. `jansson`\n"
		 "is json by that library alone, for comparison.\n",
	.table = table,
	.any_operands = true,
};

/* OPTIONS_GO_ON, or the exit status. */
static int parse(int argc, char **argv, struct settings *s)
{
	int status;

	*s = (struct settings){ .values = 8, .seconds = 0.3 };
	status = options_parse(&options, argc, argv, s, NULL);
	s->names = argv + optind;
	s->name_count = argc - optind;
	for (int i = 0; status == OPTIONS_GO_ON && i < s->name_count; i++)
		if (!format_type_find(s->names[i]))
			status = options_wrong(&options, argv, "no format '%s'", s->names[i]);
	return status;
}

int bench_formats_main(int argc, char **argv)
{
	static const struct plugin own[] = {
		{ .name = "jansson", .type = &jansson },
		{ .name = NULL },
	};
	struct settings s;
	struct bench b;
	int ret;

	plugin_extend(format_plugins, own);
	ret = parse(argc, argv, &s);
	if (ret != OPTIONS_GO_ON)
		return ret;
	ret = prepare(&b, s.values);
	if (ret)
		log_error("no memory for samples of %u values", s.values);
	else
		ret = run(&s, &b);
	clean_up(&b);
	return ret ? 1 : 0;
}
