/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client and a device in virtual time, over a connection that cuts the bytes anywhere. The device
 * restarts, changes its configuration with and without telling, does not answer for a while, and
 * damages frames. Each data frame that arrived whole was delivered once, with its values, or
 * counted.
 *
 * usage: c37-session [RUNS [SEED]]
 */
#include <stdio.h>

#include "device.h"
#include "gateway/node/c37.118/c37_session.h"
#include "util/container_of.h"
#include "util/prng.h"

#define SECOND INT64_C(1000000000)
#define START (INT64_C(1700000000) * SECOND)
#define STEP (SECOND / 50)
#define FRAMES_MAX 4000
#define PIPE_BYTES (1u << 20)
#define DEVICES 4

/* Configurations with data frames of different lengths, and two with the same length. */
static const char *const configurations[DEVICES] = {
	"{ name = \"A\"; frequency = \"f\"; rocof = \"df\"; analog = ( { signal = \"n\"; } ); }",
	"{ name = \"A2\"; frequency = \"f\"; rocof = \"df\"; analog = ( { signal = \"n\"; } ); }",
	"{ name = \"B\"; frequency = \"f\"; rocof = \"df\"; analog = ( { signal = \"n\"; } ); phasor = ( { signal = \"u\"; } ); }",
	/* Two PMUs. */
	("{ name = \"C\"; frequency = \"f\"; rocof = \"df\"; float_frequency = false; analog = ( { signal = \"n\"; } ); digital = ( { signal = \"b\"; } ); },"
	 "{ name = \"D\"; frequency = \"f\"; rocof = \"df\"; phasor = ( { signal = \"u\"; } ); }"),
};
static struct device devices[DEVICES];

enum fate { UNSENT, UNDER_WAY, LOST, DAMAGED, ARRIVED, DELIVERED };

static struct world {
	struct prng random;
	uint64_t now;
	struct c37_session session;
	bool connected;
	/* The device. */
	unsigned which;            /* configuration */
	bool on;                   /* it sends data */
	bool deaf;                 /* it does not answer */
	bool no_cfg3;
	unsigned telling;          /* frames for which STAT tells of a change */
	uint64_t next;             /* frame number */
	/* Bytes on their way to the client. */
	uint8_t *pipe;
	size_t head, tail, unread; /* unread: given to the client before, not taken */
	/* Where frames end in the pipe. */
	struct {
		uint64_t frame;
		size_t end;
	} ends[FRAMES_MAX];
	unsigned end_first, end_count;
	enum fate fates[FRAMES_MAX];
	bool loose;                /* lengths may be wrong, too */
	uint64_t counts[C37_FIGURES];
	uint64_t layouts;
} w;

static uint64_t below(uint64_t n)
{
	return prng_below(&w.random, n);
}

static bool chance(unsigned one_in)
{
	return !below(one_in);
}

/* ---- the device ---- */

static void put(const uint8_t *data, size_t len)
{
	assert_true(w.tail + len <= PIPE_BYTES);
	memcpy(w.pipe + w.tail, data, len);
	w.tail += len;
}

static void take_command(void *arg, const uint8_t *data, size_t len)
{
	static uint8_t answer[C37_FRAME_MAX];
	struct c37_frame f;
	struct c37_answer a;
	const char *why;
	size_t skip;

	assert_int_equal(c37_next(data, len, &f, &skip, &why), (int)len);
	if (!w.connected || w.deaf || (w.no_cfg3 && c37_command_of(&f) == C37_SEND_CFG3))
		return;
	a = c37_source_answer(&devices[w.which].source, &f, w.on, START + (int64_t)w.now, answer,
			      sizeof(answer));
	assert_true(a.known);
	w.on = a.sends;
	if (a.len)
		put(answer, a.len);
}

static void send_data(void)
{
	struct device *d = &devices[w.which];
	struct sample *s = device_sample(d, w.next);
	uint8_t bytes[256];
	size_t len = c37_source_data(&d->source, s, START + (int64_t)w.next * STEP, bytes, sizeof(bytes));

	assert_true(len && w.next < FRAMES_MAX);
	if (w.telling) {
		bytes[C37_HEADER_SIZE] |= C37_STAT_CHANGE >> 8;
		bytes[len - 2] = (uint8_t)(c37_crc(bytes, len - 2) >> 8);
		bytes[len - 1] = (uint8_t)c37_crc(bytes, len - 2);
		w.telling--;
	}
	w.fates[w.next] = UNDER_WAY;
	if (chance(20)) {
		/* Not its head, so that the length is right. */
		bytes[4 + below(len - 4)] ^= (uint8_t)(1 + below(255));
		w.fates[w.next] = DAMAGED;
	}
	put(bytes, len);
	w.ends[w.end_count].frame = w.next;
	w.ends[w.end_count++].end = w.tail;
}

