/* SPDX-License-Identifier: BSD-2-Clause */
/* The transports of the process, and the choice of one for a destination; see path.h. */
#define LOG_ROOM "hca"
#include "hca/path/path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "hca/host/settings.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"

struct hca_transports hca_transports;
static const struct hca_transport_ops *const *built;

void hca_transports_register(const struct hca_transport_ops *const *list)
{
	built = list;
}

/* ---- the transports in use ---- */

static const struct hca_transport_ops *find_built(const char *name, size_t length)
{
	for (unsigned i = 0; built && built[i]; i++)
		if (strlen(built[i]->name) == length &&
		    !strncmp(built[i]->name, name, length))
			return built[i];
	return NULL;
}

/* Does the transport lead to other hosts, which BUSBAR_NETWORK=off forbids? */
static bool is_off(const struct hca_transport_ops *ops)
{
	return ops->gsi && !hca_settings.fabric[0] && !strcasecmp(hca_settings.network, "off");
}

static void use(const struct hca_transport_ops *ops)
{
	if (ops->variant)
		ops = ops->variant();
	for (unsigned i = 0; i < hca_transports.count; i++)
		if (hca_transports.at[i] == ops)
			return;
	if (hca_transports.count < HCA_TRANSPORTS_MAX)
		hca_transports.at[hca_transports.count++] = ops;
}

/* Sets hca_transports.at from BUSBAR_TRANSPORTS; the default is the first that was built. */
static void read_setting(void)
{
	const char *at = hca_settings.transports;

	hca_transports.count = 0;
	while (*at) {
		size_t length = strcspn(at, ", ");
		const struct hca_transport_ops *ops = find_built(at, length);

		if (length && !ops) {
			log_warn("BUSBAR_TRANSPORTS='%.80s' not usable: there is no transport '%.*s'; using %s",
				 hca_settings.transports, (int)MIN(length, 40u), at,
				 built[0]->name);
			hca_transports.count = 0;
			break;
		}
		if (length && !is_off(ops))
			use(ops);
		at += length;
		at += strspn(at, ", ");
	}
	if (!hca_transports.count) {
		if (!*at && !strcasecmp(hca_settings.network, "off"))
			log_warn("BUSBAR_NETWORK=off leaves out roce, and BUSBAR_TRANSPORTS='%.80s' names no other transport; using %s",
				 hca_settings.transports, built[0]->name);
		use(built[0]);
	}
	for (unsigned i = 0; built[i]; i++)
		if (built[i]->stream && hca_settings.devices & HCA_DEVICES_SOFT1)
			use(built[i]);
	hca_transports.paths = hca_transports.count;
	for (unsigned i = 0; built[i]; i++)
		if (built[i]->serves_host)
			use(built[i]);
}

static atomic_uint polled; /* bits: hca_transports.at[i] is polled */

static bool poll_all(struct hca_cq *cq, bool wait)
{
	bool moved = false;

	for (unsigned i = 0; i < hca_transports.count; i++)
		if (atomic_load_explicit(&polled, memory_order_acquire) & 1u << i)
			moved |= hca_transports.at[i]->poll(cq, wait);
	return moved;
}

/* One that is alone is called at once. */
static void choose_poll(void)
{
	unsigned bits = atomic_load(&polled);

	atomic_store(&hca_transports.poll, bits && !(bits & (bits - 1)) ?
				      hca_transports.at[__builtin_ctz(bits)]->poll :
				      poll_all);
}

bool hca_transports_poll_unannounced(void)
{
	bool moved = false;

	for (unsigned i = 0; i < hca_transports.count; i++) {
		const struct hca_transport_ops *ops = hca_transports.at[i];

		if (!ops->announces || !ops->announces())
			moved |= ops->poll(NULL, true);
	}
	return moved;
}

void hca_transports_settle(void)
{
	for (unsigned i = 0; i < hca_transports.count; i++)
		if (hca_transports.at[i]->settle)
			hca_transports.at[i]->settle();
}

bool hca_transports_poll_local(void)
{
	bool moved = false;

	for (unsigned i = 0; i < hca_transports.count; i++)
		if (hca_transports.at[i]->serves_host)
			moved |= hca_transports.at[i]->poll(NULL, true);
	return moved;
}

void hca_transport_polled(const struct hca_transport_ops *ops)
{
	if (!(atomic_fetch_or(&polled, 1u << hca_path_number(ops)) &
	      1u << hca_path_number(ops)))
		atomic_store(&hca_transports.poll, poll_all);
}

bool hca_transports_offer_block(uint32_t block)
{
	for (unsigned i = 0; i < hca_transports.count; i++)
		if (hca_transports.at[i]->offer_block &&
		    !hca_transports.at[i]->offer_block(block))
			return false;
	return true;
}


static void stop_first(unsigned count)
{
	while (count--)
		hca_transports.at[count]->stop();
}

int hca_transports_select(void)
{
	if (!built)
		return -ENODEV;
	if (hca_transports.count)
		return 0;
	read_setting();
	for (unsigned i = 0; i < hca_transports.paths; i++)
		if (!hca_transports.at[i]->polled_later)
			atomic_fetch_or(&polled, 1u << i);
	choose_poll();
	return 0;
}

int hca_transports_start(void)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < hca_transports.count; i++) {
		ret = hca_transports.at[i]->start();
		if (ret)
			stop_first(i);
	}
	return ret;
}

void hca_transports_stop(void)
{
	stop_first(hca_transports.count);
}

void hca_transports_forked(void)
{
	for (unsigned i = 0; i < hca_transports.count; i++)
		hca_transports.at[i]->forked();
}

