/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a stream: it is attached to a queue pair, ends as the engine says, and outlives the
 * queue pair for a while. A program may destroy its queue pair when its last message is complete,
 * which means that TCP has taken it. The socket then ends its own direction and waits for the peer's
 * end; if it were closed at once, a byte of the peer that nobody has read would make TCP drop the
 * message.
 */
#define LOG_ROOM "iwarp"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/host/settings.h"
#include "hca/path/path.h"
#include "hca/run/elide.h"
#include "transport/iwarp/stream.h"
#include "util/clock.h"
#include "util/log.h"

#define CLOSE_NS (5 * UINT64_C(1000000000))
#define LINGER_NS (5 * UINT64_C(1000000000))
/* Sockets that wait for their peers' end. A peer decides how long each of them does. */
#define LINGER_MAX 256u

/* ---- what the manager is told ---- */

/* Held while a stream that is no longer its queue pair's is told of: iwarp_forget() waits. */
static pthread_mutex_t tell_lock = PTHREAD_MUTEX_INITIALIZER;

static void tell(struct progress_timer *t)
{
	struct iwarp_stream *s = container_of(t, struct iwarp_stream, tell_timer);
	unsigned events = atomic_exchange(&s->untold, 0);

	if (events & 1u << HCA_STREAM_ENDED)
		s->ended = true;
	for (unsigned e = HCA_STREAM_BEGUN; e <= HCA_STREAM_ENDED; e++) {
		iwarp_tell_fn *fn = atomic_load(&s->tell);

		if (events >> e & 1 && fn)
			fn(s->arg, (enum hca_stream_event)e);
	}
}

void iwarp_forget(struct hca_qp *qp, const void *arg)
{
	struct iwarp_stream *s;

	pthread_mutex_lock(&tell_lock);
	hca_lock(&qp->sq_lock);
	s = iwarp_stream_of(qp);
	if (s && s->arg != arg)
		s = NULL;
	hca_unlock(&qp->sq_lock);
	if (s) {
		/* First: what is told meanwhile arms the timer again. */
		atomic_store(&s->tell, NULL);
		progress_timer_cancel(&s->tell_timer);
	}
	pthread_mutex_unlock(&tell_lock);
}

/* ---- the timer ---- */

void iwarp_expired(struct hca_qp *qp)
{
	struct iwarp_stream *s;

	hca_lock(&qp->sq_lock);
	s = iwarp_stream_of(qp);
	if (s) {
		const struct iwarp_outcome o = iwarp_timer(&s->c, clock_now_ns());

		s->armed_ns = 0;
		iwarp_outcome(s, &o);
		iwarp_send(s);
	}
	hca_unlock(&qp->sq_lock);
}

/* ---- the end of the queue pair ---- */

static void free_buffers(struct iwarp_stream *s)
{
	free(s->segment);
	free(s->entries);
	free(s->bounce);
	free(s->rest);
	s->segment = s->bounce = s->rest = NULL;
	s->entries = NULL;
}

static void stream_free(struct iwarp_stream *s)
{
	free_buffers(s);
	free(s);
}

/* receive_lock is held. */
static void list_stream(struct iwarp_stream *s)
{
	list_push(&iwarp_port.streams, &s->entry);
	s->listed = true;
	atomic_fetch_add(&iwarp_port.count, 1);
}

/* receive_lock is held. */
static void unlist(struct iwarp_stream *s)
{
	if (!s->listed)
		return;
	list_remove(&s->entry);
	s->listed = false;
	atomic_fetch_sub(&iwarp_port.count, 1);
}

/* Does not wait any more. receive_lock is held. */
static void stop_lingering(struct iwarp_stream *s)
{
	if (s->fd >= 0)
		iwarp_port.lingering--;
	iwarp_end_socket(s, false);
}