static void change_configuration(void)
{
	static uint8_t bytes[C37_FRAME_MAX];

	w.which = (unsigned)below(DEVICES);
	switch (below(3)) {
	case 0:
		w.telling = 1 + (unsigned)below(20);
		break;
	case 1:
		put(bytes, c37_source_config(&devices[w.which].source, C37_CFG2, 2, START, bytes,
					     sizeof(bytes)));
		break;
	default:
		/* Says nothing. */
		break;
	}
}

/* ---- the client ---- */

static void take_data(void *arg, const struct c37_layout *l, const struct c37_frame *f,
		      uint64_t sequence, int64_t time_ns)
{
	struct sample *s = calloc(1, sizeof(*s) + 64 * sizeof(union signal_data));
	uint64_t n = (uint64_t)((time_ns - START + STEP / 2) / STEP);
	unsigned analog = 0;

	/* Behind a wrong length frames are found late. */
	assert_true(n < w.next && (w.fates[n] == UNDER_WAY || (w.loose && w.fates[n] == ARRIVED)));
	w.fates[n] = DELIVERED;
	assert_int_equal(sequence, n);
	s->capacity = 64;
	assert_int_equal(c37_layout_read(l, f, NULL, s), 0);
	while (strcmp(l->signals->signals[analog].name, "n") &&
	       !strstr(l->signals->signals[analog].name, ":n"))
		analog++;
	assert_true(s->data[analog].f == (double)n);
	free(s);
}

static void take_layout(void *arg, const struct c37_layout *l, const struct c37_layout *before)
{
	assert_ptr_not_equal(l, before);
	w.layouts++;
}

static void take_header(void *arg, struct c37_bytes text)
{
	assert_memory_equal(text.at, "a device", text.len);
}

static void count(void *arg, enum c37_figure figure, uint64_t n)
{
	w.counts[figure] += n;
}

static void fault(void *arg, enum socket_fault kind, const char *why)
{
	assert_non_null(why);
	w.counts[kind]++;
}

static int64_t wall_ns(void *arg)
{
	return START + (int64_t)w.now;
}

static const struct c37_session_ops ops = {
	.send = take_command,
	.data = take_data,
	.layout = take_layout,
	.header = take_header,
	.count = count,
	.fault = fault,
	.wall_ns = wall_ns,
};

/* ---- the connection ---- */

static void disconnect(bool says)
{
	c37_session_end(&w.session, says);
	w.connected = w.on = false;
	for (unsigned i = w.end_first; i < w.end_count; i++)
		if (w.fates[w.ends[i].frame] == UNDER_WAY)
			w.fates[w.ends[i].frame] = LOST;
	w.head = w.tail = w.unread = 0;
	w.end_first = w.end_count = 0;
}

static void connect_again(void)
{
	w.connected = true;
	c37_session_begin(&w.session, true, w.now);
}

/* Gives the client some of the bytes. */
static void deliver(void)
{
	while (w.head < w.tail && !chance(6)) {
		size_t len = chance(2) ? 1 + below(5) : 1 + below(w.tail - w.head), used;

		len = len < w.tail - w.head ? len : w.tail - w.head;
		w.head += len;
		w.unread += len;
		used = c37_session_take(&w.session, w.pipe + w.head - w.unread, w.unread, w.now);
		assert_true(used <= w.unread);
		w.unread -= used;
		for (; w.end_first < w.end_count && w.ends[w.end_first].end <= w.head; w.end_first++) {
			enum fate *fate = &w.fates[w.ends[w.end_first].frame];

			if (*fate == UNDER_WAY)
				*fate = ARRIVED;
		}
	}
}

static void step(bool calm)
{
	uint64_t next;

	w.now += STEP;
	if (!w.connected && chance(5))
		connect_again();
	if (w.connected && w.on && !(!calm && chance(30)))
		send_data();
	w.next++;
	if (!calm && chance(100))
		change_configuration();
	if (!calm && chance(300))
		w.deaf = !w.deaf;
	if (calm)
		w.deaf = false;
	if (!calm && chance(200) && w.connected)
		disconnect(chance(2));
	if (w.connected)
		deliver();
	if (w.connected && !c37_session_due(&w.session, w.now, &next)) {
		assert_true(*w.session.why);
		disconnect(false);
	}
}

static uint64_t tally(enum fate fate)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < w.next; i++)
		n += w.fates[i] == fate;
	return n;
}

