/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the test of hostile peers: misdeeds, and what they are done with. */
#ifndef TEST_HOSTILE_H
#define TEST_HOSTILE_H

#include <stdatomic.h>

#include "evil.h"
#include "util/prng.h"
#include "victim.h"

#define VICTIM_SECRET "0123456789abcdef"

enum { SOON_MS = 3000, GOOD = 500 };

extern struct victim victim, secretive;
extern struct evil_target target, secret_target;
extern struct prng prng;
extern uint32_t next_service;          /* of ours, that the victim has not heard of yet */
extern _Atomic uint64_t our_instance;  /* that all of them are said to be at */

void noise(uint8_t *at, size_t bytes);
uint64_t draw(void);                   /* odd */
struct victim_answer order(enum victim_order what, uint32_t argument);
uint64_t bad_packets(void);            /* of the victim */
/* A message from the good peer and its answer. */
void is_served(bool is_long);
/* A connection that keeps to the rules so far. */
void join(struct evil *e);

/* hostile_messages.c */
void messages_that_are_none(void);
void return_buffers(void);
void memory_that_is_none(void);
void lengths_and_numbers(void);
void refusals_are_not_forgotten(void);
void ends_of_nothing(void);
void gone_while_fetched(void);
void closed_while_fetched(void);

/* hostile_connections.c */
void credits(void);
void more_than_allowed(void);
void more_than_allowed_in_parts(void);
void requests(void);
void without_the_secret(void);
void recorded_requests(void);
void silent_connections(void);
void replaced_connection(void);

#endif
