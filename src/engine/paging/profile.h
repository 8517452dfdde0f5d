/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a generation of adapters serves memory on demand (on-demand paging, ODP), and its timeouts:
 * the parameters of the model in paging.h. Built-in profiles describe adapters that were measured
 * (T. Fukuoka, "ODP performance pitfalls of InfiniBand", University of Tokyo 2021; public
 * measurements since); a file in the same form describes another one:
 *
 *     # source: who has measured what
 *     fault_us = 500
 *
 * A line is empty, a comment, or a parameter and its value; a parameter without a line has the
 * value of the profile `ideal`.
 */
#ifndef ENGINE_PAGING_PROFILE_H
#define ENGINE_PAGING_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct paging_profile {
	/* From the interrupt until the adapter's table has the pages. */
	uint64_t fault_us;
	/* A responder sends its RNR NAK so long after it found the page missing. */
	uint64_t nak_read_us, nak_us;
	/* A requester that has no page for the response to a READ discards it, and sends the READ
	 * again after this time, whether the page is there or not; 0: when it is there. */
	uint64_t resend_us;
	/* The first response from a page that was missing comes so much later. */
	uint64_t first_use_us;
	/* How long a requester waits after an RNR NAK, in thousandths of the time that it names. */
	uint64_t rnr_permille;
	/* The lowest local ACK timeout that the adapter has, as a code of 5 bits; and its timeout in
	 * thousandths of what the code says. */
	uint64_t timeout_floor, timeout_permille;
	/* A request that is not answered is first sent again so many times, within so many
	 * thousandths of a timeout; together they use two retries. 0: it is not. */
	uint64_t burst, burst_permille;
	/* Requests that are posted while the queue pair waits to repeat another one get lost when
	 * they are sent first (packet damming). */
	bool loses_posted;
	/* A responder that has sent an RNR NAK for a READ answers that READ when it has the page. */
	bool late_response;
	/* Where several queue pairs of a requester found a page missing, each learns by itself that it
	 * is there, one after the other, in this time (packet flood), longer by so many millionths
	 * for each of them that waits. 0: all learn it together. */
	uint64_t refresh_us, refresh_growth_ppm;
};

/* Reads the text of a profile; `text` ends with a NUL byte. 0, or -EINVAL and what is wrong, with
 * its line. */
int paging_profile_parse(const char *text, struct paging_profile *out, char *why, size_t why_bytes);
/* The text of a built-in profile; NULL: there is none of that name. */
const char *paging_profile_text(const char *name);
/* The names of the built-in ones, in one string with ", " between them. */
extern const char paging_profile_names[];

/* The timeout of a local ACK timeout code (5 bits); 0: none. */
uint64_t paging_timeout_ns(const struct paging_profile *p, uint8_t code);

#endif
