/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the bridge share. */
#ifndef WEB_BRIDGE_PRIVATE_H
#define WEB_BRIDGE_PRIVATE_H

#include <busbar/ripc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "util/list.h"
#include "web/bridge.h"
#include "web/head.h"

#define BRIDGE_HEAD_MAX 16384   /* bytes of a request's head */

enum bridge_state {
	BRIDGE_READING,  /* a head, or waiting for one */
	BRIDGE_HELD,     /* has a request, which waits until less is held */
	BRIDGE_ASKED,    /* waits for the answer */
	BRIDGE_WRITING,  /* gives it to the client */
	BRIDGE_ENDING,   /* has said everything; reads what still comes, then closes */
};

struct bridge;

struct bridge_client {
	struct list entry;      /* bridge->clients */
	struct bridge *b;
	int fd;
	unsigned slot;          /* in bridge->slots */
	enum bridge_state state;
	uint64_t number;        /* of its request; 0: none */
	uint64_t until_ms;      /* then it is late */
	bool head_only;         /* the request was HEAD */
	bool close_after, end_read;
	uint32_t events;        /* that epoll looks for */
	/* Read and not used yet. */
	size_t have;
	char bytes[BRIDGE_HEAD_MAX];
	/* The request to be sent, until the sender has it. */
	char *request;
	size_t request_bytes;
	/* The answer. */
	char *head;
	size_t head_bytes, written;
	const char *content;
	size_t content_bytes;
	bool has_message;
	struct ripc_message message;
};

struct bridge_job {
	struct list entry;
	uint64_t number;
	int error;              /* of sending it */
	size_t bytes;
	char text[];
};

struct bridge {
	const struct bridge_options *o;
	struct bridge_counters *n;
	int epoll;
	struct list clients;
	struct bridge_client **slots; /* clients_max of them */
	/* For each slot the service that its request went to; the sender writes it. */
	_Atomic uint32_t *asked;
	unsigned count;
	size_t held_bytes;
	bool listening;         /* epoll looks at the listening socket */
	/* The sender. */
	pthread_t sender;
	int failed_fd;          /* an eventfd: there is something in `failed` */
	pthread_mutex_t lock;   /* all below */
	pthread_cond_t more;
	struct list jobs, failed;
	bool end;
};

uint64_t bridge_now_ms(void);

/* ---- bridge_client.c ---- */

int bridge_client_open(struct bridge *b, int fd);
void bridge_client_close(struct bridge_client *c);
/* Its socket is ready. It may be closed by this. */
void bridge_client_ready(struct bridge_client *c, uint32_t events);
/* Its time is over. It may be closed. */
void bridge_client_late(struct bridge_client *c);
/* The answer of the service; takes over the message. May close it. */
void bridge_client_answer(struct bridge_client *c, struct ripc_message *m,
			  const struct head_answer *a);
/* An answer of the bridge's own. May close it. */
void bridge_client_fail(struct bridge_client *c, unsigned status, const char *why);
/* Less is held: a client of BRIDGE_HELD goes on. */
void bridge_client_go_on(struct bridge_client *c);

/* ---- bridge_service.c ---- */

int bridge_service_start(struct bridge *b);
void bridge_service_stop(struct bridge *b);
/* Takes over nothing; -ENOMEM. */
int bridge_service_ask(struct bridge *b, uint64_t number, const char *text, size_t bytes);
/* Messages have come, or requests could not be sent. */
void bridge_service_receive(struct bridge *b);
void bridge_service_failures(struct bridge *b);

#endif
