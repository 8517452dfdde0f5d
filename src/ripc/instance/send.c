/* SPDX-License-Identifier: BSD-2-Clause */
/* What sending of short and of long messages has in common. */
#include <errno.h>

#include "ripc/instance/instance.h"

int send_check(struct ripc_service *s, const struct ripc_item *items, unsigned count,
	       const struct ripc_item *returns, unsigned returns_count)
{
	if (!s)
		return ripc_fail(-EINVAL, "no service");
	if (count > RIPC_ITEMS_MAX || returns_count > RIPC_RETURNS_MAX)
		return ripc_fail(-EINVAL, "a message has at most %d items and %d return buffers",
				 RIPC_ITEMS_MAX, RIPC_RETURNS_MAX);
	if ((count && !items) || (returns_count && !returns))
		return ripc_fail(-EINVAL, "a count without its array");
	for (unsigned i = 0; i < count; i++)
		if (items[i].bytes && !items[i].data)
			return ripc_fail(-EINVAL, "item %u has bytes and no address", i);
	for (unsigned i = 0; i < returns_count; i++)
		if (!returns[i].data || !returns[i].bytes)
			return ripc_fail(-EINVAL, "return buffer %u has no address or no bytes",
					 i);
	return 0;
}

int send_lock_peer(struct ripc_service *s, uint32_t to, struct peer **out)
{
	struct ripc *r = s->r;
	int ret = -EHOSTUNREACH;

	for (unsigned i = 0; i < 2; i++) {
		ret = peer_of_service(r, s->id, to, out);
		if (ret)
			return ret;
		ret = peer_lock_connected(*out, UINT64_MAX);
		if (!ret)
			return 0;
		/* It may have moved. */
		routes_forget(r, to, NULL);
		resolver_forget(r->resolver, (*out)->instance);
		peer_put(*out);
	}
	return ret;
}
