/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes of this host take raw frames (carrier/raw.h): those that listen under the
 * name of their slot (slots.h), "busbar.roce.<port>.raw.<slot>", and run as our user.
 */
#ifndef TRANSPORT_ROCE_RAW_H
#define TRANSPORT_ROCE_RAW_H

#include <stdbool.h>
#include <stdint.h>

/* This process does from now on, for its slot. The progress thread runs. 0 or a negative
 * errno. One caller at a time, as of the next two. */
int roce_raw_announce(uint16_t port, unsigned slot);
/* Not any more; also without roce_raw_announce(). Not on the progress thread. */
void roce_raw_withdraw(void);
/* In a forked child. */
void roce_raw_forked(void);

/* Does the process of this host with that queue pair number? The answer may be half a second
 * old, unless it is to be `fresh`. Any thread, with locks of queue pairs held. */
bool roce_raw_is_taken(uint32_t qpn, bool fresh);

#endif
