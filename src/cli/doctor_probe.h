/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The datagrams of `busbar doctor`: a request asks for a reply of some size. Pure
 * functions. Numbers are big-endian.
 *
 *    0  0xfe: as an opcode of RoCE v2 it is one of a manufacturer's own, which no RoCE
 *       port takes
 *    1  0x0f: a transport version that RoCE does not have (it has 0)
 *    2  version of this format, 1
 *    3  kind: 1 request, 2 reply
 *    4  destination queue pair of RoCE, four bytes of 0: none, so that busbar's own
 *       programs drop it, too
 *    8  "busbarDr"
 *   16  session, four bytes, chosen by who asks
 *   20  sequence number, four bytes
 *   24  length of this datagram, two bytes: it is no other one, cut or padded
 *   26  request: wanted length of the reply; reply: length that the request had
 *   28  status of a reply, one byte; 0 in a request
 *   29  three bytes of 0
 *   32  token, eight bytes: only who has got a token by a short reply gets long ones, so
 *       that nobody has them sent to somebody else
 *   40  zeros up to the length
 */
#ifndef CLI_DOCTOR_PROBE_H
#define CLI_DOCTOR_PROBE_H

#include <stddef.h>
#include <stdint.h>

#define DOCTOR_PROBE_BYTES 40   /* the shortest */
#define DOCTOR_PROBE_MAX 9000
#define DOCTOR_PROBE_VERSION 1

enum doctor_kind { DOCTOR_REQUEST = 1, DOCTOR_REPLY = 2 };

enum doctor_status {
	DOCTOR_DONE = 0,
	DOCTOR_TOO_LONG = 1, /* the wanted reply is longer than the interface takes */
	DOCTOR_TOKEN = 2,    /* for a long one the token of this reply is needed */
};

struct doctor_probe {
	enum doctor_kind kind;
	enum doctor_status status;
	uint32_t session, sequence;
	uint16_t length; /* of this datagram */
	uint16_t other;  /* see 26 above */
	uint64_t token;
};

/* Writes p->length bytes, which is DOCTOR_PROBE_BYTES to DOCTOR_PROBE_MAX. */
void doctor_probe_encode(const struct doctor_probe *p, uint8_t *to);

/* 0; -EBADMSG: it is no probe; -EPROTONOSUPPORT: one of another version. *p is written in
 * the first case only; all its fields are within their ranges then. */
int doctor_probe_decode(const void *bytes, size_t len, struct doctor_probe *p);

#endif
