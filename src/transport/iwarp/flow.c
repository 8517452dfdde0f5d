/* SPDX-License-Identifier: BSD-2-Clause */
/* One direction of a middlebox; see flow.h. */
#define LOG_ROOM "iwarp"
#include "transport/iwarp/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "util/container_of.h"
#include "util/log.h"

/* Held in each direction; then nothing more is read, and TCP holds up the sender. */
#define HELD_BYTES (4u << 20)
#define FRAME_BYTES (IWARP_ULPDU_MAX + IWARP_FPDU_EXTRA)
/* A byte is changed behind the length of its FPDU and a marker in front of that: with another
 * length the receiver would wait for bytes that do not come. */
#define FRONT_BYTES ((size_t)IWARP_LENGTH_BYTES + IWARP_MARKER_BYTES)

enum piece_end { PIECE_GOES_ON, PIECE_ENDS, PIECE_IS_CUT, PIECE_RESETS };

struct iwarp_piece {
	struct iwarp_piece *next;
	uint64_t due_ns;
	enum piece_end end; /* behind its bytes */
	size_t bytes, at;
	uint8_t data[];
};

/* Of the progress thread; or of the one that ends the middleboxes. */
static uint8_t bytes_read[64u << 10];

/* ---- pieces ---- */

static struct iwarp_piece *push(struct iwarp_flow *w, const uint8_t *data, size_t bytes, uint64_t due_ns)
{
	struct iwarp_piece *p = malloc(sizeof(*p) + bytes);

	if (!p) {
		log_error("qp 0x%x: no memory for what its middlebox holds", w->qpn);
		w->drops = w->failed = true;
		return NULL;
	}
	*p = (struct iwarp_piece){ .due_ns = due_ns, .bytes = bytes };
	if (bytes)
		memcpy(p->data, data, bytes);
	*(w->first ? &w->last->next : &w->first) = p;
	w->last = p;
	w->held_bytes += bytes;
	return p;
}

static void pop(struct iwarp_flow *w)
{
	struct iwarp_piece *p = w->first;

	w->first = p->next;
	w->held_bytes -= p->bytes;
	free(p);
}

void iwarp_flow_drop(struct iwarp_flow *w)
{
	while (w->first)
		pop(w);
	w->drops = w->done = true;
}

/* Bytes that meet no fault, behind those that do. */
static struct iwarp_piece *push_plain(struct iwarp_flow *w, const uint8_t *data, size_t bytes)
{
	return push(w, data, bytes, w->lane.last_ns);
}

static void damage(struct iwarp_flow *w, struct iwarp_piece *p)
{
	if (p->bytes <= FRONT_BYTES)
		return;
	impair_corrupt(&w->lane, p->data + FRONT_BYTES, p->bytes - FRONT_BYTES);
	HCA_COUNT_PROCESS(FPDUS_CORRUPTED, 1);
	log_info("qp 0x%x: faults: a byte %s is changed%s", w->qpn, w->text,
		 w->crc ? "" : ", without a CRC");
}

static void stall(struct iwarp_flow *w, uint64_t now_ns, uint64_t pause_ns)
{
	w->paused_ns = now_ns + pause_ns;
	HCA_COUNT_PROCESS(STREAMS_STALLED, 1);
	log_info("qp 0x%x: faults: nothing %s for %llu ns", w->qpn, w->text,
		 (unsigned long long)pause_ns);
}

/* An FPDU has come. */
static void decide(struct iwarp_flow *w, uint64_t now_ns)
{
	struct impair_stream_fate fate;
	struct iwarp_piece *p;

	impair_decide_stream(&w->lane, w->frame_bytes, now_ns, &fate);
	p = push(w, w->frame, fate.end ? fate.end_at : w->frame_bytes, fate.due_ns);
	if (!p)
		return;
	if (fate.due_ns > now_ns)
		HCA_COUNT_PROCESS(FPDUS_DELAYED, 1);
	if (fate.corrupt)
		damage(w, p);
	if (fate.pause_ns)
		stall(w, now_ns, fate.pause_ns);
	if (fate.end) {
		p->end = fate.end == IMPAIR_CUT ? PIECE_IS_CUT : PIECE_RESETS;
		w->drops = true;
	}
}

/* ---- reading ---- */

/* Up to the end of an FPDU, if it is there: how many bytes. */
static size_t take_frame(struct iwarp_flow *w, const uint8_t *data, size_t bytes,
			 uint64_t now_ns)
{
	const uint8_t *at = data;
	size_t left = bytes, taken;
	const enum iwarp_event event = iwarp_receiver_take(&w->frames, &at, &left);

	taken = bytes - left;
	memcpy(w->frame + w->frame_bytes, data, taken);
	w->frame_bytes += taken;
	if (event == IWARP_NOTHING)
		return taken;
	w->opaque = event == IWARP_BROKEN;
	if (w->opaque || w->midway)
		push_plain(w, w->frame, w->frame_bytes);
	else
		decide(w, now_ns);
	w->midway = false;
	w->frame_bytes = 0;
	return taken;
}

