/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a file of events (rules.h), with the rights of this process. */
#ifndef TRANSPORT_PACKET_EVENT_FILE_H
#define TRANSPORT_PACKET_EVENT_FILE_H

#include "transport/packet/event/rules.h"

/* 0, and *out is freed by free(). -EINVAL: `error` says on one line what is wrong with the file;
 * also if it cannot be read, is no regular file or is longer than PACKET_EVENT_TEXT_MAX, and in a
 * set-user-id program, which reads none: who starts it must not learn or choose what it reads.
 * -ENOMEM. */
int packet_event_load(const char *name, struct packet_event_rules **out, char *error,
		      size_t error_bytes);

#endif
