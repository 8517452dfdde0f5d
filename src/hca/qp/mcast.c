/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups that QPs of this process are attached to (ibv_attach_mcast(3);
 * InfiniBand specification volume 1, 10.5). A group is identified by its GID. On Ethernet
 * there are no multicast LIDs, so the LID argument is ignored.
 *
 * Peers read a filter of bits in the shared segment, which has the bits of all groups in
 * use; transports to other hosts are told of each group (hca_transport_ops.group). Each
 * datagram that arrives is delivered to the QPs that are attached here.
 */
#define LOG_ROOM "hca"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/hca.h"
#include "hca/host/settings.h"
#include "hca/limits.h"
#include "hca/object/qp.h"
#include "hca/path/path.h"
#include "hca/qp/address.h"
#include "hca/share/process.h"
#include "util/list.h"
#include "util/log.h"
#include "util/spin.h"

struct member {
	struct list entry;
	struct hca_qp *qp;
};

struct group {
	union ibv_gid gid;
	uint16_t lid; /* as the program gave it */
	unsigned bit;
	struct list members;
};

static struct {
	pthread_mutex_t change;  /* held while attaching and detaching */
	struct spin lock;        /* held while the lists change, and by deliveries */
	struct group *groups[HCA_MCAST_GROUPS]; /* the first `count` are used */
	unsigned count, members;
} mcast = { .change = PTHREAD_MUTEX_INITIALIZER };

bool hca_gid_is_multicast(const union ibv_gid *gid)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };

	return gid->raw[0] == 0xff || (!memcmp(gid->raw, v4, sizeof(v4)) &&
				       (gid->raw[12] & 0xf0) == 0xe0);
}

unsigned hca_mcast_bit(const union ibv_gid *gid)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (unsigned i = 0; i < sizeof(gid->raw); i++)
		hash = (hash ^ gid->raw[i]) * UINT64_C(0x100000001b3);
	return (unsigned)(hash >> 32) % HCA_MCAST_BITS;
}

/* `change` or `lock` is held for these. */
static struct group *group_find(const union ibv_gid *gid, unsigned *index)
{
	for (unsigned i = 0; i < mcast.count; i++) {
		if (!memcmp(mcast.groups[i]->gid.raw, gid->raw, 16)) {
			*index = i;
			return mcast.groups[i];
		}
	}
	return NULL;
}

static struct member *member_find(struct group *g, const struct hca_qp *qp)
{
	list_for_each(m, &g->members, struct member, entry)
		if (m->qp == qp)
			return m;
	return NULL;
}

static void filter_publish(void)
{
	uint64_t words[HCA_MCAST_BITS / 64] = { 0 };

	for (unsigned i = 0; i < mcast.count; i++)
		words[mcast.groups[i]->bit / 64] |=
			UINT64_C(1) << mcast.groups[i]->bit % 64;
	for (unsigned i = 0; i < HCA_MCAST_BITS / 64; i++)
		atomic_store(&hca_process.segment->mcast_filter[i], words[i]);
}

static int group_new(const union ibv_gid *gid, uint16_t lid, struct group **out)
{
	struct group *g;

	if (mcast.count == HCA_MCAST_GROUPS)
		return -ENOMEM;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->gid = *gid;
	g->lid = lid;
	g->bit = hca_mcast_bit(gid);
	list_init(&g->members);
	*out = g;
	return 0;
}

/* `change` is held. */
static int attach(struct hca_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	unsigned index;
	struct group *g = group_find(gid, &index);
	bool is_new = !g;
	struct member *m;
	int ret;

	if (g && member_find(g, qp))
		return 0; /* once is enough: a single copy is received */
	if (mcast.members == HCA_MCAST_MEMBERS)
		return -ENOMEM;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	if (is_new) {
		ret = group_new(gid, lid, &g);
		if (ret) {
			free(m);
			return ret;
		}
		ret = hca_transports_group(gid, lid, true);
		if (ret) {
			free(g);
			free(m);
			return ret;
		}
	}
	m->qp = qp;
	spin_lock(&mcast.lock);
	list_push(&g->members, &m->entry);
	if (is_new)
		mcast.groups[mcast.count++] = g;
	spin_unlock(&mcast.lock);
	mcast.members++;
	atomic_fetch_add(&qp->mcast_groups, 1);
	filter_publish();
	return 0;
}

static int check(struct ibv_qp *ibqp, const union ibv_gid *gid)
{
	return ibqp->qp_type == IBV_QPT_UD && hca_gid_is_multicast(gid) ?
		       0 :
		       -EINVAL;
}

int hca_mcast_attach(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	int ret = check(ibqp, gid);

	if (hca_without(ibqp->context) & HCA_WITHOUT_MULTICAST)
		return -EOPNOTSUPP;
	if (ret)
		return ret;
	pthread_mutex_lock(&mcast.change);
	ret = attach(hca_qp(ibqp), gid, lid);
	pthread_mutex_unlock(&mcast.change);
	/* After the group is in the filter: a new sender either is found here or finds the bit. */
	if (!ret)
		hca_local_group_enter(true);
	return ret;
}

int hca_mcast_detach(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	struct hca_qp *qp = hca_qp(ibqp);
	struct member *m = NULL;
	struct group *g;
	unsigned index;

	if (check(ibqp, gid))
		return -EINVAL;
	pthread_mutex_lock(&mcast.change);
	g = group_find(gid, &index);
	if (g)
		m = member_find(g, qp);
	if (!m) {
		pthread_mutex_unlock(&mcast.change);
		return -EINVAL;
	}
	spin_lock(&mcast.lock);
	list_remove(&m->entry);
	if (list_empty(&g->members))
		mcast.groups[index] = mcast.groups[--mcast.count];
	spin_unlock(&mcast.lock);
	mcast.members--;
	atomic_fetch_sub(&qp->mcast_groups, 1);
	if (list_empty(&g->members)) {
		filter_publish();
		hca_transports_group(gid, g->lid, false);
		free(g);
	}
	free(m);
	pthread_mutex_unlock(&mcast.change);
	return 0;
}

void hca_mcast_each(const union ibv_gid *gid,
		    void (*fn)(struct hca_qp *qp, void *arg), void *arg)
{
	unsigned index;
	struct group *g;

	spin_lock(&mcast.lock);
	g = group_find(gid, &index);
	if (g)
		list_for_each(m, &g->members, struct member, entry)
			fn(m->qp, arg);
	spin_unlock(&mcast.lock);
}

void hca_mcast_forked(void)
{
	pthread_mutex_init(&mcast.change, NULL);
	memset(&mcast.lock, 0, sizeof(mcast.lock));
	mcast.count = mcast.members = 0;
}
