/* SPDX-License-Identifier: BSD-2-Clause */
/* See silence.h. */
#include "gateway/ws/silence.h"

#include "util/container_of.h"

enum ws_silence_step ws_silence_look(struct ws_silence *s, uint64_t now_ns, uint64_t ping_ns,
				     uint64_t timeout_ns, uint64_t *until_ns)
{
	*until_ns = UINT64_MAX;
	if (!ping_ns)
		return WS_SILENCE_WAIT;
	if (s->asked_ns) {
		*until_ns = MAX(s->asked_ns, s->heard_ns) + timeout_ns;
		return now_ns < *until_ns ? WS_SILENCE_WAIT : WS_SILENCE_GIVE_UP;
	}
	if (now_ns < s->heard_ns + ping_ns) {
		*until_ns = s->heard_ns + ping_ns;
		return WS_SILENCE_WAIT;
	}
	s->asked_ns = now_ns;
	*until_ns = now_ns + timeout_ns;
	return WS_SILENCE_ASK;
}
