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
 *	rate SERVER COUNT TO FROM ...    the same, as many as go at once: messages a second
 */
#ifndef TESTS_OUTSIDE_ECHO_H
#define TESTS_OUTSIDE_ECHO_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ECHO_TURN 100
#define ECHO_BYTES 4096
#define ECHO_PAIRS 4
#define ECHO_AHEAD 64 /* messages on their way, for the rate */

struct echo;

/* A connection that receives from `from` and sends to `to`; NULL after telling why. */
struct echo *echo_open(const char *server, const char *from, const char *to);
/* 0, or -1 after telling why. */
int echo_send(struct echo *e, const void *data, size_t len);
/* The next message into buf[0..size), waiting for it: its length, 0 after a second without one,
 * or -1 after telling why. */
int echo_wait(struct echo *e, void *buf, size_t size);

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

/* A line of the format csv with eight values. */
static int print_message(char *buf, size_t size, unsigned long long sequence)
{
	return snprintf(buf, size, "1700000000,0,nan,%llu,1.125,2.125,3.125,4.125,5.125,6.125,7.125,8.125\n",
			sequence);
}

static int one_round(struct echo *e, unsigned long long sequence)
{
	char buf[ECHO_BYTES];
	int len = print_message(buf, sizeof(buf), sequence);

	return echo_send(e, buf, (size_t)len) ? -1 : echo_wait(e, buf, sizeof(buf));
}

/* Until the other side answers. */
static int warm_up(struct echo *e)
{
	char buf[ECHO_BYTES];
	int ret = 0;

	for (unsigned i = 0; i < 20 && ret <= 0; i++)
		ret = one_round(e, 0);
	if (ret <= 0) {
		fprintf(stderr, "nobody sends back\n");
		return -1;
	}
	/* What was sent before somebody listened may still come. */
	while ((ret = echo_wait(e, buf, sizeof(buf))) > 0)
		;
	return ret;
}

static int measure_ping(struct echo *const pairs[], unsigned count, unsigned rounds)
{
	double *us[ECHO_PAIRS];

	for (unsigned p = 0; p < count; p++)
		us[p] = malloc(rounds * sizeof(double));
	for (unsigned i = 0; i < rounds; i += ECHO_TURN)
		for (unsigned p = 0; p < count; p++)
			for (unsigned k = i; k < i + ECHO_TURN && k < rounds; k++) {
				double since = now_us();

				if (one_round(pairs[p], k + 1) <= 0) {
					fprintf(stderr, "message %u of pair %u does not come back\n",
						k, p);
					return 1;
				}
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
static int measure_rate(struct echo *const pairs[], unsigned count, unsigned rounds)
{
	char buf[ECHO_BYTES];

	for (unsigned p = 0; p < count; p++) {
		double since = now_us();
		unsigned sent = 0, got = 0;

		while (got < rounds) {
			while (sent < rounds && sent - got < ECHO_AHEAD) {
				int len = print_message(buf, sizeof(buf), ++sent);

				if (echo_send(pairs[p], buf, (size_t)len))
					return 1;
			}
			if (echo_wait(pairs[p], buf, sizeof(buf)) <= 0)
				return 1;
			got++;
		}
		printf("%.0f\n", rounds / (now_us() - since) * 1e6);
	}
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
	struct echo *pairs[ECHO_PAIRS];
	unsigned count = 0, rounds;

	signal(SIGPIPE, SIG_IGN);
	if (argc == 5 && !strcmp(argv[1], "echo")) {
		pairs[0] = echo_open(argv[2], argv[3], argv[4]);
		return pairs[0] ? echo_all(pairs[0]) : 1;
	}
	if (argc < 6 || argc % 2 || (strcmp(argv[1], "ping") && strcmp(argv[1], "rate"))) {
		fprintf(stderr, "usage: %s echo SERVER FROM TO | ping|rate SERVER COUNT TO FROM ...\n",
			argv[0]);
		return 2;
	}
	rounds = (unsigned)strtoul(argv[3], NULL, 10);
	for (int i = 4; i + 1 < argc && count < ECHO_PAIRS; i += 2) {
		pairs[count] = echo_open(argv[2], argv[i + 1], argv[i]);
		if (!pairs[count] || warm_up(pairs[count]))
			return 1;
		count++;
	}
	return !strcmp(argv[1], "ping") ? measure_ping(pairs, count, rounds) :
					  measure_rate(pairs, count, rounds);
}

#endif
