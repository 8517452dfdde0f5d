/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `dump`: writes all that is known about each sample to standard error, one
 * line for the sample and one for each value. For people who look for a fault;
 * what other programs read is the hook `print`.
 *
 * Buffered, and written at the rate of the statistics and at the end.
 */
#include "gateway/hook/part/select.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "gateway/sample/time.h"
#include "util/bounded_write.h"
#include "util/num.h"

/* A reader may be slow, but not for longer. */
#define PATIENCE_MS 100

struct dump {
	FILE *file;      /* standard error, with a buffer of its own */
	pthread_mutex_t lock; /* a sample is printed in one piece; and of `left_out` */
	size_t left_out; /* bytes since somebody read any */
};

extern const struct hook_type hook_dump;

static const struct {
	unsigned flag;
	const char *name;
} flags[] = {
	{ SAMPLE_HAS_SEQUENCE, "sequence" },
	{ SAMPLE_HAS_ORIGIN, "origin" },
	{ SAMPLE_HAS_RECEIVED, "received" },
	{ SAMPLE_HAS_DATA, "data" },
	{ SAMPLE_NEW_FRAME, "new_frame" },
	{ SAMPLE_NEW_SIMULATION, "new_simulation" },
};

/* A reader that has stopped stops no path. */
static ssize_t dump_write(void *cookie, const char *buf, size_t size)
{
	struct dump *d = cookie;
	unsigned patience_ms = d->left_out ? 0 : PATIENCE_MS;
	char text[64];
	size_t len;

	if (d->left_out) {
		len = (size_t)snprintf(text, sizeof(text),
				       "\n%zu bytes are left out here: nobody read them\n",
				       d->left_out);
		if (bounded_write(STDERR_FILENO, text, len, 0) < len) {
			d->left_out += size;
			return (ssize_t)size;
		}
	}
	d->left_out = size - bounded_write(STDERR_FILENO, buf, size, patience_ms);
	return (ssize_t)size;
}

static int dump_start(struct hook *h)
{
	struct dump *d = h->private_data;

	d->left_out = 0;
	d->file = fopencookie(d, "w",
			      (cookie_io_functions_t){ .write = dump_write });
	if (!d->file)
		return -errno;
	setvbuf(d->file, NULL, _IOFBF, 65536);
	pthread_mutex_init(&d->lock, NULL);
	return 0;
}

static void dump_value(FILE *f, enum signal_type type,
		       const union signal_data *v)
{
	char text[2 * NUM_DOUBLE_MAX + 4], *at = text;

	switch (type) {
	case SIGNAL_FLOAT:
		at = num_print_double(at, v->f);
		break;
	case SIGNAL_INTEGER:
		at = num_print_i64(at, v->i);
		break;
	case SIGNAL_BOOLEAN:
		fputs(v->i ? "true" : "false", f);
		return;
	case SIGNAL_COMPLEX:
		at = num_print_double(at, (double)v->z.re);
		*at++ = ' ';
		at = num_print_double(at, (double)v->z.im);
		*at++ = 'i';
		break;
	}
	fwrite(text, 1, (size_t)(at - text), f);
}

static enum hook_verdict dump_process(struct hook *h, struct sample **smp)
{
	struct dump *d = h->private_data;
	const struct sample *s = *smp;
	const struct signal_list *l = h->in_signals ?: s->signals;
	char origin[SAMPLE_TIME_TEXT], received[SAMPLE_TIME_TEXT];
	const char *between = "";
	FILE *f = d->file;

	pthread_mutex_lock(&d->lock);
	fprintf(f, "%s: sequence %llu, origin %s, received %s, flags ", h->owner,
		(unsigned long long)s->sequence, sample_time_print(origin, s->origin),
		sample_time_print(received, s->received));
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		if (!(s->flags & flags[i].flag))
			continue;
		fprintf(f, "%s%s", between, flags[i].name);
		between = "|";
	}
	fprintf(f, ", %u of %u values, %d references\n", s->length,
		s->capacity, s->refcnt);
	for (unsigned i = 0; i < s->length; i++) {
		const struct signal *sig = l && i < l->count ? &l->signals[i] :
							       NULL;
		enum signal_type type = hook_value_type(h, s, i);

		fprintf(f, "  [%u] %s = ", i, sig ? sig->name : "?");
		dump_value(f, type, &s->data[i]);
		fprintf(f, "%s%s (%s)\n", sig && sig->unit ? " " : "",
			sig && sig->unit ? sig->unit : "",
			signal_type_name(type));
	}
	pthread_mutex_unlock(&d->lock);
	return HOOK_OK;
}

static void dump_periodic(struct hook *h)
{
	struct dump *d = h->private_data;

	if (!d->file)
		return;
	pthread_mutex_lock(&d->lock);
	fflush(d->file);
	pthread_mutex_unlock(&d->lock);
}

static int dump_stop(struct hook *h)
{
	struct dump *d = h->private_data;

	fclose(d->file);
	d->file = NULL;
	pthread_mutex_destroy(&d->lock);
	return 0;
}

const struct hook_type hook_dump = {
	.name = "dump",
	.description = "writes all that is known about samples to standard error",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 1,
	.read_only = true,
	.size = sizeof(struct dump),
	.start = dump_start,
	.stop = dump_stop,
	.process = dump_process,
	.periodic = dump_periodic,
};
