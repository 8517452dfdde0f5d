/* SPDX-License-Identifier: BSD-2-Clause */
/* A set of addresses by open addressing: see live.h. */
#include "hca/object/live.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define BITS_MIN 6

static struct {
	pthread_mutex_t lock;
	uintptr_t *slots; /* 0: free; NULL: there are none */
	unsigned bits;
	size_t used;
	bool incomplete;  /* out of memory: all addresses count as valid */
} set = { .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t mask(void)
{
	return ((size_t)1 << set.bits) - 1;
}

static size_t home(uintptr_t entry)
{
	return (size_t)((entry * UINT64_C(0x9e3779b97f4a7c15)) >>
			(64 - set.bits));
}

/* The index of the entry, or the one where it is to be stored. */
static size_t place(uintptr_t entry)
{
	size_t i = home(entry);

	while (set.slots[i] && set.slots[i] != entry)
		i = (i + 1) & mask();
	return i;
}

static bool resize(unsigned bits)
{
	uintptr_t *old = set.slots, *slots;
	size_t count = old ? mask() + 1 : 0;

	slots = calloc((size_t)1 << bits, sizeof(*slots));
	if (!slots)
		return false;
	set.slots = slots;
	set.bits = bits;
	for (size_t i = 0; i < count; i++)
		if (old[i])
			slots[place(old[i])] = old[i];
	free(old);
	return true;
}

/* Enlarges the table if three quarters of it are used. */
static bool make_room(void)
{
	if (!set.slots)
		return resize(BITS_MIN);
	return set.used < (mask() + 1) / 4 * 3 || resize(set.bits + 1);
}

void hca_live_begin(const void *object, enum hca_kind kind)
{
	uintptr_t entry = (uintptr_t)object | kind;

	pthread_mutex_lock(&set.lock);
	if (make_room()) {
		set.slots[place(entry)] = entry;
		set.used++;
	} else {
		set.incomplete = true;
	}
	pthread_mutex_unlock(&set.lock);
}

/* Removes an entry, and moves later entries of the same run into the gap. */
static void take_out(size_t hole)
{
	for (size_t i = (hole + 1) & mask(); set.slots[i]; i = (i + 1) & mask()) {
		size_t wanted = home(set.slots[i]);

		if (((i - wanted) & mask()) < ((i - hole) & mask()))
			continue;
		set.slots[hole] = set.slots[i];
		hole = i;
	}
	set.slots[hole] = 0;
}

void hca_live_end(const void *object, enum hca_kind kind)
{
	uintptr_t entry = (uintptr_t)object | kind;
	size_t i;

	pthread_mutex_lock(&set.lock);
	i = set.slots ? place(entry) : 0;
	if (set.slots && set.slots[i]) {
		take_out(i);
		if (--set.used == 0) {
			free(set.slots);
			set.slots = NULL;
		}
	}
	pthread_mutex_unlock(&set.lock);
}

bool hca_live(const void *object, enum hca_kind kind)
{
	uintptr_t entry = (uintptr_t)object | kind;
	bool live;

	pthread_mutex_lock(&set.lock);
	live = set.incomplete ||
	       (set.slots && set.slots[place(entry)] == entry);
	pthread_mutex_unlock(&set.lock);
	return live;
}

void hca_live_forked(void)
{
	/* Another thread may have held it at the fork, in the middle of a change. */
	if (pthread_mutex_trylock(&set.lock))
		set.incomplete = true;
	else
		pthread_mutex_unlock(&set.lock);
	pthread_mutex_init(&set.lock, NULL);
}
