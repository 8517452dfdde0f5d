/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of open ports. A port that is closed ends with the last call inside of it. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "umad/plain.h"
#include "umad/rmpp.h"
#include "umad/umad.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct umad_port_open *table[UMAD_PORTS];

/* table_lock is held. */
static struct umad_port_open **find(int fd)
{
	for (unsigned i = 0; i < UMAD_PORTS; i++)
		if (table[i] && table[i]->fd == fd)
			return &table[i];
	return NULL;
}

struct umad_port_open *umad_port_get(int fd)
{
	struct umad_port_open **at, *p = NULL;

	pthread_mutex_lock(&table_lock);
	at = find(fd);
	if (at) {
		p = *at;
		p->users++;
	}
	pthread_mutex_unlock(&table_lock);
	return p;
}

void umad_port_free(struct umad_port_open *p)
{
	struct list *entry;

	umad_rmpp_forget(p);
	umad_plain_forget(p);
	while ((entry = list_pop(&p->queue)))
		free(list_entry(entry, struct umad_message, entry));
	if (p->fd >= 0)
		close(p->fd);
	if (p->wake >= 0)
		close(p->wake);
	if (p->plug >= 0)
		close(p->plug);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void umad_port_put(struct umad_port_open *p)
{
	bool last;

	pthread_mutex_lock(&table_lock);
	last = !--p->users && p->closing;
	pthread_mutex_unlock(&table_lock);
	if (last)
		umad_port_free(p);
}

bool umad_port_enter(struct umad_port_open *p)
{
	bool room = false;

	pthread_mutex_lock(&table_lock);
	for (unsigned i = 0; i < UMAD_PORTS && !room; i++) {
		if (table[i])
			continue;
		table[i] = p;
		room = true;
	}
	pthread_mutex_unlock(&table_lock);
	return room;
}

bool umad_port_leave(int fd)
{
	struct umad_port_open **at, *p = NULL;
	bool last = false;

	pthread_mutex_lock(&table_lock);
	at = find(fd);
	if (at) {
		p = *at;
		*at = NULL;
		p->closing = true;
		last = !p->users;
	}
	pthread_mutex_unlock(&table_lock);
	if (last)
		umad_port_free(p);
	return p;
}
