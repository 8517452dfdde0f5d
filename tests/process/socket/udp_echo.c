/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bare minimum to compare a gateway with: a program that sends back each
 * datagram, and one that measures how long that takes.
 *
 *	udp-echo echo PORT BACK              receives at PORT, sends to BACK
 *	udp-echo ping PORT[,PORT] BACK COUNT TEXT
 *	                                     sends TEXT to PORT, waits at BACK; for
 *	                                     each port a line of p50 and p99 in
 *	                                     microseconds, and how many were lost
 *
 * Two ports are taken in turns, BLOCK datagrams each: the machine is not the same from
 * one second to the next. A last line tells the median of the differences between a
 * block and the one before it at the other port, second less first.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 100

static struct sockaddr_in loopback(const char *port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)atoi(port)),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

static int receiver(const char *port)
{
	struct sockaddr_in a = loopback(port);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a))) {
		perror("cannot receive");
		exit(1);
	}
	return fd;
}

static int echo(const char *port, const char *back)
{
	struct sockaddr_in to = loopback(back);
	int fd = receiver(port);
	char buf[65536];

	fprintf(stderr, "receiving at %s\n", port);
	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n < 0 || sendto(fd, buf, (size_t)n, 0, (struct sockaddr *)&to,
				    sizeof(to)) < 0)
			return 1;
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), compare);
	return n ? v[n / 2] : 0;
}

/* One datagram there and back; negative: it was lost. */
static double round_trip(int fd, const struct sockaddr_in *to, int number,
			 const char *text)
{
	char buf[65536], line[1024];
	/* A new sequence number each time, after the first comma. */
	int len = snprintf(line, sizeof(line), "1637846259,201578969,nan,%d,%s\n",
			   number, text);
	double start = now_us();

	sendto(fd, line, (size_t)len, 0, (const struct sockaddr *)to, sizeof(*to));
	return recv(fd, buf, sizeof(buf), 0) > 0 ? now_us() - start : -1;
}

struct server {
	struct sockaddr_in at;
	double *us;
	int got, lost;
};

/* BLOCK datagrams to one of them; the median. */
static double block(int fd, struct server *s, int *number, const char *text)
{
	double us[BLOCK];
	int got = 0;

	for (int i = 0; i < BLOCK; i++) {
		double t = round_trip(fd, &s->at, ++*number, text);

		if (t >= 0)
			s->us[s->got++] = us[got++] = t;
		else
			s->lost++;
	}
	return median(us, got);
}

static int ping(char *ports, const char *back, const char *count, const char *text)
{
	const struct timeval patience = { .tv_usec = 200000 };
	int fd = receiver(back), blocks = (atoi(count) + BLOCK - 1) / BLOCK, servers = 0;
	struct server server[2] = { 0 };
	double *differences = calloc((size_t)blocks + 1, sizeof(double));
	int number = 0;

	for (char *p = strtok(ports, ","); p && servers < 2; p = strtok(NULL, ","))
		server[servers++].at = loopback(p);
	if (!differences || blocks <= 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		return 1;
	for (int s = 0; s < servers; s++) {
		server[s].us = calloc((size_t)blocks * BLOCK, sizeof(double));
		if (!server[s].us)
			return 1;
	}
	for (int b = 0; b < blocks; b++)
		for (int s = 0; s < servers; s++)
			differences[b] += (s ? 1 : -1) *
					  block(fd, &server[s], &number, text);
	for (int s = 0; s < servers; s++) {
		double p50 = median(server[s].us, server[s].got);

		if (server[s].got < server[s].lost) {
			fprintf(stderr, "only %d of %d came back\n", server[s].got,
				server[s].got + server[s].lost);
			return 1;
		}
		printf("%.2f %.2f %d\n", p50, server[s].us[server[s].got * 99 / 100],
		       server[s].lost);
		free(server[s].us);
	}
	if (servers == 2)
		printf("%.2f\n", median(differences, blocks));
	free(differences);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "echo"))
		return echo(argv[2], argv[3]);
	if (argc == 6 && !strcmp(argv[1], "ping"))
		return ping(argv[2], argv[3], argv[4], argv[5]);
	fprintf(stderr, "usage: udp-echo echo PORT BACK | ping PORT[,PORT] BACK COUNT TEXT\n");
	return 2;
}