static void take(struct iwarp_flow *w, const uint8_t *data, size_t bytes,
		 uint64_t now_ns)
{
	while (bytes && !w->drops) {
		size_t n = w->opaque ? bytes : MIN(w->partial, bytes);

		if (n) {
			push_plain(w, data, n);
			w->partial -= MIN(w->partial, n);
		} else {
			n = take_frame(w, data, bytes, now_ns);
		}
		data += n;
		bytes -= n;
	}
}

static void end_flow(struct iwarp_flow *w)
{
	struct iwarp_piece *p;

	w->ended = true;
	if (w->drops)
		return;
	p = push_plain(w, w->frame, w->frame_bytes);
	if (p)
		p->end = PIECE_ENDS;
}

bool iwarp_flow_reads(const struct iwarp_flow *w)
{
	return !w->ended && !w->paused_ns && !iwarp_flow_is_parted(w) &&
	       (w->drops || w->held_bytes < HELD_BYTES);
}

enum iwarp_step iwarp_flow_read(struct iwarp_flow *w, bool last, uint64_t now_ns)
{
	ssize_t n;

	if (!iwarp_flow_reads(w))
		return IWARP_STEP_NONE;
	n = recv(w->from, bytes_read, sizeof(bytes_read), MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return IWARP_STEP_LOST;
	if (n > 0)
		take(w, bytes_read, (size_t)n, now_ns);
	else if (!n || (last && errno == EAGAIN))
		end_flow(w);
	else
		return IWARP_STEP_NONE;
	return w->failed ? IWARP_STEP_LOST : IWARP_STEP_DONE;
}

/* ---- sending ---- */

/* False: the connection is lost. */
static bool end_piece(struct iwarp_flow *w, enum piece_end end)
{
	if (end == PIECE_RESETS) {
		HCA_COUNT_PROCESS(STREAMS_RESET, 1);
		log_info("qp 0x%x: faults: a reset of what %s", w->qpn, w->text);
		return false;
	}
	if (end == PIECE_IS_CUT) {
		HCA_COUNT_PROCESS(STREAMS_CUT, 1);
		log_info("qp 0x%x: faults: the stream that %s is cut", w->qpn, w->text);
	}
	if (end != PIECE_GOES_ON) {
		shutdown(w->to, SHUT_WR);
		w->done = true;
	}
	return true;
}

/* True: the other side has all of it. */
static bool send_piece(struct iwarp_flow *w, struct iwarp_piece *p)
{
	ssize_t n = 0;

	if (p->at < p->bytes)
		n = send(w->to, p->data + p->at, p->bytes - p->at, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)) {
		w->blocked = true;
		return false;
	}
	if (n < 0) {
		iwarp_flow_drop(w);
		return false;
	}
	p->at += (size_t)n;
	w->blocked = p->at < p->bytes;
	return !w->blocked;
}

enum iwarp_step iwarp_flow_send(struct iwarp_flow *w, uint64_t now_ns)
{
	enum iwarp_step step = IWARP_STEP_NONE;

	w->blocked = false;
	if (w->paused_ns && w->paused_ns <= now_ns)
		w->paused_ns = 0;
	if (w->paused_ns || iwarp_flow_is_parted(w))
		return step;
	while (step != IWARP_STEP_LOST && w->first && w->first->due_ns <= now_ns &&
	       send_piece(w, w->first)) {
		step = end_piece(w, w->first->end) ? IWARP_STEP_DONE : IWARP_STEP_LOST;
		pop(w);
	}
	return step;
}

uint64_t iwarp_flow_next_ns(const struct iwarp_flow *w)
{
	if (w->paused_ns)
		return w->paused_ns;
	if (w->first && !w->blocked && !iwarp_flow_is_parted(w))
		return w->first->due_ns;
	return UINT64_MAX;
}

/* ---- its life ---- */

void iwarp_flow_set(struct iwarp_flow *w, const struct impair_params *p, uint64_t seed)
{
	impair_lane_seed(&w->lane, seed);
	impair_lane_set(&w->lane, 1, p);
	w->paused_ns = 0;
	if (!impair_is_none(p))
		return;
	impair_lane_forget(&w->lane);
	for (struct iwarp_piece *piece = w->first; piece; piece = piece->next)
		piece->due_ns = 0;
}

/* The CRC is the receiving end's to check. */
bool iwarp_flow_open(struct iwarp_flow *w, const struct iwarp_receiver *frames)
{
	w->buffer = malloc(IWARP_ULPDU_MAX);
	w->frame = malloc(FRAME_BYTES);
	if (!w->buffer || !w->frame)
		return false;
	w->frames = *frames;
	w->frames.crc = false;
	w->frames.buffer = w->buffer;
	w->midway = !iwarp_receiver_idle(frames);
	if (frames->buffer)
		memcpy(w->buffer, frames->buffer, IWARP_ULPDU_MAX);
	return true;
}

void iwarp_flow_close(struct iwarp_flow *w)
{
	iwarp_flow_drop(w);
	free(w->buffer);
	free(w->frame);
}
