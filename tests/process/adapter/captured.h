/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets of a side's capture, taken to pieces again: by our decoder what the headers
 * of InfiniBand hold, by code of this file's own the checksums and the ICRC.
 */
#ifndef ADAPTER_CAPTURED_H
#define ADAPTER_CAPTURED_H

#include "pair.h"
#include "wire/ib/header.h"

enum { CAPTURED_MAX = 4096, MTU = 1024 };

struct captured {
	bool out;             /* it left */
	const uint8_t *frame; /* from the Ethernet header on */
	uint32_t length;
	uint8_t src[4], dst[4]; /* IPv4 */
	struct ib_packet ib;
	const uint8_t *payload;
	char comment[32];
};

struct capture_of {
	struct captured at[CAPTURED_MAX];
	unsigned count;
	/* By direction and kind: over loop an answer may be shown before its request. */
	unsigned next[2][2];
	void *bytes;
};

/* A folder for captures, and the settings by which all processes write there; before
 * run_cases(), and behind it. With CAPTURED_IN that folder, which is kept. */
void captured_begin(void);
void captured_end(void);

/* What side `s` captured; it must be closed. Every packet is checked. */
void captured_load(const struct side *s, struct capture_of *c);
void captured_free(struct capture_of *c);
/* From the first one on again. */
void captured_rewind(struct capture_of *c);

/* The next one that left (or came) and is a request (or an answer); the test fails if
 * there is none. */
const struct captured *captured_request(struct capture_of *c, bool out);
const struct captured *captured_answer(struct capture_of *c, bool out);
/* The same, or NULL. */
const struct captured *captured_any(struct capture_of *c, bool out, bool answer);

#endif
