/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events at packet numbers, as a file of BUSBAR_FAULTS (events=FILE) describes them: which packet
 * of which queue pair is dropped, delayed, marked, corrupted or duplicated. One event a line:
 *
 *   ACTION packet N [by TIME] of qp WHOSE in|out [CLASS] [first|each|again K]
 *   ACTION packets N-M ...
 *
 *   ACTION  drop, delay (which needs `by TIME`), mark, corrupt or duplicate
 *   TIME    a whole number with ns, us, ms or s, up to an hour
 *   WHOSE   any (each queue pair by itself), the number of a queue pair of this end (18 or
 *           0x12), or nth N: the N-th queue pair that sends
 *   CLASS   send, write, read-request, read-response, ack, nak, atomic or cnp; packets of other
 *           classes are not counted then
 *   first   counts first transmissions only (the default), each counts all; again K means the K-th
 *           retransmission of the packet that has this number among the first transmissions
 *
 * From # on a line is a comment. Packets are counted from 1, for each queue pair and direction.
 * Nothing here knows packets or files; see watch.h and file.h.
 */
#ifndef TRANSPORT_PACKET_EVENT_RULES_H
#define TRANSPORT_PACKET_EVENT_RULES_H

#include <stddef.h>
#include <stdint.h>

#define PACKET_EVENT_RULES_MAX 256
#define PACKET_EVENT_TEXT_MAX 65536 /* bytes of a file */
#define PACKET_EVENT_LINE_BYTES 320 /* of the line that tells an event (outcome.h) */

enum packet_event_action {
	PACKET_EVENT_DROP,
	PACKET_EVENT_DELAY,
	PACKET_EVENT_MARK,
	PACKET_EVENT_CORRUPT,
	PACKET_EVENT_DUPLICATE,
	PACKET_EVENT_ACTIONS,
};

enum packet_event_class {
	PACKET_EVENT_ANY_CLASS,
	PACKET_EVENT_SEND,
	PACKET_EVENT_WRITE,
	PACKET_EVENT_READ_REQUEST,
	PACKET_EVENT_READ_RESPONSE,
	PACKET_EVENT_ACK,
	PACKET_EVENT_NAK,    /* of any kind: sequence error, receiver not ready, refused */
	PACKET_EVENT_ATOMIC, /* requests and answers */
	PACKET_EVENT_CNP,
	PACKET_EVENT_CLASSES,
};

enum packet_event_whose { PACKET_EVENT_ANY_QP, PACKET_EVENT_QP, PACKET_EVENT_NTH_QP };
enum packet_event_which { PACKET_EVENT_FIRST, PACKET_EVENT_EACH, PACKET_EVENT_AGAIN };

struct packet_event_rule {
	uint32_t line;      /* of the file, from 1 */
	uint8_t action;     /* enum packet_event_action */
	uint8_t direction;  /* enum carrier_direction */
	uint8_t class;      /* enum packet_event_class */
	uint8_t whose;      /* enum packet_event_whose */
	uint8_t which;      /* enum packet_event_which */
	uint8_t again;      /* K */
	uint32_t qp;        /* number, or N of nth */
	uint32_t from, to;  /* numbers of packets, 1 at least */
	uint64_t delay_ns;
};

struct packet_event_rules {
	unsigned count;
	struct packet_event_rule rule[PACKET_EVENT_RULES_MAX];
};

/* Names as the file has them. */
extern const char *const packet_event_actions[PACKET_EVENT_ACTIONS];
extern const char *const packet_event_classes[PACKET_EVENT_CLASSES];

/* `name` is that of the file, for errors. 0; -EINVAL: *rules is as it was, and `error` says on one
 * line which line of the file is wrong, what was read, and what would be right. */
int packet_event_parse(const char *name, const char *text, size_t bytes,
		       struct packet_event_rules *rules, char *error, size_t error_bytes);

#endif
