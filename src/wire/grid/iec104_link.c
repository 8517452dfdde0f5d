/* SPDX-License-Identifier: BSD-2-Clause */
/* See iec104_link.h. */
#include "wire/grid/iec104_link.h"

#include <string.h>

#define TIMER_MIN_NS UINT64_C(100000000)
#define TIMER_MAX_NS (UINT64_C(172800) * 1000000000)

const char *iec104_settings_check(const struct iec104_settings *s)
{
	if (s->t1_ns < TIMER_MIN_NS || s->t2_ns < TIMER_MIN_NS || s->t3_ns < TIMER_MIN_NS)
		return "a timer has to be 0.1 s at least, or the link does nothing but test itself";
	if (s->t1_ns > TIMER_MAX_NS || s->t3_ns > TIMER_MAX_NS)
		return "a timer has to be 48 h at most";
	if (s->t2_ns >= s->t1_ns)
		return "t2 has to be less than t1, or the peer gives up before it is answered";
	if (!s->k || s->k >= IEC104_MODULO || !s->w)
		return "k and w have to be 1 to 32767";
	if (s->w > s->k)
		return "w has to be k at most, or a peer with the same k waits for t2 each time";
	return NULL;
}

void iec104_link_begin(struct iec104_link *l, bool master, const struct iec104_settings *settings,
		       uint64_t *sent_ns, const struct iec104_link_ops *ops, void *arg,
		       uint64_t now_ns)
{
	*l = (struct iec104_link){
		.settings = settings, .ops = ops, .arg = arg, .master = master,
		.sent_ns = sent_ns,
		.t1_confirm_ns = IEC104_NEVER, .t1_test_ns = IEC104_NEVER,
		.t2_ns = IEC104_NEVER, .t3_ns = now_ns + settings->t3_ns,
	};
}

static void fail(struct iec104_link *l, const char *why)
{
	if (!l->why)
		l->why = why;
}

static void set_state(struct iec104_link *l, enum iec104_state state)
{
	bool was = l->state == IEC104_STARTED;

	l->state = state;
	if (was != (state == IEC104_STARTED))
		l->ops->changed(l->arg);
}

/* ---- sending ---- */

unsigned iec104_link_waiting(const struct iec104_link *l)
{
	return (unsigned)(l->sent - l->acknowledged + IEC104_MODULO) % IEC104_MODULO;
}

unsigned iec104_link_room(const struct iec104_link *l)
{
	return l->why || l->state != IEC104_STARTED ? 0 : l->settings->k - iec104_link_waiting(l);
}

static void send_frame(struct iec104_link *l, const struct iec104_frame *f)
{
	uint8_t bytes[IEC104_APDU_MAX];

	l->ops->send(l->arg, bytes, iec104_frame_encode(f, bytes));
}

static void send_function(struct iec104_link *l, enum iec104_function function)
{
	send_frame(l, &(struct iec104_frame){ .format = IEC104_U, .function = function });
}

/* What is sent next tells the peer V(R). */
static void acknowledge(struct iec104_link *l)
{
	l->unacknowledged = 0;
	l->t2_ns = IEC104_NEVER;
}

static void send_acknowledgement(struct iec104_link *l)
{
	acknowledge(l);
	send_frame(l, &(struct iec104_frame){ .format = IEC104_S, .receive = l->received });
}

bool iec104_link_send(struct iec104_link *l, const uint8_t *asdu, size_t len, uint64_t now_ns)
{
	const struct iec104_frame f = { .format = IEC104_I, .send = l->sent,
					.receive = l->received, .asdu = asdu, .asdu_len = len };

	if (!iec104_link_room(l))
		return false;
	l->sent_ns[(l->oldest + iec104_link_waiting(l)) % l->settings->k] = now_ns;
	l->sent = (uint16_t)((l->sent + 1) % IEC104_MODULO);
	acknowledge(l);
	send_frame(l, &f);
	return true;
}

void iec104_link_start(struct iec104_link *l, uint64_t now_ns)
{
	if (l->why || !l->master || l->state != IEC104_STOPPED)
		return;
	l->t1_confirm_ns = now_ns + l->settings->t1_ns;
	set_state(l, IEC104_STARTING);
	send_function(l, IEC104_STARTDT_ACT);
}

void iec104_link_stop(struct iec104_link *l, uint64_t now_ns)
{
	if (l->why || !l->master || l->state != IEC104_STARTED)
		return;
	l->t1_confirm_ns = now_ns + l->settings->t1_ns;
	set_state(l, IEC104_STOPPING);
	/* The slave confirms when all that it sent is acknowledged. */
	if (l->unacknowledged)
		send_acknowledgement(l);
	send_function(l, IEC104_STOPDT_ACT);
}

void iec104_link_deactivate(struct iec104_link *l)
{
	if (l->why || l->master || l->state != IEC104_STARTED)
		return;
	if (l->unacknowledged)
		send_acknowledgement(l);
	set_state(l, IEC104_STOPPED);
}

/* ---- receiving ---- */

/* The slave has been asked to stop, and has no more to wait for. */
static void stop_if_acknowledged(struct iec104_link *l)
{
	if (l->state != IEC104_UNCONFIRMED || iec104_link_waiting(l))
		return;
	set_state(l, IEC104_STOPPED);
	send_function(l, IEC104_STOPDT_CON);
}

/* N(R) of the peer. False: it cannot be. */
static bool take_acknowledgement(struct iec104_link *l, uint16_t receive)
{
	unsigned count = (unsigned)(receive - l->acknowledged + IEC104_MODULO) % IEC104_MODULO;

	if (count > iec104_link_waiting(l)) {
		fail(l, "the peer acknowledges what was not sent (N(R))");
		return false;
	}
	if (!count)
		return true;
	l->acknowledged = receive;
	l->oldest = (l->oldest + count) % l->settings->k;
	l->ops->acknowledged(l->arg, count);
	return true;
}

