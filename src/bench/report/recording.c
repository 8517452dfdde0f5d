/* SPDX-License-Identifier: BSD-2-Clause */
/* Recorded samples; see recording.h. */
#define LOG_ROOM "bench/report"
#include "bench/report/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/delivery/match.h"
#include "bench/result/columns.h"
#include "bench/tune/tree.h"
#include "gateway/sample/sequence.h"
#include "gateway/sample/signals.h"
#include "gateway/sample/time.h"
#include "util/container_of.h"
#include "util/log.h"

#define SIGNALS_SHOWN 8

enum { SECONDS, VALUES, COLUMNS = VALUES + SIGNALS_SHOWN };
enum { LATENCY, GAP, TIMES };

struct samples {
	double *column[COLUMNS];   /* SECONDS: since the first sample; then the signals' values */
	int64_t *time[TIMES];      /* ns */
	size_t count, room, times_room, latencies, gaps, signals;
	struct sequence sequence;
	unsigned __int128 came;    /* bit n: the number n below the greatest, or none is expected */
	int64_t first_ns, last_ns;
	double lost, reordered;    /* sequence numbers, samples */
	bool any_latency;          /* one that is not zero: somebody received */
};

static void free_samples(struct samples *s)
{
	for (size_t i = 0; i < TIMES; i++)
		free(s->time[i]);
	for (size_t i = 0; i < COLUMNS; i++)
		free(s->column[i]);
}

static double number_of(const struct sample *smp, unsigned i)
{
	enum signal_type type = smp->signals && i < smp->signals->count ?
					smp->signals->signals[i].type : SIGNAL_FLOAT;

	if (type == SIGNAL_FLOAT)
		return smp->data[i].f;
	if (type == SIGNAL_COMPLEX)
		return hypot((double)smp->data[i].z.re, (double)smp->data[i].z.im);
	return (double)smp->data[i].i;
}

#define CAME_BITS 128

/* Missing and late sequence numbers. One that is late was taken for lost before. */
static void count_sequence(struct samples *s, const struct sample *smp)
{
	enum sequence_verdict verdict = sequence_judge(&s->sequence, smp);
	uint64_t n = s->sequence.distance;
	unsigned __int128 bit = n < CAME_BITS ? (unsigned __int128)1 << n : 0;

	switch (verdict) {
	case SEQUENCE_NONE:
		break;
	case SEQUENCE_FIRST:
	case SEQUENCE_RESTART:
		s->came = ~(unsigned __int128)0;
		break;
	case SEQUENCE_NEXT:
		s->came = s->came << 1 | 1;
		break;
	case SEQUENCE_LEFT_OUT:
		break; /* a recording has no notes of generators */
	case SEQUENCE_LOST:
		s->lost += (double)n;
		s->came = n + 1 < CAME_BITS ? s->came << (n + 1) | 1 : 1;
		break;
	case SEQUENCE_LATE:
		s->reordered++;
		if (bit & ~s->came)
			s->lost--;
		s->came |= bit;
		break;
	}
}

/* A file may have times that lie further apart than 64 bits tell. */
static double seconds_between(int64_t from, int64_t to)
{
	int64_t ns;

	return (__builtin_sub_overflow(to, from, &ns) ? (double)to - (double)from :
							(double)ns) / 1e9;
}

static int add_sample(void *samples, struct sample *smp)
{
	struct samples *s = samples;
	bool received = smp->flags & SAMPLE_HAS_RECEIVED;
	int64_t origin = sample_time_to_ns(smp->origin);
	int64_t at = received ? sample_time_to_ns(smp->received) : origin;

	if (columns_make_room(s->column, COLUMNS, s->count, &s->room) ||
	    columns_make_room(s->time, TIMES, s->count, &s->times_room))
		return -ENOMEM;
	count_sequence(s, smp);
	if (!s->count)
		s->first_ns = at;
	else if (!__builtin_sub_overflow(at, s->last_ns, &s->time[GAP][s->gaps]))
		s->gaps++;
	s->last_ns = at;
	if (received && smp->flags & SAMPLE_HAS_ORIGIN &&
	    !__builtin_sub_overflow(at, origin, &s->time[LATENCY][s->latencies])) {
		s->any_latency |= at != origin;
		s->latencies++;
	}
	s->column[SECONDS][s->count] = seconds_between(s->first_ns, at);
	for (unsigned i = 0; i < SIGNALS_SHOWN; i++)
		s->column[VALUES + i][s->count] = i < smp->length ? number_of(smp, i) : NAN;
	s->signals = MAX(s->signals, MIN((size_t)smp->length, (size_t)SIGNALS_SHOWN));
	s->count++;
	return 0;
}

/* ---- how a recording names its signals ---- */

#define HEADER_BYTES 65536
#define NAMES_MAX 4096

/* Fields of a header that are no signals. */
static bool is_of_sample(const char *field)
{
	return tune_has_word("secs nsecs offset sequence", field, " ") ||
	       !strncmp(field, "seconds", strlen("seconds"));
}