/* The peer has ended the stream, or has not for too long. On the progress thread. */
static void linger_ends(struct progress_timer *t)
{
	struct iwarp_stream *s = container_of(t, struct iwarp_stream, linger);
	bool own;

	hca_enter();
	hca_lock(&iwarp_port.receive_lock);
	own = s->listed;
	if (own)
		stop_lingering(s);
	unlist(s);
	hca_unlock(&iwarp_port.receive_lock);
	hca_leave();
	/* iwarp_end_lingering() has it, and waits for this. */
	if (!own)
		return;
	progress_timer_cancel(&s->tell_timer);
	/* iwarp_receive() may have armed it again before the socket was closed. */
	progress_timer_cancel(&s->linger);
	stream_free(s);
}

/* The one that has waited longest does not, if they are too many. receive_lock is held. */
static void limit_lingering(void)
{
	if (iwarp_port.lingering <= LINGER_MAX)
		return;
	list_for_each(s, &iwarp_port.streams, struct iwarp_stream, entry)
		if (!s->qp && s->fd >= 0) {
			stop_lingering(s);
			progress_timer_arm(&s->linger, progress_now_ns());
			return;
		}
}

/* The queue pair is gone. While the peer has not ended the stream this end ends its direction, if it
 * has sent whole FPDUs. True: the socket waits for the peer. receive_lock is held. */
static bool begin_linger(struct iwarp_stream *s)
{
	if (s->fd < 0 || s->rest_at != s->rest_bytes || !s->events ||
	    s->c.input == IWARP_IN_ENDED || !iwarp_watch_again(s)) {
		iwarp_end_socket(s, s->fd >= 0 && s->rest_at != s->rest_bytes);
		return false;
	}
	list_stream(s);
	if (s->c.output != IWARP_OUT_SHUT) {
		shutdown(s->fd, SHUT_WR);
		iwarp_show_end(s, true, false);
	}
	free_buffers(s);
	progress_timer_arm(&s->linger, progress_now_ns() + LINGER_NS);
	iwarp_port.lingering++;
	limit_lingering();
	return true;
}

/* What has not been told, or not all, when the queue pair goes: that the connection has ended. */
static void tell_end(struct iwarp_stream *s)
{
	iwarp_tell_fn *fn;

	progress_timer_cancel(&s->tell_timer);
	pthread_mutex_lock(&tell_lock);
	fn = atomic_exchange(&s->tell, NULL);
	if (fn && !s->ended)
		fn(s->arg, HCA_STREAM_ENDED);
	pthread_mutex_unlock(&tell_lock);
}

void iwarp_close_qp(struct hca_qp *qp)
{
	struct iwarp_stream *s;
	bool lingers = false;

	hca_lock(&iwarp_port.receive_lock);
	hca_lock(&qp->sq_lock);
	s = iwarp_stream_of(qp);
	memset(qp->path_part, 0, sizeof(qp->path_part));
	if (s) {
		s->qp = NULL;
		unlist(s);
	}
	hca_unlock(&qp->sq_lock);
	hca_unlock(&iwarp_port.receive_lock);
	if (!s)
		return;
	tell_end(s);
	hca_lock(&iwarp_port.receive_lock);
	lingers = begin_linger(s);
	hca_unlock(&iwarp_port.receive_lock);
	if (!lingers)
		stream_free(s);
}

/* Takes a stream without a queue pair out of the list. NULL: there is none. */
static struct iwarp_stream *take_lingering(void)
{
	struct iwarp_stream *found = NULL;

	hca_lock(&iwarp_port.receive_lock);
	list_for_each(s, &iwarp_port.streams, struct iwarp_stream, entry)
		if (!s->qp) {
			found = s;
			break;
		}
	if (found) {
		stop_lingering(found);
		unlist(found);
	}
	hca_unlock(&iwarp_port.receive_lock);
	return found;
}

void iwarp_end_lingering(void)
{
	struct iwarp_stream *s;

	while ((s = take_lingering())) {
		progress_timer_cancel(&s->linger);
		progress_timer_cancel(&s->tell_timer);
		stream_free(s);
	}
}

