/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies into a program's memory whose order its threads may see; see dma.h. */
#include "hca/run/dma.h"

#include <stdatomic.h>

#include "util/container_of.h"

#define BLOCK 4096u
/* Up to here word by word. */
#define ORDERED_BYTES 256u

hca_unseen static void store_words(uint8_t *to, const uint8_t *from, uint64_t length)
{
	for (; length > 0 && (uintptr_t)to % sizeof(uint64_t); length--)
		__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
	for (; length >= sizeof(uint64_t); length -= sizeof(uint64_t)) {
		uint64_t word;

		hca_dma_copy(&word, from, sizeof(word));
		__atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
		to += sizeof(word);
		from += sizeof(word);
	}
	for (; length > 0; length--)
		__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
}

void hca_dma_copy_ordered(uint8_t *to, const uint8_t *from, uint64_t length)
{
	while (length > ORDERED_BYTES) {
		/* The rest of more than nothing is stored in order below. */
		uint64_t part = MIN(length - sizeof(uint64_t), BLOCK);

		hca_dma_copy(to, from, part);
		/* Of the next block nothing before this one. */
		atomic_thread_fence(memory_order_release);
		to += part;
		from += part;
		length -= part;
	}
	store_words(to, from, length);
}
