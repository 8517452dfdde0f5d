/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this room share, from the ground up; see outside.h. */
#ifndef GATEWAY_OUTSIDE_OUTSIDE_PRIVATE_H
#define GATEWAY_OUTSIDE_OUTSIDE_PRIVATE_H

#include "gateway/outside/outside.h"

static inline struct outside *outside_of(struct node *n)
{
	return n->private_data;
}

/* Locks o->lock. Who waits for it comes before a thread that has just unlocked it: while a server
 * sends without end, one turn follows the other. */
static inline void outside_hold(struct outside *o)
{
	pthread_mutex_lock(&o->entry);
	pthread_mutex_lock(&o->lock);
	pthread_mutex_unlock(&o->entry);
}

/* connection.c: does the state of the node say so? */
bool outside_is_connected(const struct outside *o);
/* locked: the connection is to be closed and made again, because of o->why. */
void outside_break(struct outside *o);

/* send.c */
int outside_send_start(struct outside *o);
void outside_send_stop(struct outside *o);
/* Locked: sends what waits, as far as it goes. 0, or an errno of a broken connection. */
int outside_flush(struct outside *o);
/* Locked: what was not confirmed is to be sent again by the next connection. */
void outside_send_lost(struct outside *o);
/* Locked: wakes the thread that waits for room, when there is more than before. */
void outside_tell_room(struct outside *o);

/* pump.c: poll() until `until_ns` of clock_now_ns(), and not for long. */
void outside_wait(struct pollfd fds[], unsigned count, uint64_t until_ns);
/* With o->pump: waits until `until_ns` for the server, and then does what is due. */
void outside_pump(struct outside *o, uint64_t until_ns);
/* With o->pump: does what is due now. */
void outside_work(struct outside *o);

/* receive.c */
int outside_receive_start(struct outside *o);
void outside_receive_stop(struct outside *o);

#endif
