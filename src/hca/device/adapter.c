/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the adapter with the first context of the process, and stops it with the last one. */
#define LOG_ROOM "hca"
#include "hca/device/adapter.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "hca/device/fail.h"
#include "hca/device/faults.h"
#include "hca/event/port.h"
#include "hca/host/allowed.h"
#include "hca/host/gid.h"
#include "hca/host/mapping.h"
#include "hca/host/settings.h"
#include "hca/host/subnet.h"
#include "hca/host/subnet_peer.h"
#include "hca/host/thread.h"
#include "hca/memory/key.h"
#include "hca/memory/paging.h"
#include "hca/memory/region.h"
#include "hca/memory/remap.h"
#include "hca/object/live.h"
#include "hca/path/gsi.h"
#include "hca/path/path.h"
#include "hca/qp/address.h"
#include "hca/qp/xrc.h"
#include "hca/queue/hold.h"
#include "hca/run/aside.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/run/touch.h"
#include "hca/share/arrival.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "util/fence.h"
#include "util/list.h"
#include "util/log.h"
#include "util/wakeup.h"

static void child_after_fork(void)
{
	hca_gsi_forked();
	if (hca_process.users > 0) {
		hca_transports_forked();
		hca_remap_forked();
		hca_regions_forked();
		close(hca_process.segment_fd);
		close(hca_process.keys_fd);
		close(hca_process.kick_fd);
	}
	/* The segment is not mapped in the child (MADV_DONTFORK). Objects of the parent
	 * cannot be used here; the child can open a device of its own. */
	hca_blocks_forked();
	pthread_mutex_init(&hca_process.lock, NULL);
	pthread_mutex_init(&hca_process.tick_lock, NULL);
	hca_process.users = 0;
	hca_process.forks++;
	/* The child may close contexts of the parent, but they are not in its list. */
	while (list_pop(&hca_process.contexts))
		;
	hca_process.segment = NULL;
	hca_process.keys = NULL;
	atomic_store(&hca_process.key_mask, 0);
	hca_process.ticking = false;
	hca_process.armed = hca_process.armed_next = 0;
	hca_gid_forked();
	hca_subnet_forked();
	hca_subnet_peer_forked();
	hca_mcast_forked();
	hca_xrcd_forked();
	hca_xrc_targets_forked();
	hca_remap_move_forked();
	hca_paging_forked();
	hca_keys_forked();
	hca_hold_forked();
	hca_mapping_stop();
	hca_live_forked();
	hca_arrival_forked();
	progress_forked();
	hca_fail_forked();
	hca_faults_forked();
	hca_port_forked();
	hca_thread_forked();
	hca_elision_forked();
	hca_aside_forked();
}

/* A peer has written the eventfd. */
static void kicked(uint32_t events)
{
	(void)events;
	if (!progress_is_self()) {
		hca_attention_serve();
		return;
	}
	HCA_COUNT_PROCESS(KICKS_RECEIVED, wakeup_drain(hca_process.kick_fd));
	atomic_store(&hca_process.kicked, true);
}

/* The files that peers map. */
static int files_create(void)
{
	int ret = hca_segment_create();

	if (ret)
		return ret;
	ret = hca_keys_create();
	if (ret)
		hca_segment_destroy();
	return ret;
}

static void files_destroy(void)
{
	hca_death_mark_remove();
	hca_keys_destroy();
	hca_segment_destroy();
}

static int process_start(void)
{
	static bool atfork_done;
	int ret;

	if (!atfork_done) {
		pthread_atfork(NULL, NULL, child_after_fork);
		atfork_done = true;
	}
	if (getrandom(hca_process.uuid, sizeof(hca_process.uuid), 0) < 0)
		return -errno;
	memcpy(&hca_process.qpn_hint, hca_process.uuid, sizeof(unsigned));
	hca_process.membarrier = fence_others_offered(FENCE_HOST);
	hca_elision_start();
	progress_set_tick(hca_attention_tick);
	hca_network_start(hca_settings.network);
	ret = hca_transports_select();
	if (ret)
		return ret;
	ret = files_create();
	if (ret)
		return ret;
	hca_process.kick_fd = wakeup_open_signal();
	if (hca_process.kick_fd < 0) {
		ret = hca_process.kick_fd;
		goto err_segment;
	}
	ret = hca_transports_start();
	if (ret)
		goto err_kick;
	for (unsigned i = 0; i < hca_transports.count; i++)
		snprintf(hca_process.segment->transports[i],
			 sizeof(hca_process.segment->transports[i]), "%s",
			 hca_transports.at[i]->name);
	ret = progress_hold();
	if (ret)
		goto err_transport;
	ret = hca_arrival_watch(hca_process.kick_fd, kicked);
	if (ret)
		goto err_progress;
	hca_port_start();
	hca_touch_start();
	return 0;

err_progress:
	progress_release();
err_transport:
	hca_transports_stop();
err_kick:
	close(hca_process.kick_fd);
err_segment:
	files_destroy();
	return ret;
}

int hca_process_open(void)
{
	int ret = 0;

	pthread_mutex_lock(&hca_process.lock);
	if (hca_process.users == 0) {
		ret = process_start();
		if (ret)
			log_error("adapter not started: %s", strerror(-ret));
	}
	if (!ret)
		hca_process.users++;
	pthread_mutex_unlock(&hca_process.lock);
	return ret;
}

void hca_process_close(void)
{
	pthread_mutex_lock(&hca_process.lock);
	if (--hca_process.users == 0) {
		for (unsigned i = 0; i < hca_process.own_block_count; i++)
			progress_unwatch(hca_process.block_fds[i]);
		hca_arrival_unwatch(hca_process.kick_fd);
		hca_transports_stop();
		hca_aside_settle();
		hca_fail_stop();
		hca_faults_stop();
		hca_port_stop();
		hca_touch_stop();
		hca_blocks_release();
		hca_mapping_stop();
		/* librdmacm may still hold the progress thread. Its ticks then find
		 * no segment; tick_lock keeps them out meanwhile. */
		pthread_mutex_lock(&hca_process.tick_lock);
		close(hca_process.kick_fd);
		hca_process.kick_fd = -1;
		files_destroy();
		pthread_mutex_unlock(&hca_process.tick_lock);
		pthread_mutex_unlock(&hca_process.lock);
		progress_release();
		return;
	}
	pthread_mutex_unlock(&hca_process.lock);
}