/* The other threads of the parent do not exist, and the child keeps none of its connections. */
void iwarp_streams_forked(void)
{
	pthread_mutex_init(&tell_lock, NULL);
	list_for_each(s, &iwarp_port.streams, struct iwarp_stream, entry) {
		if (s->fd >= 0)
			close(s->fd);
		s->fd = -1;
		s->listed = s->watched = false;
		s->events = 0;
	}
	list_init(&iwarp_port.streams);
	atomic_store(&iwarp_port.count, 0);
	iwarp_port.lingering = 0;
}

/* ---- the beginning ---- */

static void open_engine(struct iwarp_stream *s, const struct hca_stream *from)
{
	const struct iwarp_terms *terms = from->terms;
	const uint32_t mss = iwarp_socket_mss(from->fd);
	const struct iwarp_connection_params p = {
		.terms = terms,
		.mulpdu = (uint32_t)iwarp_mulpdu(mss, terms->markers_out),
		.extended = hca_settings.rnic_extensions,
		.ring = { s->entries, sizeof(*s->entries), s->qp->sq.mask },
		.begin_ns = from->begin_ns,
		.close_ns = CLOSE_NS,
	};

	iwarp_connection_open(&s->c, &p, clock_now_ns());
	iwarp_receiver_init(&s->receiver, terms->markers_in, terms->crc, s->segment);
	s->responder = !terms->initiator;
}

int iwarp_attach(struct hca_qp *qp, const struct hca_stream *from)
{
	struct iwarp_stream *s;
	int ret = iwarp_socket_prepare(from->fd);

	if (ret)
		return ret;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->qp = qp;
	s->fd = from->fd;
	atomic_init(&s->tell, from->tell);
	s->arg = from->arg;
	progress_timer_init(&s->tell_timer, tell);
	progress_timer_init(&s->linger, linger_ends);
	list_init(&s->entry);
	s->segment = malloc(IWARP_ULPDU_MAX);
	s->entries = calloc(qp->sq.mask + 1u, sizeof(*s->entries));
	if (!s->segment || !s->entries) {
		stream_free(s);
		return -ENOMEM;
	}
	open_engine(s, from);
	hca_lock(&qp->sq_lock);
	memcpy(qp->path_part, &s, sizeof(s));
	hca_unlock(&qp->sq_lock);
	return 0;
}

static void begin(struct iwarp_stream *s, const struct hca_stream *from)
{
	struct iwarp_outcome o;

	if (!iwarp_is_up(s))
		o = iwarp_abort(&s->c);
	else if (from->refused)
		o = iwarp_refuse(&s->c, (enum iwarp_error)from->refused);
	else
		o = (struct iwarp_outcome){ .done = { s->completed, IBV_WC_SUCCESS } };
	iwarp_outcome(s, &o);
	iwarp_receive_bytes(s, from->early, from->early_bytes);
	iwarp_faults_meet(s);
	iwarp_send(s);
}

void iwarp_begin(struct hca_qp *qp, const struct hca_stream *from)
{
	struct iwarp_stream *s;

	hca_enter();
	hca_lock(&iwarp_port.receive_lock);
	hca_lock(&qp->sq_lock);
	s = iwarp_stream_of(qp);
	if (s) {
		list_stream(s);
		iwarp_show_begin(s, from);
		begin(s, from);
	}
	hca_unlock(&qp->sq_lock);
	hca_unlock(&iwarp_port.receive_lock);
	hca_leave();
	hca_transport_polled(iwarp_port.ops);
}

/* ---- what the program does ---- */

void iwarp_close_stream(struct hca_qp *qp, const void *arg)
{
	struct iwarp_stream *s = iwarp_stream_of(qp);

	if (!s || s->arg != arg)
		return;
	iwarp_close(&s->c);
	iwarp_send(s);
}

void iwarp_failed(struct hca_qp *qp)
{
	struct iwarp_stream *s = iwarp_stream_of(qp);
	struct iwarp_outcome o;

	/* The engine may know. Otherwise the program did it, and the connection ends without an
	 * error of either side, as with Linux's siw. */
	if (!s || s->c.failed)
		return;
	iwarp_close(&s->c);
	o = iwarp_flushed(&s->c);
	iwarp_outcome(s, &o);
	iwarp_send(s);
}
