/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shmem-latency: how long a sample takes to a simulator that sends it back, and
 * what is lost at a fixed rate. The other side is villas-shmem.
 *
 *	shmem-latency WNAME RNAME pthread|polling RATE SECONDS VALUES
 *
 * First one sample at a time, each sent when the last one is back: half of the
 * median round trip is the one-way latency. Then RATE per second, without
 * waiting; steps that this program itself comes too late for are left out. Prints:
 * mode, one-way median and 99 % in ns, sent, missed, refused, lost.
 */
#include <busbar/shmem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PINGS 20000
#define VALUES_MAX 1024

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Round trips into `ns`, for at most two seconds; returns how many. */
static int ping(struct busbar_shmem *s, int64_t *ns, unsigned values)
{
	double out[VALUES_MAX] = { 0 }, back[VALUES_MAX];
	int64_t end = now_ns() + 2000000000;
	int n = 0;

	while (n < PINGS && now_ns() < end) {
		int64_t start = now_ns();

		out[0] = n;
		if (busbar_shmem_write_values(s, out, values) != 1 ||
		    busbar_shmem_read_values(s, back, values, 1000000000) < 1)
			return -1;
		ns[n] = now_ns() - start;
		if (back[0] == n)
			n++;
	}
	return n;
}

struct counts {
	unsigned long sent, missed, refused, back;
};

/* Counts what is there. */
static void collect(struct busbar_shmem *s, struct counts *c, unsigned values)
{
	double back[VALUES_MAX];

	while (busbar_shmem_read_values(s, back, values, 0) > 0)
		c->back++;
}

static struct counts flood(struct busbar_shmem *s, double rate_hz,
			   double seconds, unsigned values)
{
	double out[VALUES_MAX] = { 0 };
	int64_t start = now_ns(), give_up;
	unsigned long steps = (unsigned long)(rate_hz * seconds);
	struct counts c = { 0 };

	for (unsigned long i = 0; i < steps; i++) {
		int64_t due = start + (int64_t)((double)i * 1e9 / rate_hz);

		do
			collect(s, &c, values);
		while (now_ns() < due);
		/* Held up: a burst would only show how long the rings are. */
		if ((double)(now_ns() - due) > 1e9 / rate_hz) {
			c.missed++;
			continue;
		}
		if (busbar_shmem_write_values(s, out, values) == 1)
			c.sent++;
		else
			c.refused++;
	}
	give_up = now_ns() + 1000000000;
	while (c.back < c.sent && now_ns() < give_up)
		collect(s, &c, values);
	return c;
}

int main(int argc, char *argv[])
{
	static int64_t ns[PINGS];
	struct busbar_shmem_options options = { .timeout_ns = 5000000000 };
	struct busbar_shmem *s;
	struct counts c;
	unsigned values;
	int n;

	if (argc != 7 || atoi(argv[6]) < 1 || atoi(argv[6]) > VALUES_MAX) {
		fprintf(stderr,
			"usage: shmem-latency WNAME RNAME pthread|polling RATE SECONDS VALUES\n");
		return 2;
	}
	values = (unsigned)atoi(argv[6]);
	options.mode = strcmp(argv[3], "polling") ? BUSBAR_SHMEM_PTHREAD :
						   BUSBAR_SHMEM_POLLING;
	options.values = values;
	if (busbar_shmem_open(&s, argv[1], argv[2], &options)) {
		fprintf(stderr, "shmem-latency: %s\n", busbar_shmem_error());
		return 1;
	}
	n = ping(s, ns, values);
	if (n < 1) {
		fprintf(stderr, "shmem-latency: the echo does not answer\n");
		busbar_shmem_close(s);
		return 1;
	}
	qsort(ns, (size_t)n, sizeof(ns[0]), compare);
	c = flood(s, atof(argv[4]), atof(argv[5]), values);
	printf("%s %lld %lld %lu %lu %lu %lu\n", argv[3], (long long)ns[n / 2] / 2,
	       (long long)ns[(long)n * 99 / 100] / 2, c.sent, c.missed,
	       c.refused, c.sent - c.back);
	busbar_shmem_close(s);
	return 0;
}
