/* SPDX-License-Identifier: BSD-2-Clause */
/* See c37_session.h. */
#include "gateway/node/c37.118/c37_session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

static void command(struct c37_session *s, enum c37_command which)
{
	int64_t now = s->ops->wall_ns(s->arg);
	const struct c37_frame head = {
		/* A request for CFG-3 is of 2011, all others are understood by devices of 2005. */
		.version = which == C37_SEND_CFG3 ? C37_VERSION_2011 : C37_VERSION_2005,
		.idcode = s->idcode,
		.soc = (uint32_t)(now / SECOND),
		.fraction = (uint32_t)(now % SECOND / 1000),
	};
	uint8_t bytes[C37_FRAME_MIN + 2];

	s->ops->send(s->arg, bytes, c37_encode_command(bytes, sizeof(bytes), &head, which));
}

static enum c37_type wanted(const struct c37_session *s)
{
	return s->cfg3 && !s->fell_back ? C37_CFG3 : C37_CFG2;
}

static void ask(struct c37_session *s, uint64_t now_ns)
{
	s->asks = true;
	s->asked++;
	s->asked_ns = now_ns;
	command(s, wanted(s) == C37_CFG3 ? C37_SEND_CFG3 : C37_SEND_CFG2);
}

/* Unless a question is open. */
static void ask_again(struct c37_session *s, uint64_t now_ns)
{
	if (!s->asks)
		ask(s, now_ns);
}

void c37_session_begin(struct c37_session *s, bool ordered, uint64_t now_ns)
{
	s->state = C37_ASKING;
	s->asks = s->fell_back = s->change_told = false;
	s->asked = 0;
	s->heard_ns = now_ns;
	s->track.ordered = ordered;
	*s->why = '\0';
	/* A device that still sends to an earlier client would mix data with the answers. */
	command(s, C37_DATA_OFF);
	if (s->wants_header)
		command(s, C37_SEND_HEADER);
	ask(s, now_ns);
}

static void use(struct c37_session *s, struct c37_layout *l)
{
	struct c37_layout *before = s->layout;

	c37_layout_free(s->previous);
	s->previous = before;
	s->layout = l;
	c37_track_set_rate(&s->track, l->config.rate);
	s->ops->count(s->arg, C37_CONFIGURATIONS, 1);
	s->ops->layout(s->arg, l, before);
}

static void take_config(struct c37_session *s, const struct c37_frame *f, uint64_t now_ns)
{
	struct c37_layout *l = NULL;
	const char *why = "there is no memory for it";

	/* An unasked one of the other kind tells that something has changed. */
	if (f->type != wanted(s)) {
		if (s->state == C37_RUNNING && f->type != C37_CFG1)
			ask_again(s, now_ns);
		return;
	}
	if (!s->layout || !c37_layout_is(s->layout, f)) {
		if (c37_layout_new(&l, f, s->status, &why)) {
			s->ops->fault(s->arg, FAULT_MALFORMED, why);
			return;
		}
		use(s, l);
	}
	s->asks = false;
	s->asked = 0;
	if (s->state != C37_ASKING)
		return;
	s->state = C37_RUNNING;
	s->heard_ns = now_ns;
	command(s, C37_DATA_ON);
}

/* Of a CFG-3, which may come in several frames. */
static void take_part(struct c37_session *s, const struct c37_frame *f, uint64_t now_ns)
{
	const char *why = "there is no memory for it";
	struct c37_frame whole;
	int ret = c37_parts_take(&s->parts, f, &whole, &why);

	if (ret < 0)
		s->ops->fault(s->arg, FAULT_MALFORMED, why);
	else if (ret)
		take_config(s, &whole, now_ns);
	else
		s->asked_ns = now_ns; /* The answer is on its way. */
	if (ret)
		c37_parts_free(&s->parts);
}

/* The bit tells that the configuration will change within a minute, and goes when it has. */
static void note_change(struct c37_session *s, bool told, uint64_t now_ns)
{
	if (told != s->change_told)
		ask_again(s, now_ns);
	s->change_told = told;
}

static void deliver(struct c37_session *s, const struct c37_layout *l, const struct c37_frame *f)
{
	static const enum c37_figure figures[] = {
		[C37_ORDER_REPEATED] = C37_REPEATED,
		[C37_ORDER_LATE] = C37_LATE,
		[C37_ORDER_STEP] = C37_TIME_STEPS,
		[C37_ORDER_LEAP] = C37_LEAP_SECONDS,
	};
	int64_t time_ns = c37_time_ns(f, l->config.time_base);
	struct c37_place place;

	if (time_ns < 0) {
		s->ops->fault(s->arg, FAULT_MALFORMED, "its FRACSEC is more than TIME_BASE");
		return;
	}
	place = c37_track_take(&s->track, time_ns, f->quality);
	if (place.order != C37_ORDER_NEXT)
		s->ops->count(s->arg, figures[place.order], 1);
	if (place.missed)
		s->ops->count(s->arg, C37_MISSED, place.missed);
	if (place.order != C37_ORDER_REPEATED)
		s->ops->data(s->arg, l, f, place.sequence, time_ns);
}