static void take_asdu(struct iec104_link *l, const struct iec104_frame *f, uint64_t now_ns)
{
	if (l->state != IEC104_STARTED && l->state != IEC104_STOPPING) {
		fail(l, "data have come while the transfer is not started");
		return;
	}
	if (f->send != l->received) {
		fail(l, "a frame is missing or came twice (N(S))");
		return;
	}
	if (!take_acknowledgement(l, f->receive))
		return;
	l->received = (uint16_t)((l->received + 1) % IEC104_MODULO);
	if (!l->unacknowledged++)
		l->t2_ns = now_ns + l->settings->t2_ns;
	l->ops->asdu(l->arg, f->asdu, f->asdu_len);
	/* A slave confirms the stop when it has all acknowledgements. */
	if (!l->why && l->unacknowledged &&
	    (l->unacknowledged >= l->settings->w || l->state == IEC104_STOPPING))
		send_acknowledgement(l);
}

/* A master has asked a slave. */
static void take_request(struct iec104_link *l, enum iec104_function function)
{
	if (l->master) {
		fail(l, "a slave asks to start or stop the transfer, which only a master does");
		return;
	}
	if (function == IEC104_STARTDT_ACT) {
		if (l->state == IEC104_UNCONFIRMED) {
			fail(l, "the transfer is started before its stop was confirmed");
			return;
		}
		/* The confirmation comes before the first data. */
		send_function(l, IEC104_STARTDT_CON);
		set_state(l, IEC104_STARTED);
		return;
	}
	if (l->unacknowledged)
		send_acknowledgement(l);
	set_state(l, IEC104_UNCONFIRMED);
	stop_if_acknowledged(l);
}

static void take_confirmation(struct iec104_link *l, enum iec104_function function)
{
	enum iec104_state waits = function == IEC104_STARTDT_CON ? IEC104_STARTING :
								    IEC104_STOPPING;

	if (l->state != waits) {
		fail(l, "the peer confirms what it was not asked");
		return;
	}
	l->t1_confirm_ns = IEC104_NEVER;
	set_state(l, waits == IEC104_STARTING ? IEC104_STARTED : IEC104_STOPPED);
}

static void take_function(struct iec104_link *l, enum iec104_function function)
{
	switch (function) {
	case IEC104_TESTFR_ACT:
		send_function(l, IEC104_TESTFR_CON);
		break;
	case IEC104_TESTFR_CON:
		l->t1_test_ns = IEC104_NEVER;
		break;
	case IEC104_STARTDT_ACT:
	case IEC104_STOPDT_ACT:
		take_request(l, function);
		break;
	case IEC104_STARTDT_CON:
	case IEC104_STOPDT_CON:
		take_confirmation(l, function);
		break;
	}
}

static void take_frame(struct iec104_link *l, const struct iec104_frame *f, uint64_t now_ns)
{
	l->t3_ns = now_ns + l->settings->t3_ns;
	switch (f->format) {
	case IEC104_I:
		take_asdu(l, f, now_ns);
		break;
	case IEC104_S:
		take_acknowledgement(l, f->receive);
		break;
	case IEC104_U:
		take_function(l, f->function);
		break;
	}
	if (!l->why)
		stop_if_acknowledged(l);
}

/* Bytes until the frame in the buffer is complete, as far as it says. */
static size_t missing(const struct iec104_link *l)
{
	size_t whole = l->filled < 2 ? 2 : 2 + (size_t)l->buffer[1];

	return whole - l->filled;
}

void iec104_link_receive(struct iec104_link *l, const uint8_t *data, size_t len, uint64_t now_ns)
{
	struct iec104_frame f;
	const char *why = NULL;

	while (len && !l->why) {
		size_t take = missing(l);
		int ret;

		take = take < len ? take : len;
		memcpy(l->buffer + l->filled, data, take);
		l->filled += take;
		data += take;
		len -= take;
		ret = iec104_frame_decode(l->buffer, l->filled, &f, &why);
		if (ret < 0)
			fail(l, why);
		if (ret <= 0)
			continue;
		l->filled = 0;
		take_frame(l, &f, now_ns);
	}
}

/* ---- timers ---- */

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* When t1 of the oldest I frame runs out. */
static uint64_t t1_data_ns(const struct iec104_link *l)
{
	return iec104_link_waiting(l) ? l->sent_ns[l->oldest] + l->settings->t1_ns : IEC104_NEVER;
}

uint64_t iec104_link_due_ns(const struct iec104_link *l)
{
	if (l->why)
		return IEC104_NEVER;
	return min(min(min(l->t1_confirm_ns, l->t1_test_ns), min(l->t2_ns, l->t3_ns)),
		   t1_data_ns(l));
}

void iec104_link_tick(struct iec104_link *l, uint64_t now_ns)
{
	if (l->why)
		return;
	if (t1_data_ns(l) <= now_ns) {
		fail(l, "the peer has not acknowledged data within t1");
		return;
	}
	if (l->t1_confirm_ns <= now_ns || l->t1_test_ns <= now_ns) {
		fail(l, l->t1_test_ns <= now_ns ? "the peer has not answered a test within t1" :
						  "the peer has not confirmed within t1");
		return;
	}
	if (l->t2_ns <= now_ns)
		send_acknowledgement(l);
	if (l->t3_ns <= now_ns) {
		/* One test at a time: t3 runs again from what comes next. */
		l->t3_ns = IEC104_NEVER;
		if (l->t1_test_ns == IEC104_NEVER) {
			l->t1_test_ns = now_ns + l->settings->t1_ns;
			send_function(l, IEC104_TESTFR_ACT);
		}
	}
}
