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

enum piece_end { PIECE_GOES_ON, PIECE_ENDS, PIECE_IS_LOST, PIECE_IS_CUT, PIECE_RESETS };

struct iwarp_piece {
	struct iwarp_piece *next;
	uint64_t due_ns;
	enum piece_end end; /* behind its bytes */
	size_t bytes, at;
	uint8_t data[];
};

/* Of the progress thread. */
static uint8_t bytes_read[64u << 10];

/* ---- pieces ---- */

static struct iwarp_piece *push(struct iwarp_flow *f, const uint8_t *data, size_t bytes,
				uint64_t due_ns)
{
	struct iwarp_piece *p = malloc(sizeof(*p) + bytes);

	if (!p) {
		log_error("qp 0x%x: no memory for what its middlebox holds", f->qpn);
		f->drops = f->failed = true;
		return NULL;
	}
	*p = (struct iwarp_piece){ .due_ns = due_ns, .bytes = bytes };
	if (bytes)
		memcpy(p->data, data, bytes);
	*(f->first ? &f->last->next : &f->first) = p;
	f->last = p;
	f->held_bytes += sizeof(*p) + bytes;
	return p;
}

static void pop(struct iwarp_flow *f)
{
	struct iwarp_piece *p = f->first;

	f->first = p->next;
	f->held_bytes -= sizeof(*p) + p->bytes;
	free(p);
}

void iwarp_flow_drop(struct iwarp_flow *f)
{
	while (f->first)
		pop(f);
	f->drops = f->done = true;
}

/* Bytes that meet no fault, behind those that do. */
static struct iwarp_piece *push_plain(struct iwarp_flow *f, const uint8_t *data, size_t bytes)
{
	return push(f, data, bytes, f->lane.last_ns);
}

static void damage(struct iwarp_flow *f, struct iwarp_piece *p)
{
	if (p->bytes <= FRONT_BYTES)
		return;
	impair_corrupt(&f->lane, p->data + FRONT_BYTES, p->bytes - FRONT_BYTES);
	HCA_COUNT_PROCESS(FPDUS_CORRUPTED, 1);
	log_info("qp 0x%x: faults: a byte %s is changed%s", f->qpn, f->text,
		 f->crc ? "" : ", without a CRC");
}

static void stall(struct iwarp_flow *f, uint64_t now_ns, uint64_t pause_ns)
{
	f->paused_ns = now_ns + pause_ns;
	HCA_COUNT_PROCESS(STREAMS_STALLED, 1);
	log_info("qp 0x%x: faults: nothing %s for %llu ns", f->qpn, f->text,
		 (unsigned long long)pause_ns);
}

/* An FPDU has come. */
static void decide(struct iwarp_flow *f, uint64_t now_ns)
{
	struct impair_stream_fate fate;
	struct iwarp_piece *p;

	impair_decide_stream(&f->lane, f->frame_bytes, now_ns, &fate);
	p = push(f, f->frame, fate.end ? fate.end_at : f->frame_bytes, fate.due_ns);
	if (!p)
		return;
	if (fate.due_ns > now_ns)
		HCA_COUNT_PROCESS(FPDUS_DELAYED, 1);
	if (fate.corrupt)
		damage(f, p);
	if (fate.pause_ns)
		stall(f, now_ns, fate.pause_ns);
	if (fate.end) {
		p->end = fate.end == IMPAIR_CUT ? PIECE_IS_CUT : PIECE_RESETS;
		f->drops = true;
	}
}

/* ---- reading ---- */

/* Up to the end of an FPDU, if it is there: how many bytes. */
static size_t take_frame(struct iwarp_flow *f, const uint8_t *data, size_t bytes,
			 uint64_t now_ns)
{
	const uint8_t *at = data;
	size_t left = bytes, taken;
	const enum iwarp_event event = iwarp_receiver_take(&f->frames, &at, &left);

	taken = bytes - left;
	memcpy(f->frame + f->frame_bytes, data, taken);
	f->frame_bytes += taken;
	if (event == IWARP_NOTHING)
		return taken;
	f->opaque = event == IWARP_BROKEN;
	if (f->opaque || f->midway)
		push_plain(f, f->frame, f->frame_bytes);
	else
		decide(f, now_ns);
	f->midway = false;
	f->frame_bytes = 0;
	return taken;
}

static void take(struct iwarp_flow *f, const uint8_t *data, size_t bytes,
		 uint64_t now_ns)
{
	while (bytes && !f->drops) {
		size_t n = f->opaque ? bytes : MIN(f->partial, bytes);

		if (n) {
			push_plain(f, data, n);
			f->partial -= MIN(f->partial, n);
		} else {
			n = take_frame(f, data, bytes, now_ns);
		}
		data += n;
		bytes -= n;
	}
}