static void take_data(struct c37_session *s, const struct c37_frame *f, uint64_t now_ns)
{
	const struct c37_layout *l = s->layout;
	struct c37_verdict v;

	if (s->state != C37_RUNNING) {
		s->ops->count(s->arg, C37_EARLY, 1);
		return;
	}
	if (f->idcode != l->idcode) {
		s->ops->fault(s->arg, FAULT_FOREIGN, "a data frame of another stream (IDCODE)");
		return;
	}
	s->heard_ns = now_ns;
	if (!c37_layout_fits(l, f) && s->previous && c37_layout_fits(s->previous, f) &&
	    s->previous->idcode == f->idcode)
		l = s->previous;
	if (l == s->layout && c37_layout_fits(l, f)) {
		c37_layout_free(s->previous);
		s->previous = NULL;
	}
	if (!c37_layout_fits(l, f)) {
		s->ops->fault(s->arg, FAULT_MALFORMED,
			      "a data frame has another length than the configuration says");
		ask_again(s, now_ns);
		return;
	}
	v = c37_layout_judge(l, f);
	note_change(s, v.any & C37_STAT_CHANGE, now_ns);
	if (v.any & C37_STAT_NOT_IN_SYNC)
		s->ops->count(s->arg, C37_NOT_IN_SYNC, 1);
	if (v.invalid)
		s->ops->count(s->arg, C37_INVALID, 1);
	if (!v.invalid || !s->drops_invalid)
		deliver(s, l, f);
}

static void take_frame(struct c37_session *s, const struct c37_frame *f, uint64_t now_ns)
{
	switch (f->type) {
	case C37_DATA:
		take_data(s, f, now_ns);
		break;
	case C37_CFG3:
		take_part(s, f, now_ns);
		break;
	case C37_CFG1:
	case C37_CFG2:
		take_config(s, f, now_ns);
		break;
	case C37_HEADER:
		s->ops->header(s->arg, f->body);
		break;
	default:
		s->ops->fault(s->arg, FAULT_FOREIGN, "a command came from the device");
	}
}

size_t c37_session_take(struct c37_session *s, const uint8_t *data, size_t len, uint64_t now_ns)
{
	size_t at = 0;

	while (at < len) {
		struct c37_frame f;
		const char *why;
		size_t skip;
		int n = c37_next(data + at, len - at, &f, &skip, &why);

		if (!n)
			break;
		if (n < 0)
			s->ops->fault(s->arg, FAULT_MALFORMED, why);
		else
			take_frame(s, &f, now_ns);
		at += n > 0 ? (size_t)n : skip;
	}
	return at;
}

/* How long a device may be silent: a few periods of slow ones. */
static uint64_t silence_ns(const struct c37_session *s)
{
	uint64_t periods = (uint64_t)(3 * s->track.period_ns);

	return periods > s->timeout_ns ? periods : s->timeout_ns;
}

static bool is_answered(struct c37_session *s, uint64_t now_ns)
{
	if (!s->asks || now_ns - s->asked_ns < s->timeout_ns)
		return true;
	if (wanted(s) == C37_CFG3) {
		s->fell_back = true;
		s->asked = 0;
	}
	if (s->asked >= C37_ASKS_MAX) {
		snprintf(s->why, sizeof(s->why),
			 "no configuration came after %u questions; is the IDCODE %u its own?",
			 s->asked, s->idcode);
		return false;
	}
	ask(s, now_ns);
	return true;
}

bool c37_session_due(struct c37_session *s, uint64_t now_ns, uint64_t *next_ns)
{
	uint64_t silence = silence_ns(s);

	*next_ns = UINT64_MAX;
	if (s->state == C37_IDLE)
		return true;
	if (!is_answered(s, now_ns))
		return false;
	if (s->asks)
		*next_ns = s->asked_ns + s->timeout_ns;
	if (s->state != C37_RUNNING)
		return true;
	if (now_ns - s->heard_ns >= silence) {
		s->ops->count(s->arg, C37_SILENT, 1);
		snprintf(s->why, sizeof(s->why), "no data came for %.3g s", (double)silence / 1e9);
		return false;
	}
	if (s->heard_ns + silence < *next_ns)
		*next_ns = s->heard_ns + silence;
	return true;
}

void c37_session_end(struct c37_session *s, bool says)
{
	if (says && s->state == C37_RUNNING)
		command(s, C37_DATA_OFF);
	s->state = C37_IDLE;
	s->asks = false;
	c37_parts_free(&s->parts);
}

void c37_session_destroy(struct c37_session *s)
{
	c37_parts_free(&s->parts);
	c37_layout_free(s->layout);
	c37_layout_free(s->previous);
	s->layout = s->previous = NULL;
}
