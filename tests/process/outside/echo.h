/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare loop over the library of a node-type, for scripts/bench-servers.sh: what a gateway
 * costs above it. A program of a library includes this file and defines echo_open(),
 * echo_send() and echo_wait(); then it is
 *
 *	echo SERVER FROM TO              sends back what comes from FROM, to TO
 *	ping SERVER COUNT TO FROM ...    sends messages to TO, takes them from FROM, and tells the
 *	                                 median and the 99th percentile of the round trip in us;
 *	                                 several pairs are measured in turns, a hundred each
 *	rate SERVER COUNT TO FROM ...    the same, with up to 64 on their way: messages a second;
 *	                                 a thousand in each turn
 *
 * A line for each pair. Exit status 1: a message did not come back in some seconds. A message has
 * eight values, of which the first is its number: a line of the format csv or, with ECHO_FORMAT=raw in
 * the environment, the format raw with numbers of 64 bits.
 */
#ifndef TESTS_OUTSIDE_ECHO_H
#define TESTS_OUTSIDE_ECHO_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ECHO_TURN 100
#define ECHO_RATE_TURN 1000
#define ECHO_BYTES 16384 /* the longest message */
#define ECHO_PAIRS 4
#define ECHO_AHEAD 64	  /* messages on their way, for the rate */
#define ECHO_PATIENCE 5e6 /* us until a message counts as lost */
#define ECHO_START 30e6	  /* us until the other side has to answer first */
#define ECHO_STUCK 15	  /* seconds that a call of the library may take */
#define ECHO_VALUES 8

struct echo;

/* A connection that receives from `from` and sends to `to`; NULL after telling why. */
struct echo *echo_open(const char *server, const char *from, const char *to);
/* 0, or -1 after telling why. */
int echo_send(struct echo *e, const void *data, size_t len);
/* The next message into buf[0..size), waiting for it: its length, 0 after a second without one,
 * or -1 after telling why. */
int echo_wait(struct echo *e, void *buf, size_t size);

/* Takes the host of "HOST:PORT" into host[0..size); the port, 0 without one. */
static inline int echo_host(const char *server, char *host, size_t size)
{
	const char *colon = strchr(server, ':');

	snprintf(host, size, "%.*s", colon ? (int)(colon - server) : 0, server);
	return colon ? atoi(colon + 1) : 0;
}

struct pair {
	struct echo *e;
	unsigned long long sent, got; /* sequence numbers of the last ones */
	unsigned long long seen; /* that of the last one that came, in whatever order */
};

static atomic_uint progress; /* of the thread that measures */
static bool is_raw;	     /* the format */

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* A library may wait inside of a call for a server that stands still. */
static void *watch(void *arg)
{
	unsigned last = 0, still = 0;

	(void)arg;
	while (still < ECHO_STUCK) {
		unsigned now = atomic_load(&progress);

		still = now == last ? still + 1 : 0;
		last = now;
		sleep(1);
	}
	fprintf(stderr, "a call of the library does not return\n");
	_exit(1);
}

/* Sends a sample with eight values. */
static int send_sequence(struct echo *e, unsigned long long sequence)
{
	double values[ECHO_VALUES] = { (double)sequence, 1.125, 2.125, 3.125, 4.125, 5.125, 6.125,
				       7.125 };
	char buf[ECHO_BYTES];
	int len;

	if (is_raw)
		return echo_send(e, values, sizeof(values));
	len = snprintf(buf, sizeof(buf),
			   "1700000000,0,nan,%llu,1.125,2.125,3.125,4.125,5.125,6.125,7.125,8.125\n",
			   sequence);

	return echo_send(e, buf, (size_t)len);
}

/* Counts a sample that is a new one: what was sent before somebody listened has the number 0. */
static void take_number(struct pair *p, unsigned long long number)
{
	p->seen = number;
	p->got += number == p->got + 1;
}

/* A gateway may put several samples into one message. */
static void take_raw(struct pair *p, const char *buf, size_t len)
{
	double values[ECHO_VALUES];

	for (; len >= sizeof(values); buf += sizeof(values), len -= sizeof(values)) {
		memcpy(values, buf, sizeof(values));
		take_number(p, (unsigned long long)values[0]);
	}
}

static void take_lines(struct pair *p, const char *buf, size_t len)
{
	const char *at = buf, *end = buf + len;

	while (at < end) {
		const char *next = memchr(at, '\n', (size_t)(end - at)), *field = at;

		for (int i = 0; field && i < 3; i++) {
			field = memchr(field, ',', (size_t)(end - field));
			field += !!field;
		}
		if (field && field < end)
			take_number(p, strtoull(field, NULL, 10));
		at = next ? next + 1 : end;
	}
}

