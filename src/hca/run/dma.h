/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies between the program's memory and a peer's, on the peer's behalf. For the program
 * they are like DMA of an adapter: it learns of them through its peer. A thread sanitizer,
 * which sees this process only, cannot know the order; therefore these copies are hidden
 * from it.
 */
#ifndef HCA_DMA_H
#define HCA_DMA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HCA_UNSEEN_COPIES
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define HCA_UNSEEN_COPIES
#endif

#define hca_unseen __attribute__((no_sanitize("thread")))

#ifdef HCA_UNSEEN_COPIES
__attribute__((unused)) hca_unseen static void
hca_dma_copy(void *to, const void *from, size_t length)
{
	volatile uint8_t *t = to;
	const volatile uint8_t *f = from;

	while (length-- > 0)
		*t++ = *f++;
}
#else
static inline void hca_dma_copy(void *to, const void *from, size_t length)
{
	memcpy(to, from, length);
}
#endif

/* Copies so that the bytes become visible in ascending order, by blocks, and the
 * last ones last: programs wait for the last byte of a WRITE. */
void hca_dma_copy_ordered(uint8_t *to, const uint8_t *from, uint64_t length);

/* For so much that the caches do not keep it: the stores go by them, in no order, and are visible
 * before later ones of this thread. */
void hca_dma_copy_past_caches(uint8_t *to, const uint8_t *from, uint64_t length);

#endif
