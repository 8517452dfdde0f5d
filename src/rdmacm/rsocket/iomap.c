/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * riomap, riounmap, riowrite: RDMA WRITEs into a buffer that the peer has offered, in
 * order with the bytes of the stream.
 */
#define LOG_ROOM "rsocket"
#include <fcntl.h>
#include <string.h>

#include "rdmacm/rsocket/rs.h"
#include "util/cancel.h"
#include "util/log.h"

/* Length of one RDMA WRITE, so that several fit into the ring. */
#define WRITE_MAX(rs) ((rs)->opt.send_size / 4)

/* ---- own mappings ---- */

static int map_ready(struct rs *rs, uint32_t len)
{
	if (rs->closing)
		return -EBADF;
	if (rs->state != RS_CONNECTED || rs->tx.shut)
		return -EPIPE;
	return rs_stream_room(rs, RS_MAP, len);
}

static int map_send(struct rs *rs, enum rs_type type, const struct rs_mapping *m)
{
	struct rs_map map = {
		.offset = htobe64(m->offset),
		.addr = htobe64(m->addr),
		.length = htobe64(m->length),
		.rkey = htonl(m->rkey),
		.index = htonl(m->index),
	};
	struct iovec iov = { &map, sizeof(map) };
	struct rs_iter it;
	int ret = map_ready(rs, sizeof(map));

	if (!ret)
		ret = rs_wait(rs, map_ready, sizeof(map), 0);
	if (ret < 0)
		return ret;
	rs_iter_init(&it, &iov, 1);
	return rs_stream_message(rs, type, &it, sizeof(map));
}

static struct rs_mapping *place_find(struct rs *rs, bool remote)
{
	uint32_t from = remote ? 0 : rs->ours_count;
	uint32_t to = remote ? rs->ours_count : rs->ours_count + RS_MAPS_LOCAL;

	for (uint32_t i = from; i < to; i++)
		if (!rs->ours[i].used) {
			rs->ours[i] = (struct rs_mapping){ .index = i };
			return &rs->ours[i];
		}
	return NULL;
}

static bool offset_taken(const struct rs *rs, uint64_t offset, uint64_t length)
{
	for (uint32_t i = 0; i < rs->ours_count; i++) {
		const struct rs_mapping *m = &rs->ours[i];

		if (m->used && m->remote && offset < m->offset + m->length &&
		    m->offset < offset + length)
			return true;
	}
	return false;
}

/* The first page-aligned offset after all mappings. */
static uint64_t offset_choose(const struct rs *rs)
{
	uint64_t offset = 0;

	for (uint32_t i = 0; i < rs->ours_count; i++)
		if (rs->ours[i].used && rs->ours[i].remote)
			offset = MAX(offset, rs->ours[i].offset +
						     rs->ours[i].length);
	return (offset + 4095) & ~UINT64_C(4095);
}

/* riomap() has no "try again": it waits for the connection even with O_NONBLOCK. */
static int connected_wait(struct rs *rs)
{
	int flags = rs->flags, ret;

	rs->flags = 0;
	ret = rs_connected(rs, 0);
	rs->flags = flags;
	return ret;
}

static off_t map(struct rs *rs, void *buf, size_t len, int prot, off_t offset)
{
	bool remote = prot & PROT_WRITE;
	struct rs_mapping *m;
	int ret = connected_wait(rs);

	if (!ret && (!buf || !len || (offset < 0 && offset != -1) ||
		     len > INT64_MAX - (uint64_t)MAX(offset, 0)))
		ret = -EINVAL;
	if (!ret)
		ret = rs_maps_make(rs);
	if (ret)
		return ret;
	m = place_find(rs, remote);
	if (!m)
		return -ENOBUFS; /* the peer's RDMA_IOMAPSIZE is reached */
	m->remote = remote;
	m->addr = (uintptr_t)buf;
	m->length = len;
	m->offset = offset == -1 ? offset_choose(rs) : (uint64_t)offset;
	if (remote && offset_taken(rs, m->offset, len))
		return -EEXIST;
	m->mr = ibv_reg_mr(rs->id->pd, buf, len,
			   IBV_ACCESS_LOCAL_WRITE |
				   (remote ? IBV_ACCESS_REMOTE_WRITE : 0));
	if (!m->mr)
		return -errno;
	m->rkey = m->mr->rkey;
	m->used = true;
	if (remote)
		ret = map_send(rs, RS_MAP, m);
	if (ret) {
		ibv_dereg_mr(m->mr);
		m->used = false;
		return ret;
	}
	return (off_t)m->offset;
}

