/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The algorithms of read.c and write.c once more, with time stamps; see budget.h. The same
 * text, so that what is measured is what runs.
 */
#define LOG_ROOM "gateway/infiniband"
#define IB_STAMPED

#include "gateway/node/infiniband/channel.h"

static bool rx_accept_stamped(struct ib_channel *ch, struct sample *s,
			      const struct ibv_wc *wc, struct timespec now);
static void tx_collect_stamped(struct ib_channel *ch);

#define ib_rx_accept rx_accept_stamped
#define ib_tx_collect tx_collect_stamped
#define ib_channel_read ib_channel_read_stamped
#define ib_channel_write ib_channel_write_stamped

#include "gateway/node/infiniband/read.c"
#include "gateway/node/infiniband/write.c"
