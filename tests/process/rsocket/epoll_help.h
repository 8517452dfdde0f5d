/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For programs that know TCP sockets only and print what epoll reports of them: oracle.sh
 * compares what they print over TCP with what they print over rsockets.
 */
#ifndef EPOLL_HELP_H
#define EPOLL_HELP_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK(what)                                                                  \
	do {                                                                         \
		if (!(what)) {                                                       \
			fprintf(stderr, "%s:%d: failed: %s (%s)\n", __FILE__,        \
				__LINE__, #what, strerror(errno));                   \
			exit(1);                                                     \
		}                                                                    \
	} while (0)

#define SAY(...)                        \
	do {                            \
		printf("\t" __VA_ARGS__); \
		printf("\n");           \
	} while (0)

/* The cases of a program: with an argument only the one of that name. */
struct a_case {
	const char *name;
	void (*run)(void);
};

int cases_run(int argc, char **argv, const struct a_case *cases, size_t count);
#define CASES(...)                                                                   \
	int main(int argc, char **argv)                                              \
	{                                                                            \
		static const struct a_case cases[] = { __VA_ARGS__ };                \
		return cases_run(argc, argv, cases, sizeof(cases) / sizeof(*cases)); \
	}

struct pair {
	int here, there; /* both do not block */
};

/* The listener of all pairs; its descriptor blocks. */
int listener_open(void);
int listener_fd(void);
/* Connects a socket to it, which another thread accepts. */
struct pair pair_make(void);
void pair_close(struct pair *p);
/* A thread that connects to the listener; its result is the socket. */
pthread_t caller_start(void);
int caller_end(pthread_t thread);

void nonblock(int fd);
/* Waits until poll() reports `events` of the socket. */
void settle(int fd, short events);
/* Writes one byte. */
void put(int fd);
/* Reads until there is no more; the last errno, 0: the end. */
int read_all(int fd);
/* Writes until nothing more is taken. */
void write_full(int fd);

/* The result of a call as text: "ok" or the error. */
const char *result(int ret);

int set_make(void);
void set_ctl(int set, int op, int fd, uint32_t events);
/* One call without waiting: the events of `fd`, which must be the only one; 0: none. */
uint32_t set_look(int set, int fd);
const char *events_name(uint32_t events);

#endif
