/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of iWARP that a hostile peer breaks in terminates.c, and what has to be said about each. */
#ifndef ADAPTER_TERMINATES_H
#define ADAPTER_TERMINATES_H

#include "raw.h"

enum {
	FROM = 8192, TO = 16384,  /* the memory that the peer may use */
	IRD = 4,                  /* of stream.c */
	RECEIVE_BYTES = 100,      /* of the only receive, at the beginning of the memory */
};

/* Memory of the victim. */
struct prey {
	struct region open;       /* all rights but to atomics, FROM to TO */
	struct region closed;     /* no rights */
	struct region atomic;     /* the right to atomics */
	struct region foreign;    /* all rights, of another protection domain */
};

struct attack {
	const char *name;
	void (*make)(struct raw *r, const struct prey *prey);
	uint16_t says;            /* the TERMINATE: layer, type, and two digits of the code */
	enum ibv_event_type event;
	struct raw_how how;
	bool received;            /* the receive is complete; */
	enum ibv_wc_status receive; /* else with this error; 0: it is flushed */
	bool bad_receive;         /* of a key that is none */
	/* Of [0, receive) and [FROM, FROM + open) bytes were written before, as they may be. */
	uint32_t may_receive, may_open;
};

/* attacks.c */
extern const struct attack attacks[];
extern const unsigned attack_count;
/* attacks_extended.c: of a peer whose victim has BUSBAR_IWARP_EXTENSIONS. */
extern const struct attack extended_attacks[];
extern const unsigned extended_attack_count;

#endif