/* Until something new has come; 1 after telling that nothing did. */
static int await(struct pair *p, unsigned number)
{
	unsigned long long before = p->got;
	char buf[ECHO_BYTES + 1];
	double since = 0;
	int n;

	while (p->got == before) {
		n = echo_wait(p->e, buf, ECHO_BYTES);
		if (n < 0)
			return 1;
		atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
		buf[n] = '\0';
		if (is_raw)
			take_raw(p, buf, (size_t)n);
		else
			take_lines(p, buf, (size_t)n);
		if (p->got != before)
			break;
		if (since <= 0)
			since = now_us();
		if (now_us() - since > ECHO_PATIENCE) {
			fprintf(stderr, "message %llu of pair %u does not come back; ", p->got + 1,
				number);
			fprintf(stderr, "the last one was %llu of %llu\n", p->seen, p->sent);
			return 1;
		}
	}
	return 0;
}

/* Until the other side answers, and then for a turn. */
static int warm_up(struct pair *p, unsigned number)
{
	double end = now_us() + ECHO_START;
	char buf[ECHO_BYTES];
	int ret = 0;

	while (!ret) {
		if (send_sequence(p->e, 0))
			return 1;
		ret = echo_wait(p->e, buf, sizeof(buf));
		atomic_fetch_add(&progress, 1);
		if (!ret && now_us() > end) {
			fprintf(stderr, "nobody sends back what goes to pair %u\n", number);
			return 1;
		}
	}
	for (unsigned i = 0; i < ECHO_TURN && ret >= 0; i++)
		ret = send_sequence(p->e, ++p->sent) || await(p, number) ? -1 : 0;
	return ret < 0;
}

static int measure_ping(struct pair pairs[], unsigned count, unsigned rounds)
{
	double *us[ECHO_PAIRS];

	for (unsigned p = 0; p < count; p++) {
		us[p] = malloc(rounds * sizeof(double));
		if (!us[p])
			return 1;
	}
	for (unsigned i = 0; i < rounds; i += ECHO_TURN)
		for (unsigned p = 0; p < count; p++)
			for (unsigned k = i; k < i + ECHO_TURN && k < rounds; k++) {
				double since = now_us();

				if (send_sequence(pairs[p].e, ++pairs[p].sent) ||
				    await(&pairs[p], p))
					return 1;
				us[p][k] = now_us() - since;
			}
	for (unsigned p = 0; p < count; p++) {
		qsort(us[p], rounds, sizeof(double), by_size);
		printf("%.1f %.1f\n", us[p][rounds / 2], us[p][rounds - 1 - rounds / 100]);
		free(us[p]);
	}
	return 0;
}

/* With a limited number on their way, so that nobody drops any. */
static int measure_rate(struct pair pairs[], unsigned count, unsigned rounds)
{
	double us[ECHO_PAIRS] = { 0 };

	for (unsigned i = 0; i < rounds; i += ECHO_RATE_TURN)
		for (unsigned p = 0; p < count; p++) {
			unsigned more = rounds - i < ECHO_RATE_TURN ? rounds - i : ECHO_RATE_TURN;
			unsigned long long last = pairs[p].got + more;
			double since = now_us();

			while (pairs[p].got < last) {
				while (pairs[p].sent < last &&
				       pairs[p].sent - pairs[p].got < ECHO_AHEAD)
					if (send_sequence(pairs[p].e, ++pairs[p].sent))
						return 1;
				if (await(&pairs[p], p))
					return 1;
			}
			us[p] += now_us() - since;
		}
	for (unsigned p = 0; p < count; p++)
		printf("%.0f\n", rounds / us[p] * 1e6);
	return 0;
}

static int echo_all(struct echo *e)
{
	char buf[ECHO_BYTES];
	int n;

	while ((n = echo_wait(e, buf, sizeof(buf))) >= 0)
		if (n && echo_send(e, buf, (size_t)n))
			return 1;
	return 1;
}

int main(int argc, char **argv)
{
	const char *format = getenv("ECHO_FORMAT");
	struct pair pairs[ECHO_PAIRS] = { 0 };
	unsigned count = 0, rounds;
	pthread_t thread;

	signal(SIGPIPE, SIG_IGN);
	is_raw = format && !strcmp(format, "raw");
	if (argc == 5 && !strcmp(argv[1], "echo")) {
		pairs[0].e = echo_open(argv[2], argv[3], argv[4]);
		return pairs[0].e ? echo_all(pairs[0].e) : 1;
	}
	rounds = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	if (argc < 6 || argc % 2 || argc > 4 + 2 * ECHO_PAIRS || !rounds || rounds > 100000000 ||
	    (strcmp(argv[1], "ping") && strcmp(argv[1], "rate"))) {
		fprintf(stderr, "usage: %s echo SERVER FROM TO | ping|rate SERVER COUNT TO FROM ...\n",
			argv[0]);
		return 2;
	}
	if (pthread_create(&thread, NULL, watch, NULL))
		return 1;
	for (int i = 4; i < argc; i += 2, count++) {
		pairs[count].e = echo_open(argv[2], argv[i + 1], argv[i]);
		if (!pairs[count].e || warm_up(&pairs[count], count))
			return 1;
	}
	return !strcmp(argv[1], "ping") ? measure_ping(pairs, count, rounds) :
					  measure_rate(pairs, count, rounds);
}

#endif
