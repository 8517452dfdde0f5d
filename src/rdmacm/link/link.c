/* SPDX-License-Identifier: BSD-2-Clause */
/* What links of this host and between hosts have in common. */
#include "rdmacm/link/link.h"

#include <stdlib.h>

const struct link_reader *link_reader;

struct cma_link *link_new(void)
{
	struct cma_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	pthread_mutex_init(&link->lock, NULL);
	list_init(&link->entry);
	list_init(&link->ids);
	list_init(&link->waiting);
	link->fd = -1;
	atomic_init(&link->refs, 1);
	return link;
}

void link_hold(struct cma_link *link)
{
	atomic_fetch_add(&link->refs, 1);
}

void link_put(struct cma_link *link)
{
	struct list *entry;

	if (atomic_fetch_sub(&link->refs, 1) != 1)
		return;
	while ((entry = list_pop(&link->waiting)))
		free(list_entry(entry, struct link_waiting, entry));
	pthread_mutex_destroy(&link->lock);
	free(link);
}

const struct hca_gsi_address *link_way(const struct cma_link *link)
{
	return link && link->is_network ? &link->way : NULL;
}