bool hca_transports_peer_ran_on(unsigned cpu)
{
	for (unsigned i = 0; i < hca_transports.count; i++)
		if (hca_transports.at[i]->peer_ran_on && hca_transports.at[i]->peer_ran_on(cpu))
			return true;
	return false;
}

bool hca_transports_pending(void)
{
	for (unsigned i = 0; i < hca_transports.count; i++)
		if (hca_transports.at[i]->pending && hca_transports.at[i]->pending())
			return true;
	return false;
}

int hca_transports_faults(const char *text, char *notes, size_t notes_bytes)
{
	unsigned done = 0;
	size_t at = 0;

	*notes = 0;
	for (unsigned i = 0; i < hca_transports.paths; i++) {
		const struct hca_transport_ops *ops = hca_transports.at[i];
		char note[256] = "";
		int ret = ops->faults ? ops->faults(text, note, sizeof(note)) : -EOPNOTSUPP;

		/* The first one that reads the text finds it. */
		if (ret == -EINVAL) {
			snprintf(notes, notes_bytes, "%s", note);
			return ret;
		}
		done += !ret;
		if ((ret || *note) && at < notes_bytes)
			at += (size_t)snprintf(notes + at, notes_bytes - at, "%s: %s\n",
					       ops->name, *note ? note : strerror(-ret));
	}
	return done ? 0 : -EOPNOTSUPP;
}

int hca_transports_fault_event(unsigned index, char *line, size_t line_bytes)
{
	for (unsigned i = 0; i < hca_transports.paths; i++) {
		const struct hca_transport_ops *ops = hca_transports.at[i];
		unsigned count = ops->fault_event ? ops->fault_event(index, line, line_bytes) : 0;

		if (index < count)
			return 0;
		index -= count;
	}
	return -ENOENT;
}

/* ---- choice of a transport ---- */

const struct hca_transport_ops *hca_path_of_streams(void)
{
	for (unsigned i = 0; i < hca_transports.paths; i++)
		if (hca_transports.at[i]->stream)
			return hca_transports.at[i];
	return NULL;
}

const struct hca_transport_ops *hca_path_choose(const struct hca_destination *to)
{
	const struct hca_transport_ops *best = NULL;
	int lowest = INT32_MAX;

	for (unsigned i = 0; i < hca_transports.paths; i++) {
		int cost = hca_transports.at[i]->reach(to);

		if (cost >= 0 && cost < lowest) {
			lowest = cost;
			best = hca_transports.at[i];
		}
	}
	return best;
}

const struct hca_transport_ops *
hca_path_choose_behind(const struct hca_destination *to,
		       const struct hca_transport_ops *not_this)
{
	unsigned i = 0;

	while (i < hca_transports.paths && hca_transports.at[i] != not_this)
		i++;
	while (++i < hca_transports.paths)
		if (hca_transports.at[i]->datagram &&
		    hca_transports.at[i]->reach(to) >= 0)
			return hca_transports.at[i];
	return NULL;
}

unsigned hca_path_number(const struct hca_transport_ops *ops)
{
	unsigned i = 0;

	while (i < hca_transports.count && hca_transports.at[i] != ops)
		i++;
	return i < hca_transports.count ? i : 0;
}

/* ---- calls to all transports ---- */

void hca_fence_key(uint32_t key)
{
	for (unsigned i = 0; i < hca_transports.count; i++)
		if (hca_transports.at[i]->fence.key)
			hca_transports.at[i]->fence.key(key);
}

bool hca_fence_key_busy(uint32_t key)
{
	for (unsigned i = 0; i < hca_transports.count; i++)
		if (hca_transports.at[i]->fence.key_busy &&
		    hca_transports.at[i]->fence.key_busy(key))
			return true;
	return false;
}

void hca_fence_qp(const struct hca_qp *qp)
{
	for (unsigned i = 0; i < hca_transports.count; i++)
		if (hca_transports.at[i]->fence.qp)
			hca_transports.at[i]->fence.qp(qp);
}

void hca_fence_srq(struct hca_srq *srq)
{
	for (unsigned i = 0; i < hca_transports.count; i++)
		if (hca_transports.at[i]->fence.srq)
			hca_transports.at[i]->fence.srq(srq);
}

int hca_local_block_claimed(uint32_t block, int listen_fd)
{
	int ret = 0;

	for (unsigned i = 0; i < hca_transports.count && !ret; i++) {
		const struct hca_local_ops *local = hca_transports.at[i]->local;

		if (local && local->block_claimed)
			ret = local->block_claimed(block, listen_fd);
	}
	return ret;
}

void hca_local_group_enter(bool joined)
{
	for (unsigned i = 0; i < hca_transports.paths; i++) {
		const struct hca_local_ops *local = hca_transports.at[i]->local;

		if (local && local->group_enter)
			local->group_enter(joined);
	}
}

bool hca_local_has_groups(void)
{
	for (unsigned i = 0; i < hca_transports.paths; i++)
		if (hca_transports.at[i]->local && hca_transports.at[i]->local->group_enter)
			return true;
	return false;
}

int hca_transports_group(const union ibv_gid *gid, uint16_t lid, bool joined)
{
	for (unsigned i = 0; i < hca_transports.paths; i++) {
		const struct hca_transport_ops *ops = hca_transports.at[i];
		int ret = ops->group ? ops->group(gid, lid, joined) : 0;

		if (!ret || !joined)
			continue;
		while (i--)
			if (hca_transports.at[i]->group)
				hca_transports.at[i]->group(gid, lid, false);
		return ret;
	}
	return 0;
}

void hca_local_region_gone(uint32_t id)
{
	for (unsigned i = 0; i < hca_transports.count; i++) {
		const struct hca_local_ops *local = hca_transports.at[i]->local;

		if (local && local->region_gone)
			local->region_gone(id);
	}
}
