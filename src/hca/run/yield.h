/* SPDX-License-Identifier: BSD-2-Clause */
/* How a thread that polls in vain shares its processor with others. */
#ifndef HCA_YIELD_H
#define HCA_YIELD_H

#include <stdbool.h>
#include <stdint.h>

/* Called now and then by a thread that has found nothing since the last call. Does nothing where
 * BUSBAR_POLL_YIELD is off. `peer_ran_on`: may a peer be waiting for this processor? NULL: yes. */
void hca_yield(bool (*peer_ran_on)(unsigned cpu));

/* Do other threads of the program use processors, so that a thread which polls may keep one of them
 * from running? `now_ns`: of progress_now_ns(). Looks at what they used in the last 10 ms or more. */
bool hca_others_compute(uint64_t now_ns);

#endif
