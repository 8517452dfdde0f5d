/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bare minimum to compare a gateway with: a program that sends back each
 * datagram, and one that measures how long that takes.
 *
 *	udp-echo echo PORT BACK              receives at PORT, sends to BACK
 *	udp-echo ping PORT BACK COUNT TEXT   sends TEXT to PORT, waits at BACK;
 *	                                     prints p50 and p99 in microseconds
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

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

static int ping(const char *port, const char *back, const char *count,
		const char *text)
{
	const struct timeval patience = { .tv_usec = 200000 };
	struct sockaddr_in to = loopback(port);
	int fd = receiver(back), n = atoi(count), got = 0;
	double *us = calloc((size_t)(n > 0 ? n : 1), sizeof(*us));
	char buf[65536], line[1024];

	if (!us || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
			      sizeof(patience)))
		return 1;
	for (int i = 0; i < n; i++) {
		/* A new sequence number each time, after the first comma. */
		int len = snprintf(line, sizeof(line), "1637846259,201578969,nan,%d,%s\n",
				   i + 1, text);
		double start = now_us();

		sendto(fd, line, (size_t)len, 0, (struct sockaddr *)&to, sizeof(to));
		if (recv(fd, buf, sizeof(buf), 0) > 0)
			us[got++] = now_us() - start;
	}
	if (got < n / 2) {
		fprintf(stderr, "only %d of %d came back\n", got, n);
		return 1;
	}
	qsort(us, (size_t)got, sizeof(*us), compare);
	printf("%.2f %.2f %d\n", us[got / 2], us[got * 99 / 100], n - got);
	free(us);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "echo"))
		return echo(argv[2], argv[3]);
	if (argc == 6 && !strcmp(argv[1], "ping"))
		return ping(argv[2], argv[3], argv[4], argv[5]);
	fprintf(stderr, "usage: udp-echo echo PORT BACK | ping PORT BACK COUNT TEXT\n");
	return 2;
}
