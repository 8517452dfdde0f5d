/* SPDX-License-Identifier: BSD-2-Clause */
/* The authentication code at the end of a packet. */
#ifndef RIPC_PACKET_CODE_H
#define RIPC_PACKET_CODE_H

#include "ripc/wire/packet.h"
#include "ripc/wire/siphash.h"

/* Writes the code of the `length` bytes before `at`; nothing without a secret. */
void packet_code_put(const struct packet_key *key, uint8_t *at, size_t length);

/* `there`: the packet says that a code follows its `length` bytes. -EKEYREJECTED. */
int packet_code_check(const struct packet_key *key, bool there, const uint8_t *bytes,
		      size_t length);

#endif