static void run(uint64_t seed)
{
	uint8_t *pipe = w.pipe;
	uint64_t wrong;

	w = (struct world){ .random = prng_from(seed), .pipe = pipe };
	w.no_cfg3 = chance(2);
	w.session = (struct c37_session){ .ops = &ops, .idcode = 7, .cfg3 = chance(2),
		.wants_header = chance(2), .status = chance(2), .timeout_ns = SECOND / 2 };
	/* The numbers of frames are sequence numbers. */
	w.session.track = (struct c37_track){ .began = true, .last_ns = START - STEP,
					      .sequence = UINT64_MAX };
	for (unsigned i = 0; i < 1500; i++)
		step(false);
	/* Whatever was, the client comes to itself. */
	for (unsigned i = 0; i < 400; i++)
		step(true);
	assert_int_equal(w.session.state, C37_RUNNING);
	/* The last ones may be on their way. */
	for (uint64_t n = w.next - 50; n < w.next - 25; n++)
		assert_true(w.fates[n] == DELIVERED || w.fates[n] == DAMAGED || w.fates[n] == ARRIVED);
	/* What arrived and was not delivered was counted. */
	wrong = w.counts[FAULT_MALFORMED] + w.counts[C37_EARLY];
	assert_int_equal(w.counts[FAULT_FOREIGN], 0);
	assert_int_equal(w.counts[C37_REPEATED] + w.counts[C37_LATE] + w.counts[C37_TIME_STEPS], 0);
	assert_true(tally(ARRIVED) <= wrong && wrong <= tally(ARRIVED) + tally(DAMAGED));
	/* Each frame between two delivered ones is missing by its time. */
	assert_true(w.counts[C37_MISSED] + tally(DELIVERED) <= w.next);
	assert_true(w.counts[C37_MISSED] + tally(DELIVERED) + 100 >= w.next);
	assert_int_equal(w.layouts, w.counts[C37_CONFIGURATIONS]);
	if (getenv("VERBOSE"))
		printf("delivered %ju, arrived %ju, damaged %ju, lost %ju, malformed %ju, early %ju, missing %ju, layouts %ju\n",
		       (uintmax_t)tally(DELIVERED), (uintmax_t)tally(ARRIVED), (uintmax_t)tally(DAMAGED),
		       (uintmax_t)tally(LOST), (uintmax_t)w.counts[FAULT_MALFORMED],
		       (uintmax_t)w.counts[C37_EARLY], (uintmax_t)w.counts[C37_MISSED],
		       (uintmax_t)w.layouts);
	c37_session_destroy(&w.session);
}

static unsigned long runs = 150;
static uint64_t first_seed = 1;

/* Some send CFG-3 in several frames. */
static void open_device(unsigned i)
{
	device_open(&devices[i], configurations[i], 50);
	devices[i].source.part_size = i % 2 ? C37_PART_MIN + 3 * i : 0;
}

static void every_frame_is_delivered_once_or_counted(void **state)
{
	for (unsigned i = 0; i < DEVICES; i++)
		open_device(i);
	w.pipe = malloc(PIPE_BYTES);
	assert_non_null(w.pipe);
	for (unsigned long i = 0; i < runs; i++) {
		fprintf(stderr, "\rseed %ju ", (uintmax_t)(first_seed + i));
		run(first_seed + i);
	}
	fprintf(stderr, "\n");
	free(w.pipe);
	w.pipe = NULL;
	for (unsigned i = 0; i < DEVICES; i++)
		device_close(&devices[i]);
}

/* Any byte of any frame may be wrong, also lengths: then frames may be lost, but the client goes on. */
static void a_client_goes_on_behind_anything(void **state)
{
	for (unsigned i = 0; i < DEVICES; i++)
		open_device(i);
	w.pipe = malloc(PIPE_BYTES);
	for (uint64_t seed = 1; seed <= runs / 5 + 1; seed++) {
		uint8_t *pipe = w.pipe;
		uint64_t delivered;

		w = (struct world){ .random = prng_from(seed), .pipe = pipe, .loose = true };
		w.session = (struct c37_session){ .ops = &ops, .idcode = 7, .timeout_ns = SECOND / 2 };
		w.session.track = (struct c37_track){ .began = true, .last_ns = START - STEP,
						      .sequence = UINT64_MAX };
		for (unsigned i = 0; i < 1000; i++) {
			step(true);
			if (w.head < w.tail && chance(20)) {
				w.pipe[w.head + below(w.tail - w.head)] ^= (uint8_t)(1 + below(255));
				/* Which one it was is not known. */
				for (unsigned k = w.end_first; k < w.end_count; k++)
					w.fates[w.ends[k].frame] = UNDER_WAY;
			}
		}
		delivered = tally(DELIVERED);
		for (unsigned i = 0; i < 400; i++)
			step(true);
		assert_true(tally(DELIVERED) > delivered + 50);
		c37_session_destroy(&w.session);
	}
	free(w.pipe);
	w.pipe = NULL;
	for (unsigned i = 0; i < DEVICES; i++)
		device_close(&devices[i]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_frame_is_delivered_once_or_counted),
		cmocka_unit_test(a_client_goes_on_behind_anything),
	};

	if (argc > 1)
		runs = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		first_seed = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
