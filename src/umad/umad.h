/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibumad.so.3, a drop-in: management datagrams between a program and the port of a running
 * fabric, as ib_umad of the kernel and its library have them (umad_send(3) and so on). Devices that
 * are not busbar's are left to the system's library (system.h). This header has what the files of
 * the room share.
 *
 * A port that is open is an epoll descriptor, which is its number for the program: readable
 * when a message may have come. Behind it is the socket of a fabric (plug/plug.h), or, where this
 * process is plugged into none, the agents of this host (plain.h).
 *
 * Locks: `lock` of a port guards its members and is held while bytes are moved, never while
 * waiting.
 */
#ifndef UMAD_UMAD_H
#define UMAD_UMAD_H

#include <infiniband/umad.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "plug/plug.h"
#include "util/list.h"
#include "wire/mad/mad.h"

#define UMAD_EXPORT __attribute__((visibility("default")))
#define UMAD_CA "soft0"
#define UMAD_PORTS 64
#define UMAD_AGENTS 32
/* Messages that wait in memory for umad_recv(). */
#define UMAD_QUEUED 4096

struct umad_agent {
	bool used;        /* the fabric has it */
	bool waits;       /* for the answer to its registration */
	bool rmpp;        /* long messages are put together and taken apart here */
	uint8_t class;
	uint32_t upper;   /* the upper half of the transaction ids of its requests */
	/* Without a fabric: the sockets of answers and of requests, or -1. */
	int answers, requests;
};

/* A complete message for the program. */
struct umad_message {
	struct list entry;
	struct plug_mad head;
	size_t bytes;     /* of `mad` */
	uint8_t mad[];
};

struct umad_transfer;
struct umad_waiting;

struct umad_port_open {
	int fd;           /* epoll: the number of the port */
	int plug;         /* the socket; -1: this process is plugged in nowhere */
	int wake;         /* eventfd: `queue` is not empty */
	pthread_mutex_t lock;
	unsigned users;   /* calls inside, so that umad_close_port() waits for them */
	bool closing, broken;
	struct umad_agent agents[UMAD_AGENTS];
	struct list queue; /* of struct umad_message */
	unsigned queued;
	struct list transfers; /* of struct umad_transfer: RMPP (rmpp.c) */
	unsigned transfer_count;
	struct list waiting; /* of struct umad_waiting: requests without an answer (plain.c) */
	unsigned waiting_count;
};

/* ---- table.c ---- */
/* The open port with this number, whose `users` it raises; NULL: none of ours. */
struct umad_port_open *umad_port_get(int fd);
void umad_port_put(struct umad_port_open *p);
/* False: the table is full. */
bool umad_port_enter(struct umad_port_open *p);
/* Takes it out of the table; it is freed with the last call inside of it. False: none of ours. */
bool umad_port_leave(int fd);
/* Of one that is not in the table. */
void umad_port_free(struct umad_port_open *p);

/* ---- receive.c ---- */
/* Reads one message of the socket and deals with it; lock is held. 1: one was read, 0: none is there,
 * or a negative errno: the connection has ended. */
int umad_port_pump(struct umad_port_open *p);

/* ---- queue.c ---- */
/* Puts a message into the queue, with a copy of the bytes; lock is held. */
void umad_port_queue(struct umad_port_open *p, const struct plug_mad *head, const void *mad,
		     size_t bytes);

/* ---- link.c ---- */
/* Sends one MAD, to the fabric or to an agent of this host; -EAGAIN: no room now. lock is held. */
int umad_port_put_mad(struct umad_port_open *p, const struct plug_mad *head,
		      const uint8_t mad[PLUG_MAD_BYTES]);

/* As the kernel does, makes the transaction identifier of a request unique on the host: in a copy of the
 * program's MAD, which keeps its own. */
void umad_stamp(const struct umad_agent *a, uint8_t *mad);

/* ---- ca.c ---- */
/* Where this process is plugged in. 1, 0: nowhere, or -EINVAL. */
int umad_place(struct plug_place *place);
/* Is it busbar's adapter? NULL and "" name the first one. */
bool umad_is_ours(const char *ca_name);

#endif
