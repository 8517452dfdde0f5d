/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The instance that is tormented, in a process of its own, which does what it is told over a
 * socket. Services: VICTIM_ECHO sends back what comes; VICTIM_OFFERS offers return buffers;
 * VICTIM_DEAF never receives; VICTIM_PASSING is there as long as it is told.
 */
#ifndef TEST_VICTIM_H
#define TEST_VICTIM_H

#include <busbar/ripc.h>
#include <stdint.h>

enum { VICTIM_ECHO = 100, VICTIM_OFFERS, VICTIM_DEAF, VICTIM_PASSING, VICTIM_OTHERS = 900 };
enum { VICTIM_BUFFER_BYTES = 4096, VICTIM_CONNECTIONS = 24, VICTIM_TIMEOUT_MS = 1000,
       VICTIM_MESSAGE_MAX = 32 << 20 };

enum victim_order {
	ORDER_TELL,      /* nothing but the answer */
	ORDER_OFFER,     /* a short message to service `argument` with the return buffer */
	ORDER_REVOKE,    /* takes it back: result is how many */
	ORDER_SHORTS,    /* short messages with a return buffer each to it, until an error */
	ORDER_LONG,      /* begins a long message to it */
	ORDER_SENT,      /* waits for its end for at most `argument` ms */
	ORDER_OPEN,      /* VICTIM_PASSING */
	ORDER_CLOSE,
	ORDER_PASS,      /* sends a long message from there to it, and waits for its end */
	ORDER_END,
};

struct victim_command {
	uint32_t order, argument;
};

struct victim_answer {
	int result;
	uint64_t instance;
	uint16_t port;
	uint64_t buffer;         /* address of the return buffer */
	uint64_t guards_changed; /* bytes around it */
	uint64_t buffer_changed;
	uint64_t messages, returned; /* to VICTIM_OFFERS; those of them in the buffer */
	uint64_t descriptors, rss_kb;
	struct ripc_counters counters;
};

struct victim {
	int fd;
	int pid;
};

/* Forks. `hosts`: a file for the resolver, which has the services from VICTIM_OTHERS on. */
struct victim victim_start(const char *hosts, const char *secret_file, uint16_t port);
void victim_order(const struct victim *v, enum victim_order order, uint32_t argument);
struct victim_answer victim_wait(const struct victim *v);
/* Both. */
struct victim_answer victim_tell(const struct victim *v, enum victim_order order,
				 uint32_t argument);
/* Its exit status; 0: all was closed in order. */
int victim_end(const struct victim *v);

#endif
