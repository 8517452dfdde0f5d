/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * villas-shmem: the smallest simulator for a node of the type `shmem`. It sends
 * every sample back as it came, until the gateway closes the objects.
 *
 *	villas-shmem WNAME RNAME VECTORIZE [pthread|polling]
 *
 * WNAME is the node's `in.name`, RNAME its `out.name`, VECTORIZE how many samples
 * are taken at a time. Either side may be started first.
 */
#include <busbar/shmem.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTORIZE_MAX 8192

static struct busbar_shmem *volatile shmem; /* NULL: none to interrupt */
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
	if (shmem)
		busbar_shmem_interrupt(shmem);
}

static int usage(void)
{
	fprintf(stderr,
		"usage: villas-shmem WNAME RNAME VECTORIZE [pthread|polling]\n"
		"  WNAME      object to write, the node's in.name\n"
		"  RNAME      object to read, the node's out.name\n"
		"  VECTORIZE  samples at a time, 1 to %d\n", VECTORIZE_MAX);
	return 2;
}

/* Room for `count` samples of as many values as the gateway may send. */
static struct busbar_shmem_sample *make_samples(unsigned count, unsigned values)
{
	struct busbar_shmem_sample *samples = calloc(count, sizeof(*samples));
	union busbar_shmem_value *all = calloc((size_t)count * values,
					       sizeof(*all));

	if (!samples || !all) {
		free(samples);
		free(all);
		return NULL;
	}
	for (unsigned i = 0; i < count; i++) {
		samples[i].values = all + (size_t)i * values;
		samples[i].capacity = values;
	}
	return samples;
}

/* Until the peer leaves or a signal comes. Returns the exit status. */
static int echo(struct busbar_shmem_sample *samples, unsigned count)
{
	unsigned long echoed = 0, lost = 0;

	while (!stopped) {
		int got = busbar_shmem_read(shmem, samples, count, -1), put;

		if (got == -ENOTCONN || got == -EINTR)
			break;
		if (got < 0) {
			fprintf(stderr, "villas-shmem: %s\n", strerror(-got));
			return 1;
		}
		put = busbar_shmem_write(shmem, samples, (unsigned)got);
		if (put < 0)
			put = 0;
		echoed += (unsigned long)put;
		lost += (unsigned long)(got - put);
	}
	fprintf(stderr, "villas-shmem: %lu samples echoed, %lu not taken back\n",
		echoed, lost);
	return 0;
}

int main(int argc, char *argv[])
{
	/* Not to wait here: reading does, and a signal ends it in good order. */
	struct busbar_shmem_options options = { .timeout_ns = 0 };
	struct busbar_shmem_sample *samples;
	char *rest;
	long count;
	struct busbar_shmem *s;
	int ret;

	if (argc < 4 || argc > 5)
		return usage();
	count = strtol(argv[3], &rest, 10);
	if (*rest || count < 1 || count > VECTORIZE_MAX)
		return usage();
	if (argc == 5 && !strcmp(argv[4], "polling"))
		options.mode = BUSBAR_SHMEM_POLLING;
	else if (argc == 5 && strcmp(argv[4], "pthread"))
		return usage();

	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	ret = busbar_shmem_open(&s, argv[1], argv[2], &options);
	if (ret) {
		fprintf(stderr, "villas-shmem: %s\n", busbar_shmem_error());
		return 1;
	}
	shmem = s;
	samples = make_samples((unsigned)count, busbar_shmem_read_max(s));
	ret = samples ? echo(samples, (unsigned)count) : 1;
	shmem = NULL; /* a signal may still come */
	busbar_shmem_close(s);
	if (samples)
		free(samples[0].values);
	free(samples);
	return ret;
}
