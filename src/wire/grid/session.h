/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routed GOOSE and sampled values: the session protocol of IEC TR 61850-90-5 (version 1 of its
 * header) and IEC 61850-8-1 edition 2.1 (version 2), which UDP carries at port 102, behind the
 * header of the connectionless transport protocol (ISO 8602; RFC 1240). A datagram has one payload
 * or several, each with the body of a message of goose.h or sv.h.
 *
 * Without security: what is signed or encrypted is told apart, and its payloads cannot be read.
 * Pure functions.
 */
#ifndef WIRE_GRID_SESSION_H
#define WIRE_GRID_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/grid/ber.h"

enum {
	SESSION_PORT = 102,
	SESSION_HEAD_MAX = 40, /* bytes in front of the body of the first payload */
};

enum session_kind { SESSION_TUNNELED = 0xa0, SESSION_GOOSE, SESSION_SV, SESSION_MANAGEMENT };
enum session_payload { SESSION_PAYLOAD_GOOSE = 0x81, SESSION_PAYLOAD_SV = 0x82 };

struct session {
	uint8_t kind;             /* enum session_kind */
	uint32_t number;          /* of the datagram */
	uint16_t version;         /* 1 or 2 */
	uint32_t key_time, key_id; /* TimeOfCurrentKey */
	int16_t next_key_minutes; /* TimeToNextKey */
	uint8_t encryption, authentication; /* algorithms of version 1; 0: none */
	struct ber vector;        /* of version 2: initialization vector; len 0: not encrypted */
	struct ber signature;     /* len 0: not signed */
	struct ber payloads;      /* for session_next() */
};

/* One payload. */
struct session_part {
	uint8_t type;             /* enum session_payload, or another one */
	bool simulation;
	uint16_t appid;
	struct ber body;
};

/* A datagram. NULL, or what is wrong with it. */
const char *session_decode(const uint8_t *data, size_t len, struct session *s);
/* NULL: its payloads can be read; or what kind of security it has. */
const char *session_security(const struct session *s);
/* The next payload. 1; 0: that was the last one; -EPROTO: its length is wrong. */
int session_next(struct ber *payloads, struct session_part *p);

/* Puts the header of a datagram with one payload in front of its body, which is there, without
 * security: at[-SESSION_HEAD_MAX] to at[len - 1] is the caller's. The first byte; *len grows. */
uint8_t *session_wrap(const struct session *s, const struct session_part *p, uint8_t *body,
		      size_t *len);

#endif