RS_EXPORT off_t riomap(int socket, void *buf, size_t len, int prot, int flags,
		       off_t offset)
{
	CANCEL_OFF;
	struct rs *rs = rs_enter(socket);
	off_t ret;

	if (!rs)
		return -1;
	if (!rs_is_stream(rs))
		ret = -EOPNOTSUPP;
	else if (flags || prot & ~PROT_WRITE)
		ret = -EINVAL;
	else
		ret = map(rs, buf, len, prot, offset);
	return rs_leave(rs, ret);
}

static int unmap(struct rs *rs, void *buf, size_t len)
{
	for (uint32_t i = 0; rs->ours && i < rs->ours_count + RS_MAPS_LOCAL; i++) {
		struct rs_mapping *m = &rs->ours[i];

		if (!m->used || m->addr != (uintptr_t)buf || m->length != len)
			continue;
		/* Only a connected peer has to be told. */
		if (m->remote && rs->state == RS_CONNECTED)
			map_send(rs, RS_UNMAP, m);
		ibv_dereg_mr(m->mr);
		m->used = false;
		return 0;
	}
	return -EINVAL;
}

RS_EXPORT int riounmap(int socket, void *buf, size_t len)
{
	CANCEL_OFF;
	struct rs *rs = rs_enter(socket);
	int ret;

	if (!rs)
		return -1;
	ret = unmap(rs, buf, len);
	return (int)rs_leave(rs, ret);
}

/* ---- riowrite ---- */

static const struct rs_mapping *target_find(const struct rs *rs, uint64_t offset)
{
	for (uint32_t i = 0; rs->theirs && i < rs->theirs_count; i++) {
		const struct rs_mapping *m = &rs->theirs[i];

		if (m->used && offset >= m->offset &&
		    offset - m->offset < m->length)
			return m;
	}
	return NULL;
}

static int write_ready(struct rs *rs, uint32_t len)
{
	if (rs->closing)
		return -EBADF;
	if (rs->state != RS_CONNECTED || rs->tx.shut)
		return -EPIPE;
	/* An RDMA WRITE needs no credit, but a send queue entry and room in the ring. */
	return rs->tx.posted - rs->tx.done < rs->tx.sq_entries &&
	       (len <= rs->tx.inline_max || rs_stream_has_ring(rs, len));
}

static int write_one(struct rs *rs, const struct rs_mapping *m, uint64_t offset,
		     const void *buf, uint32_t len)
{
	bool in_line = len <= rs->tx.inline_max;
	const void *from = buf;
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .num_sge = 1 };
	struct ibv_sge sge;

	if (!in_line) {
		uint8_t *at = rs_stream_ring(rs, len);

		memcpy(at, buf, len);
		from = at;
	}
	sge = (struct ibv_sge){ .addr = (uintptr_t)from, .length = len,
				.lkey = rs->tx.mr->lkey };
	wr.sg_list = &sge;
	wr.send_flags = in_line ? IBV_SEND_INLINE : 0;
	wr.wr.rdma.remote_addr = m->addr + (offset - m->offset);
	wr.wr.rdma.rkey = m->rkey;
	return rs_stream_post(rs, &wr, len);
}

static ssize_t write_all(struct rs *rs, const char *buf, size_t count,
			 uint64_t offset, int flags)
{
	size_t done = 0;
	int ret = rs_connected(rs, flags);

	if (!ret)
		rs_progress(rs);
	while (!ret && done < count) {
		const struct rs_mapping *m;
		uint32_t len;

		m = target_find(rs, offset + done);
		if (!m) {
			ret = -EINVAL;
			break;
		}
		len = (uint32_t)MIN(MIN(count - done, (size_t)WRITE_MAX(rs)),
				    m->length - (offset + done - m->offset));
		ret = write_ready(rs, len);
		if (!ret)
			rs_progress(rs);
		if (!ret)
			ret = write_ready(rs, len);
		if (!ret)
			ret = (rs->flags & O_NONBLOCK) || flags & MSG_DONTWAIT ?
				      -EAGAIN :
				      rs_wait(rs, write_ready, len,
					      rs->opt.send_timeout_ms);
		if (ret < 0)
			break;
		/* The peer may have withdrawn the mapping during the wait. */
		m = target_find(rs, offset + done);
		ret = m && offset + done - m->offset + len <= m->length ?
			      write_one(rs, m, offset + done, buf + done, len) :
			      -EINVAL;
		done += ret ? 0 : len;
	}
	return done ? (ssize_t)done : ret;
}

RS_EXPORT size_t riowrite(int socket, const void *buf, size_t count, off_t offset,
			  int flags)
{
	CANCEL_OFF;
	struct rs *rs = rs_enter(socket);
	ssize_t ret;

	if (!rs)
		return (size_t)-1;
	if (!rs_is_stream(rs))
		ret = -EOPNOTSUPP;
	else if (offset < 0)
		ret = -EINVAL;
	else
		ret = write_all(rs, buf, count, (uint64_t)offset, flags);
	return (size_t)rs_leave(rs, ret);
}
