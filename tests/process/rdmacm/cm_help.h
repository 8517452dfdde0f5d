/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the process tests of the connection manager. Uses the public API only. A
 * failed check prints its place and ends the process with 1; an alarm ends a test that
 * waits too long.
 */
#ifndef CM_HELP_H
#define CM_HELP_H

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what)                                                          \
	do {                                                                 \
		if (!(what)) {                                               \
			fprintf(stderr, "%s:%d: failed: %s (errno %d, %s)\n", \
				__FILE__, __LINE__, #what, errno,            \
				strerror(errno));                            \
			exit(1);                                             \
		}                                                            \
	} while (0)

struct cm_case {
	const char *name;
	void (*run)(void);
};

/* Runs the case that argv[1] names; 77: there is no soft0 device. */
int cm_main(int argc, char **argv, const struct cm_case *cases, size_t count);
#define CM_MAIN(...)                                                         \
	int main(int argc, char **argv)                                      \
	{                                                                    \
		static const struct cm_case cases[] = { __VA_ARGS__ };       \
		return cm_main(argc, argv, cases,                            \
			       sizeof(cases) / sizeof(cases[0]));            \
	}
#define CASE(fn) { #fn, fn }

struct sockaddr *cm_loopback(uint16_t port);

/* Takes the next event; it must be of this type. The caller acks it. */
struct rdma_cm_event *cm_expect(struct rdma_event_channel *ch,
				enum rdma_cm_event_type type);
/* The same, acked; returns the status. */
int cm_expect_ack(struct rdma_event_channel *ch, enum rdma_cm_event_type type);
/* Fails if an event comes within `ms`. */
void cm_expect_quiet(struct rdma_event_channel *ch, int ms);

/* A listener on 127.0.0.1 at a free port. */
struct rdma_cm_id *cm_listener(struct rdma_event_channel *ch,
			       enum rdma_port_space ps, int backlog,
			       uint16_t *port);
/* An identifier with its route to 127.0.0.1:port resolved. */
struct rdma_cm_id *cm_caller(struct rdma_event_channel *ch,
			     enum rdma_port_space ps, uint16_t port);
/* A QP with queues of 8 on CQs of the library. */
void cm_qp(struct rdma_cm_id *id);

/* Both ends of a connection, each with a channel and a QP. */
struct cm_pair {
	struct rdma_event_channel *caller_ch, *callee_ch;
	struct rdma_cm_id *listener, *caller, *callee;
	uint16_t port;
};

void cm_pair_make(struct cm_pair *p);
void cm_pair_free(struct cm_pair *p);
void cm_id_free(struct rdma_cm_id *id); /* with its QP */

/* A message of 16 bytes from one QP to the other. */
void cm_message(struct rdma_cm_id *from, struct rdma_cm_id *to);

enum ibv_qp_state cm_qp_state(struct rdma_cm_id *id);
uint64_t cm_now_ms(void);

/* A process that runs `body` with a pipe to its parent; the parent's end. */
struct cm_child {
	pid_t pid;
	int fd;
};

struct cm_child cm_fork(void (*body)(int fd, uint16_t port), uint16_t port);
void cm_child_expect(struct cm_child *c, char sign); /* next byte it writes */
void cm_child_kill(struct cm_child *c);
void cm_child_join(struct cm_child *c); /* must exit with 0 */

#endif
