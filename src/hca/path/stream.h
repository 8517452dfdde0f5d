/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections over streams, for queue pairs of an RNIC. A connection manager opens the TCP
 * connection and agrees with the peer on the terms; then it attaches the socket to the queue pair
 * (hca_stream_attach() in hca.h), which goes from INIT to RTS with it.
 */
#ifndef HCA_STREAM_H
#define HCA_STREAM_H

#include <stddef.h>
#include <stdint.h>

struct hca_qp;

enum hca_stream_event {
	/* The peer's first message has come: this end may send. Of a responder only, once. */
	HCA_STREAM_BEGUN,
	/* The connection has ended, whoever ended it. Once; nothing follows. */
	HCA_STREAM_ENDED,
};

struct hca_stream {
	int fd; /* connected, non-blocking */
	/* What the machine of the set-up agreed on, of the type that the engine of these connections
	 * has for it; and for how many READs each end has resources, which `terms` hold, too. */
	const void *terms;
	uint16_t inbound_reads, outbound_reads;
	/* Of the same machine: the rule that the peer broke, so that the connection ends with a message
	 * about it; 0: none. */
	int refused;
	/* Of the set-up, for captures: what each end has sent before; and the bytes of the peer that
	 * came behind its part. Not used after the call. */
	const uint8_t *sent, *received, *early;
	size_t sent_bytes, received_bytes, early_bytes;
	/* How long a responder waits for the first message of the initiator, if one was agreed on; 0:
	 * for ever. */
	uint64_t begin_ns;
	/* On the progress thread, or on the thread that resets or destroys the queue pair, without a
	 * lock. NULL: nobody is told. Not called any more behind HCA_STREAM_ENDED, nor when
	 * hca_stream_forget() has returned. */
	void (*tell)(void *arg, enum hca_stream_event event);
	void *arg;
};

/* Of a transport. The lock of the queue pair is held where a comment says so. */
struct hca_stream_ops {
	/* The queue pair, which is in INIT, gets the stream. On success the socket is the
	 * transport's. 0 or a negative errno. No lock is held. */
	int (*attach)(struct hca_qp *qp, const struct hca_stream *stream);
	/* It has entered RTS: what has come early is carried out, and entries may leave. No lock is
	 * held. */
	void (*begin)(struct hca_qp *qp, const struct hca_stream *stream);
	/* Both have an effect on the stream with this hca_stream.arg only: the queue pair, or its
	 * number, may have another one by now. */
	/* The program disconnects, in order: what was posted is sent, then the end. sq_lock is held. */
	void (*close)(struct hca_qp *qp, const void *arg);
	/* hca_stream.tell is not called any more, nor running. No lock is held that it takes. */
	void (*forget)(struct hca_qp *qp, const void *arg);
};

#endif