/* The end comes behind what is held. */
static void end_flow(struct iwarp_flow *f, enum piece_end end)
{
	struct iwarp_piece *p;

	f->ended = true;
	if (f->drops)
		return;
	p = push_plain(f, f->frame, f->frame_bytes);
	if (p)
		p->end = end;
}

bool iwarp_flow_reads(const struct iwarp_flow *f)
{
	return !f->ended && !f->paused_ns && !iwarp_flow_is_parted(f) &&
	       (f->drops || f->held_bytes < HELD_BYTES);
}

enum iwarp_step iwarp_flow_read(struct iwarp_flow *f, bool last, uint64_t now_ns)
{
	ssize_t n;
	bool lost;

	if (!iwarp_flow_reads(f))
		return IWARP_STEP_NONE;
	n = recv(f->from, bytes_read, sizeof(bytes_read), MSG_DONTWAIT);
	lost = n < 0 && errno != EAGAIN && errno != EINTR;
	if (n > 0)
		take(f, bytes_read, (size_t)n, now_ns);
	else if (lost)
		end_flow(f, PIECE_IS_LOST);
	else if (!n || (last && errno == EAGAIN))
		end_flow(f, PIECE_ENDS);
	else
		return IWARP_STEP_NONE;
	return f->failed || (lost && f->drops) ? IWARP_STEP_LOST : IWARP_STEP_DONE;
}

/* ---- sending ---- */

/* False: the connection is lost. */
static bool end_piece(struct iwarp_flow *f, enum piece_end end)
{
	if (end == PIECE_RESETS) {
		HCA_COUNT_PROCESS(STREAMS_RESET, 1);
		log_info("qp 0x%x: faults: a reset of what %s", f->qpn, f->text);
	}
	if (end == PIECE_IS_CUT) {
		HCA_COUNT_PROCESS(STREAMS_CUT, 1);
		log_info("qp 0x%x: faults: the stream that %s is cut", f->qpn, f->text);
	}
	if (end == PIECE_ENDS || end == PIECE_IS_CUT) {
		shutdown(f->to, SHUT_WR);
		f->done = true;
	}
	return end != PIECE_RESETS && end != PIECE_IS_LOST;
}

/* True: the other side has all of it. */
static bool send_piece(struct iwarp_flow *f, struct iwarp_piece *p)
{
	ssize_t n = 0;

	if (p->at < p->bytes)
		n = send(f->to, p->data + p->at, p->bytes - p->at, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)) {
		f->blocked = true;
		return false;
	}
	if (n < 0) {
		f->gone = true;
		iwarp_flow_drop(f);
		return false;
	}
	p->at += (size_t)n;
	f->blocked = p->at < p->bytes;
	return !f->blocked;
}

enum iwarp_step iwarp_flow_send(struct iwarp_flow *f, uint64_t now_ns)
{
	enum iwarp_step step = IWARP_STEP_NONE;

	f->blocked = false;
	if (f->paused_ns && f->paused_ns <= now_ns)
		f->paused_ns = 0;
	if (f->paused_ns || iwarp_flow_is_parted(f))
		return step;
	while (step != IWARP_STEP_LOST && f->first && f->first->due_ns <= now_ns &&
	       send_piece(f, f->first)) {
		step = end_piece(f, f->first->end) ? IWARP_STEP_DONE : IWARP_STEP_LOST;
		pop(f);
	}
	return step;
}

uint64_t iwarp_flow_next_ns(const struct iwarp_flow *f)
{
	if (f->paused_ns)
		return f->paused_ns;
	if (f->first && !f->blocked && !iwarp_flow_is_parted(f))
		return f->first->due_ns;
	return UINT64_MAX;
}

/* ---- its life ---- */

void iwarp_flow_set(struct iwarp_flow *f, const struct impair_params *p, uint64_t seed)
{
	impair_lane_seed(&f->lane, seed);
	impair_lane_set(&f->lane, 1, p);
	f->paused_ns = 0;
	if (!impair_is_none(p))
		return;
	impair_lane_forget(&f->lane);
	for (struct iwarp_piece *piece = f->first; piece; piece = piece->next)
		piece->due_ns = 0;
}

/* The CRC is the receiving end's to check. */
bool iwarp_flow_open(struct iwarp_flow *f, const struct iwarp_receiver *frames)
{
	f->buffer = malloc(IWARP_ULPDU_MAX);
	f->frame = malloc(FRAME_BYTES);
	if (!f->buffer || !f->frame)
		return false;
	f->frames = *frames;
	f->frames.crc = false;
	f->frames.buffer = f->buffer;
	f->midway = !iwarp_receiver_idle(frames);
	if (frames->buffer)
		memcpy(f->buffer, frames->buffer, IWARP_ULPDU_MAX);
	return true;
}

void iwarp_flow_close(struct iwarp_flow *f)
{
	iwarp_flow_drop(f);
	free(f->buffer);
	free(f->frame);
}
