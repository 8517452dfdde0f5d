/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs of an RNIC get their connections from a connection manager; see path/stream.h. */
#include "hca/path/stream.h"

#include <errno.h>

#include "hca/hca.h"
#include "hca/object/context.h"
#include "hca/object/qp.h"
#include "hca/path/path.h"
#include "hca/qp/route.h"
#include "hca/qp/transition.h"
#include "hca/queue/flush.h"
#include "hca/share/process.h"

/* NULL: there is none with this number. */
static struct hca_qp *find(uint32_t qpn)
{
	struct hca_qp *qp = hca_qp_find(qpn);

	return qp && hca_is_rnic(qp->ibv.context) ? qp : NULL;
}

static const struct hca_stream_ops *stream_of(struct hca_qp *qp)
{
	return qp ? hca_path_ops(&qp->path)->stream : NULL;
}

/* Unless it has left INIT meanwhile. */
static void enter_rts(struct hca_qp *qp, const struct hca_stream *stream)
{
	hca_lock(&qp->sq_lock);
	if (!hca_context_check(qp->ibv.context) && hca_qp_state(qp) == IBV_QPS_INIT) {
		qp->attr.max_dest_rd_atomic = (uint8_t)MIN(stream->inbound_reads, UINT8_MAX);
		qp->attr.max_rd_atomic = (uint8_t)MIN(stream->outbound_reads, UINT8_MAX);
		hca_qp_publish_access(qp);
		qp->ibv.state = IBV_QPS_RTS;
		hca_qp_set_state(qp, IBV_QPS_RTS);
	}
	hca_unlock(&qp->sq_lock);
}

int hca_stream_attach(uint32_t qpn, const struct hca_stream *stream)
{
	struct hca_qp *qp = find(qpn);
	int ret;

	if (!qp || hca_qp_state(qp) != IBV_QPS_INIT)
		return -EINVAL;
	ret = hca_path_open_stream(qp);
	if (ret)
		return ret;
	ret = stream_of(qp)->attach(qp, stream);
	if (ret) {
		hca_path_close(qp);
		return ret;
	}
	/* If the queue pair has left INIT meanwhile, begin() ends the connection. */
	enter_rts(qp, stream);
	stream_of(qp)->begin(qp, stream);
	return 0;
}

int hca_stream_close(uint32_t qpn, const void *arg)
{
	struct hca_qp *qp = find(qpn);
	int ret = -ENOTCONN;

	if (!stream_of(qp))
		return ret;
	hca_lock(&qp->sq_lock);
	if (hca_qp_state(qp) == IBV_QPS_RTS) {
		stream_of(qp)->close(qp, arg);
		ret = 0;
	}
	hca_unlock(&qp->sq_lock);
	return ret;
}

void hca_stream_forget(uint32_t qpn, const void *arg)
{
	struct hca_qp *qp = find(qpn);

	if (stream_of(qp))
		stream_of(qp)->forget(qp, arg);
}