/* "voltage[V]", which is changed. */
static bool set_signal(struct signal *s, char *field)
{
	size_t n = strlen(field);
	char *bracket = n && field[n - 1] == ']' ? strrchr(field, '[') : NULL;

	if (bracket) {
		field[n - 1] = '\0';
		*bracket = '\0';
		s->unit = strdup(bracket + 1);
		if (!s->unit)
			return false;
	}
	free(s->name);
	s->name = strdup(field);
	return s->name;
}

/* Of the line "# secs,nsecs,offset,sequence,voltage[V]" that text formats write; NULL: the
 * text begins with something else. */
static struct signal_list *of_comment(char *text, char separator)
{
	char *line = text, end[] = { separator, '\0' }, *field, *names[NAMES_MAX];
	struct signal_list *l;
	unsigned count = 0;
	bool ok = true;

	if (*line != '#' || !strchr(line, '\n'))
		return NULL;
	line[strcspn(line, "\r\n")] = '\0';
	line += 1 + strspn(line + 1, " ");
	while (count < NAMES_MAX && (field = strsep(&line, end)))
		if (!is_of_sample(field))
			names[count++] = field;
	l = count ? signal_list_new(count, SIGNAL_FLOAT) : NULL;
	for (unsigned i = 0; l && i < count && ok; i++)
		ok = set_signal(&l->signals[i], names[i]);
	if (ok)
		return l;
	signal_list_put(l);
	return NULL;
}

/* The signals that the file itself names, as read in `format`: a new reference; NULL: it names none, or
 * cannot be read. */
static struct signal_list *names_of(const char *path, struct format *format)
{
	char *text = calloc(1, HEADER_BYTES + 1);
	struct signal_list *l = NULL;
	int fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd >= 0 ? read(fd, text, HEADER_BYTES) : -1;

	if (n > 0 && format->type->names)
		l = format->type->names(format, text, (size_t)n);
	if (n > 0 && !l && format->type->lines)
		l = of_comment(text, format->separator);
	if (fd >= 0)
		close(fd);
	free(text);
	if (format->type->reset)
		format->type->reset(format);
	return l;
}

/* ---- its case ---- */

static int add_signals(json_t *c, const struct samples *s,
		       const struct signal_list *names)
{
	int ret = 0;

	for (size_t i = 0; i < s->signals && !ret; i++) {
		const struct signal *named = names && i < names->count ?
						     &names->signals[i] : NULL;
		char label[32];

		snprintf(label, sizeof(label), "signal %zu", i);
		ret = report_curve_add(c, named ? named->name : label,
					  named && named->unit ? named->unit : "",
					  s->column[SECONDS], s->column[VALUES + i], s->count);
	}
	return ret;
}

static int add_case(json_t *run, const char *path, const struct recording_options *o,
		    struct samples *s, const struct signal_list *names)
{
	const struct report_detail detail = report_detail_for(2);
	json_t *c = report_case_add(run, path, "recording");
	const char *slash = strrchr(path, '/');
	int ret = c ? recording_name(c, slash ? slash + 1 : path, path,
				     "How late and how regular are the recorded samples?", o) :
		      -ENOMEM;

	if (!ret && json_object_set_new(c, "limit_ns", json_integer(o->limit_ns)))
		ret = -ENOMEM;
	ret = ret ?: report_figure_add(run, c, "samples", "samples", "", (double)s->count) ?:
	      report_figure_add(run, c, "lost", "missing sequence numbers", "", s->lost) ?:
	      report_figure_add(run, c, "reordered", "out of order", "", s->reordered);
	if (!ret && s->any_latency)
		ret = report_latency_add(c, "t_lat", "from origin to reception", s->time[LATENCY],
					 s->latencies, &detail);
	if (!ret)
		ret = report_latency_add(c, "gap", "from sample to sample", s->time[GAP],
					 s->gaps, &detail);
	/* The limit is one of latencies. */
	if (!ret && s->gaps) {
		json_t *all = json_object_get(c, "latencies");

		json_object_set_new(json_array_get(all, json_array_size(all) - 1), "share_above",
				    json_null());
	}
	return ret ? ret : add_signals(c, s, names);
}

int recording_add(json_t *run, const char *path, const struct recording_options *o)
{
	const struct delivery_file file = { .path = path, .types = o->types,
					    .format = o->format ? o->format : delivery_format_by_name(path) };
	struct samples s = { 0 };
	struct delivery_reading r;
	struct signal_list *names;
	int ret = o->format ? -ENOENT : recording_stats_add(run, path, o);

	if (ret != -ENOENT)
		return ret;
	ret = delivery_open(&file, &r);
	if (ret)
		return ret;
	names = names_of(path, r.format);
	ret = delivery_read(&r, path, add_sample, &s);
	if (!ret && r.malformed)
		log_warn("file %s: %ju malformed lines are left out of the report", path,
			 (uintmax_t)r.malformed);
	if (!ret && !s.count) {
		log_error("file %s has no samples of format '%s'", path, r.format->type->name);
		ret = -ENODATA;
	}
	if (!ret)
		ret = add_case(run, path, o, &s, names);
	if (ret == -ENOMEM)
		log_error("no memory for the samples of %s", path);
	free_samples(&s);
	signal_list_put(names);
	delivery_close(&r);
	return ret;
}
