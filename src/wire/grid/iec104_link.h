/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection of IEC 60870-5-104 (clauses 5 and 9 of edition 2): sequence numbers, windows,
 * timers, start and stop of the data transfer. It has no socket, clock or thread: the owner
 * passes bytes and the time, and gets bytes and ASDUs by calls of its functions. The time is of
 * a clock that nobody sets, so that setting the wall clock ends no connection.
 *
 * After a breach of the protocol or when a timer has run out, `why` is set: the owner closes the
 * connection. The link does nothing from then on.
 */
#ifndef WIRE_GRID_IEC104_LINK_H
#define WIRE_GRID_IEC104_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/grid/iec104.h"

#define IEC104_NEVER UINT64_MAX

struct iec104_settings {
	uint64_t t1_ns; /* until the peer has to acknowledge or to confirm */
	uint64_t t2_ns; /* until what has come is acknowledged at the latest; less than t1 */
	uint64_t t3_ns; /* of silence, until the peer is tested */
	unsigned k;     /* I frames that may wait for an acknowledgement */
	unsigned w;     /* I frames that may come without one; not more than k */
};

/* NULL, or what is wrong with them. */
const char *iec104_settings_check(const struct iec104_settings *s);

enum iec104_state {
	IEC104_STOPPED,     /* no data; so it begins */
	IEC104_STARTING,    /* master: until the slave confirms */
	IEC104_STARTED,
	IEC104_STOPPING,    /* master: until the slave confirms; data may still come */
	IEC104_UNCONFIRMED, /* slave: until the master has acknowledged what it was sent */
};

struct iec104_link;

/* Called from the functions below. They may call iec104_link_send() and iec104_link_stop(). */
struct iec104_link_ops {
	void (*send)(void *arg, const uint8_t *frame, size_t len);
	void (*asdu)(void *arg, const uint8_t *asdu, size_t len);
	/* The peer has the oldest `count` of the ASDUs that were sent. */
	void (*acknowledged)(void *arg, unsigned count);
	/* The data transfer has started or has ended. */
	void (*changed)(void *arg);
};

struct iec104_link {
	const struct iec104_settings *settings;
	const struct iec104_link_ops *ops;
	void *arg;
	bool master;
	enum iec104_state state;
	const char *why;             /* NULL: it works */
	uint16_t sent, received, acknowledged; /* V(S), V(R), Ack */
	unsigned unacknowledged;     /* I frames received since the last acknowledgement */
	uint64_t *sent_ns;           /* of each I frame that waits for one; a ring of k ... */
	unsigned oldest;             /* ... that begins here */
	/* When they run out; IEC104_NEVER: not running. That of I frames is in sent_ns. */
	uint64_t t1_confirm_ns, t1_test_ns, t2_ns, t3_ns;
	uint8_t buffer[IEC104_APDU_MAX];
	size_t filled;               /* bytes of a frame that is not complete */
};

/* Of a new connection. `sent_ns` has room for settings->k numbers; it, settings and ops are used
 * until the end of the link. */
void iec104_link_begin(struct iec104_link *l, bool master, const struct iec104_settings *settings,
		       uint64_t *sent_ns, const struct iec104_link_ops *ops, void *arg,
		       uint64_t now_ns);
/* Bytes from the peer, any number. */
void iec104_link_receive(struct iec104_link *l, const uint8_t *data, size_t len, uint64_t now_ns);
/* Carries out what is due; to be called at iec104_link_due_ns() or later. */
void iec104_link_tick(struct iec104_link *l, uint64_t now_ns);
uint64_t iec104_link_due_ns(const struct iec104_link *l);

/* The number of ASDUs that may be sent now: 0 while the transfer is not started. */
unsigned iec104_link_room(const struct iec104_link *l);
/* The number of ASDUs that were sent and are not acknowledged. */
unsigned iec104_link_waiting(const struct iec104_link *l);
/* False: there is no room. `len` is at most IEC104_ASDU_MAX. */
bool iec104_link_send(struct iec104_link *l, const uint8_t *asdu, size_t len, uint64_t now_ns);

/* Master: starts or stops the data transfer. Nothing if that has happened or is under way. */
void iec104_link_start(struct iec104_link *l, uint64_t now_ns);
void iec104_link_stop(struct iec104_link *l, uint64_t now_ns);
/* Slave: another connection of its redundancy group has started, so that this one is stopped, which
 * the peer is not told. What was sent is still to be acknowledged. Nothing if it is not started. */
void iec104_link_deactivate(struct iec104_link *l);

#endif
