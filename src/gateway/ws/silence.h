/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the other end of a connection is still there: who is silent is asked, and given up
 * if it does not answer. Pure; times are of any one clock. */
#ifndef GATEWAY_WS_SILENCE_H
#define GATEWAY_WS_SILENCE_H

#include <stdint.h>

struct ws_silence {
	uint64_t heard_ns; /* it has said something, or taken what it was sent */
	uint64_t asked_ns; /* since when a ping is under way; 0: none is */
};

enum ws_silence_step {
	WS_SILENCE_WAIT,    /* until *until_ns, UINT64_MAX: for ever */
	WS_SILENCE_ASK,     /* a ping is to be sent now; counts as sent */
	WS_SILENCE_GIVE_UP,
};

/*
 * Who is silent for ping_ns (0: never mind) is asked, and has timeout_ns to answer. That
 * time counts from the question on, so that a pause of this process is not taken for silence
 * of the other end.
 */
enum ws_silence_step ws_silence_look(struct ws_silence *s, uint64_t now_ns, uint64_t ping_ns,
				     uint64_t timeout_ns, uint64_t *until_ns);

/* It has said something. */
static inline void ws_silence_broken(struct ws_silence *s, uint64_t now_ns)
{
	*s = (struct ws_silence){ .heard_ns = now_ns };
}

#endif
