/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for a signal and for other descriptors; see wakeup.h. */
#include "util/wakeup.h"

#include "util/clock.h"

/* A thread may be cancelled in it: AddressSanitizer then takes its frame for one that is still
 * there. */
__attribute__((no_sanitize_address))
void wakeup_poll(struct pollfd fds[], unsigned count, uint64_t until_ns)
{
	uint64_t now = clock_now_ns();
	struct timespec t = timespec_from_ns(until_ns > now ? until_ns - now : 0);

	ppoll(fds, count, until_ns == UINT64_MAX ? NULL : &t, NULL);
	if (fds[0].revents)
		wakeup_drain(fds[0].fd);
}
