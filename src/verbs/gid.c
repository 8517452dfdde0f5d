/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GID and P_Key tables. The _ex and _table functions get the size of the caller's
 * entries, because the structure may grow: at most that many bytes of an entry are
 * written, and the caller's further bytes are cleared.
 */
#include <infiniband/verbs.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/hca.h"
#include "verbs/abi.h"
#include "verbs/system.h"

enum {
	/* More than any table has: limits the memory that a wrong count allocates. */
	GID_ENTRIES_MAX = 64 * 1024,
};

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num,
			 int index, union ibv_gid *gid)
{
	VERBS_FORWARD(context, verbs_minus1, ibv_query_gid, context, port_num,
		      index, gid);

	struct ibv_gid_entry entry = { 0 };
	int ret;

	if (!context || !gid || index < 0)
		return verbs_minus1(-EINVAL);
	ret = hca_gid_query(context, port_num, (uint32_t)index, &entry);
	/* An empty entry within the table reads as the zero GID. */
	if (ret && ret != -ENODATA)
		return verbs_minus1(ret);
	*gid = entry.gid;
	return 0;
}

static void verbs_gid_entry_copy(void *to, size_t size,
				 const struct ibv_gid_entry *from)
{
	if (size > sizeof(*from)) {
		memset((char *)to + sizeof(*from), 0, size - sizeof(*from));
		size = sizeof(*from);
	}
	memcpy(to, from, size);
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
			     uint32_t gid_index, struct ibv_gid_entry *entry,
			     uint32_t flags, size_t entry_size)
{
	VERBS_FORWARD(context, verbs_errno, _ibv_query_gid_ex, context,
		      port_num, gid_index, entry, flags, entry_size);

	struct ibv_gid_entry found = { 0 };
	int ret;

	if (!context || !entry)
		return verbs_errno(-EINVAL);
	if (flags)
		return verbs_errno(-EOPNOTSUPP);
	ret = hca_gid_query(context, port_num, gid_index, &found);
	if (ret)
		return verbs_errno(ret);
	verbs_gid_entry_copy(entry, entry_size, &found);
	return 0;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context,
				    struct ibv_gid_entry *entries,
				    size_t max_entries, uint32_t flags,
				    size_t entry_size)
{
	VERBS_FORWARD(context, verbs_raw, _ibv_query_gid_table, context,
		      entries, max_entries, flags, entry_size);

	size_t room = max_entries < GID_ENTRIES_MAX ? max_entries :
						      GID_ENTRIES_MAX;
	struct ibv_gid_entry *found;
	ssize_t count, i;

	if (!context || !entries || !max_entries)
		return -EINVAL;
	if (flags)
		return -EOPNOTSUPP;
	/* One more than the caller has room for, to detect a table that is longer. */
	found = calloc(room + 1, sizeof(*found));
	if (!found)
		return -ENOMEM;
	count = hca_gid_table(context, found, room + 1);
	if (count > (ssize_t)room)
		count = -EINVAL;
	for (i = 0; i < count; i++)
		verbs_gid_entry_copy((char *)entries + (size_t)i * entry_size,
				     entry_size, &found[i]);
	free(found);
	return count;
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num,
			  int index, __be16 *pkey)
{
	VERBS_FORWARD(context, verbs_minus1, ibv_query_pkey, context, port_num,
		      index, pkey);
	if (!context || !pkey || index < 0)
		return verbs_minus1(-EINVAL);
	return verbs_minus1(hca_pkey_query(context, port_num, index, pkey));
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num,
			      __be16 pkey)
{
	VERBS_FORWARD(context, verbs_minus1, ibv_get_pkey_index, context,
		      port_num, pkey);

	int index = context ? hca_pkey_index(context, port_num, pkey) : -EINVAL;

	return index < 0 ? verbs_minus1(index) : index;
}
