/* SPDX-License-Identifier: BSD-2-Clause */
/* Which transport a queue pair uses; see route.h. */
#include "hca/qp/route.h"

#include <errno.h>
#include <string.h>

#include "hca/object/qp.h"
#include "hca/path/path.h"
#include "hca/queue/datagram.h"
#include "hca/run/elide.h"

/* ---- a queue pair without a path ---- */

static bool post_nothing(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	return false;
}

static void do_nothing(struct hca_qp *qp)
{
}

static int connect_nothing(struct hca_qp *qp)
{
	return 0;
}

/* connect: another thread may have reset the queue pair that is being connected. */
#define DOES_NOTHING                                                      \
	.connect = connect_nothing, .close = do_nothing,                  \
	.post = post_nothing, .kick = do_nothing,                         \
	.transmit = do_nothing, .posted = do_nothing, .expired = do_nothing

static const struct hca_transport_ops no_transport = { .name = "none", DOES_NOTHING };
/* While a transport opens the path. */
static const struct hca_transport_ops opening = { .name = "opening", DOES_NOTHING };

static void set_path(struct hca_qp *qp, const struct hca_transport_ops *ops)
{
	qp->path.post = ops->post ? ops->post : post_nothing;
	qp->path.posted = ops->posted ? ops->posted : do_nothing;
	qp->path.transmit = qp->ibv.qp_type == IBV_QPT_UD ? hca_transmit_datagrams :
							    ops->transmit;
	atomic_store_explicit(&qp->path.ops, ops, memory_order_release);
}

void hca_path_none(struct hca_qp *qp)
{
	set_path(qp, &no_transport);
}

/* ---- opening and closing ---- */

/* Two threads may try to connect one queue pair; only one of them opens its path. */
static bool claim(struct hca_qp *qp)
{
	bool free;

	hca_lock(&qp->sq_lock);
	free = hca_path_ops(&qp->path) == &no_transport;
	if (free)
		set_path(qp, &opening);
	hca_unlock(&qp->sq_lock);
	return free;
}

static int open_with(struct hca_qp *qp, const struct hca_transport_ops *ops)
{
	int ret;

	if (!claim(qp))
		return -EINVAL;
	memset(qp->path_part, 0, sizeof(qp->path_part));
	ret = ops->open(qp);
	hca_lock(&qp->sq_lock);
	set_path(qp, ret ? &no_transport : ops);
	hca_unlock(&qp->sq_lock);
	if (!ret)
		atomic_store(&qp->pub->transport, hca_path_number(ops));
	return ret;
}

int hca_path_open(struct hca_qp *qp, const struct hca_destination *to)
{
	const struct hca_transport_ops *ops = hca_path_choose(to);

	return open_with(qp, ops ? ops : hca_transports.at[0]);
}

int hca_path_open_stream(struct hca_qp *qp)
{
	const struct hca_transport_ops *ops = hca_path_of_streams();

	return ops ? open_with(qp, ops) : -EOPNOTSUPP;
}

void hca_path_close(struct hca_qp *qp)
{
	const struct hca_transport_ops *ops = hca_path_ops(&qp->path);

	ops->close(qp);
	/* Another transport may have found the QP by a message with its number. */
	for (unsigned i = 0; i < hca_transports.count; i++)
		if (hca_transports.at[i] != ops && hca_transports.at[i]->fence.qp)
			hca_transports.at[i]->fence.qp(qp);
	hca_lock(&qp->sq_lock);
	hca_path_none(qp);
	hca_unlock(&qp->sq_lock);
}

void hca_path_expect(struct hca_qp *qp)
{
	for (unsigned i = 0; i < hca_transports.paths; i++)
		if (hca_transports.at[i]->expect &&
		    hca_transports.at[i] != hca_path_ops(&qp->path))
			hca_transports.at[i]->expect(qp);
}
