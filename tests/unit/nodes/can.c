/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node-type can without a CAN bus: bits of all places are compared with a slow reference, values
 * go to bits and back, and a node exchanges frames with the test over a pair of sockets, whose
 * interface goes down, comes back, has no room and tells errors as the test likes.
 */
#include "fixture.h"

#include <linux/can/error.h>
#include <math.h>
#include <pthread.h>
#include <sys/socket.h>

#include "gateway/node/can/can.h"

extern const struct node_type node_can;

static uint64_t state = 1;

static uint64_t draw(void)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return state ^ state >> 29;
}

/* ---- bits ---- */

/* The place of bit number `i` of a value, from the least significant one on, step by step. */
static unsigned place_of(unsigned start, unsigned length, bool big, unsigned i)
{
	if (!big)
		return start + i;
	/* From the most significant bit down; below bit 0 of a byte comes bit 7 of the next one. */
	for (unsigned k = length - 1; k > i; k--)
		start = start % 8 ? start - 1 : start + 15;
	return start;
}

static uint64_t get_slowly(const uint8_t data[], unsigned start, unsigned length, bool big)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < length; i++) {
		unsigned at = place_of(start, length, big, i);

		v |= (uint64_t)(data[at / 8] >> at % 8 & 1) << i;
	}
	return v;
}

static void set_slowly(uint8_t data[], unsigned start, unsigned length, bool big, uint64_t v)
{
	for (unsigned i = 0; i < length; i++) {
		unsigned at = place_of(start, length, big, i);

		data[at / 8] = (uint8_t)((data[at / 8] & ~(1u << at % 8)) | (v >> i & 1) << at % 8);
	}
}

static unsigned reach_slowly(unsigned start, unsigned length, bool big)
{
	unsigned last = 0;

	for (unsigned i = 0; i < length; i++)
		last = MAX(last, place_of(start, length, big, i) / 8);
	return last + 1;
}

static void bits_are_those_of_a_slow_reference_at_all_places(void **unused)
{
	unsigned tried = 0;

	for (unsigned all = 0; all < 512 * 64 * 2; all++) {
		unsigned start = all / 128, length = 1 + all / 2 % 64;
		bool big = all % 2;
		uint8_t data[64], mine[64], reference[64];
		uint64_t v = draw();

		assert_int_equal(can_bits_reach(start, length, big),
				 reach_slowly(start, length, big));
		if (reach_slowly(start, length, big) > 64)
			continue;
		tried++;
		for (unsigned i = 0; i < 64; i++)
			data[i] = (uint8_t)draw();
		assert_true(can_bits_get(data, start, length, big) ==
			    get_slowly(data, start, length, big));
		memcpy(mine, data, sizeof(mine));
		memcpy(reference, data, sizeof(reference));
		can_bits_set(mine, start, length, big, v);
		set_slowly(reference, start, length, big, v);
		assert_memory_equal(mine, reference, sizeof(mine));
	}
	assert_true(tried > 60000);
}

static void bits_stand_where_dbc_files_have_them(void **unused)
{
	static const uint8_t data[8] = { 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0 };

	assert_int_equal(can_bits_get(data, 0, 16, false), 0x3412);
	assert_int_equal(can_bits_get(data, 7, 16, true), 0x1234);
	assert_int_equal(can_bits_get(data, 4, 12, false), 0x341);
	assert_int_equal(can_bits_get(data, 3, 12, true), 0x234);
	assert_int_equal(can_bits_get(data, 56, 8, false), 0xf0);
	assert_int_equal(can_bits_get(data, 39, 16, true), 0x9abc);
	assert_true(can_bits_get(data, 7, 64, true) == UINT64_C(0x123456789abcdef0));
	assert_true(can_bits_get(data, 0, 64, false) == UINT64_C(0xf0debc9a78563412));
}

/* ---- values ---- */

static struct can_map map_of(enum can_kind kind, unsigned start, unsigned length, bool big,
			     bool is_signed)
{
	return (struct can_map){ .kind = kind, .start = start, .length = length, .big = big,
				 .is_signed = is_signed, .factor = 1, .min = -INFINITY, .max = INFINITY };
}

static __int128 nearest(__int128 v, unsigned length, bool is_signed)
{
	__int128 one = 1, low = is_signed ? -(one << (length - 1)) : 0;
	__int128 high = (one << (length - is_signed)) - 1;

	return v < low ? low : v > high ? high : v;
}

static void check_integer(const struct can_map *m, int64_t v)
{
	bool pattern = !m->is_signed && m->length == 64; /* of which all are possible */
	union signal_data in = { .i = v }, out = { 0 };
	__int128 want = pattern ? v : nearest(v, m->length, m->is_signed);
	uint8_t data[64] = { 0 };

	assert_int_equal(can_value_write(m, SIGNAL_INTEGER, &in, data),
			 want == v ? CAN_WRITTEN : CAN_CLIPPED);
	assert_true(can_value_read(m, data, &out));
	assert_true(out.i == (int64_t)want);
}

static void integers_of_all_lengths_come_back_or_become_the_nearest(void **unused)
{
	for (unsigned all = 0; all < 64 * 4; all++) {
		unsigned length = 1 + all / 4;
		bool big = all % 2, is_signed = all / 2 % 2;
		struct can_map m = map_of(CAN_INTEGER, big ? 7 : 0, length, big, is_signed);
		__int128 edges[2] = { nearest(INT64_MIN, length, is_signed),
				      nearest(INT64_MAX, length, is_signed) };

		for (unsigned k = 0; k < 2; k++)
			for (int d = -2; d <= 2; d++)
				if (edges[k] + d >= INT64_MIN && edges[k] + d <= INT64_MAX)
					check_integer(&m, (int64_t)(edges[k] + d));
		for (unsigned i = 0; i < 200; i++)
			check_integer(&m, (int64_t)draw() >> (i % 64));
	}
}

static void all_raw_values_of_16_bits_come_back_scaled(void **unused)
{
	static const double factors[] = { 1, 0.1, 0.01, -0.25, 1e-3, 3, 1e6 };

	for (unsigned f = 0; f < ARRAY_SIZE(factors); f++)
		for (unsigned raw = 0; raw < 65536; raw++) {
			struct can_map m = map_of(CAN_SCALED, 11, 16, raw % 2, raw / 2 % 2);
			uint8_t data[64] = { 0 }, again[64] = { 0 };
			union signal_data v;

			m.factor = factors[f];
			m.offset = -40;
			can_bits_set(data, m.start, m.length, m.big, raw);
			assert_true(can_value_read(&m, data, &v));
			assert_int_equal(can_value_write(&m, SIGNAL_FLOAT, &v, again), CAN_WRITTEN);
			assert_memory_equal(data, again, sizeof(data));
		}
}

static uint64_t raw_of(const struct can_map *m, double v, enum can_written want)
{
	const union signal_data in = { .f = v };
	uint8_t data[64] = { 0 };

	assert_int_equal(can_value_write(m, SIGNAL_FLOAT, &in, data), want);
	return can_bits_get(data, m->start, m->length, m->big);
}

static void what_does_not_fit_becomes_the_nearest_or_is_refused(void **unused)
{
	struct can_map m = map_of(CAN_SCALED, 0, 8, false, false);

	assert_int_equal(raw_of(&m, 254.5, CAN_WRITTEN), 255);
	assert_int_equal(raw_of(&m, 255.5, CAN_CLIPPED), 255);
	assert_int_equal(raw_of(&m, -0.4, CAN_WRITTEN), 0);
	assert_int_equal(raw_of(&m, -1, CAN_CLIPPED), 0);
	assert_int_equal(raw_of(&m, INFINITY, CAN_CLIPPED), 255);
	assert_int_equal(raw_of(&m, NAN, CAN_NO_NUMBER), 0);
	m.is_signed = true;
	assert_int_equal(raw_of(&m, -128, CAN_WRITTEN), 0x80);
	assert_int_equal(raw_of(&m, -1e300, CAN_CLIPPED), 0x80);
	m.min = -10;
	m.max = 10;
	assert_int_equal(raw_of(&m, 11, CAN_CLIPPED), 10);
	assert_int_equal(raw_of(&m, -11, CAN_CLIPPED), 0xf6);
	m = map_of(CAN_SCALED, 0, 64, false, false);
	assert_true(raw_of(&m, 0x1p64, CAN_CLIPPED) == UINT64_MAX);
	assert_true(raw_of(&m, 0x1p63, CAN_WRITTEN) == UINT64_C(1) << 63);
	m.is_signed = true;
	assert_true(raw_of(&m, 0x1p63, CAN_CLIPPED) == INT64_MAX);
	assert_true(raw_of(&m, -0x1p63, CAN_WRITTEN) == UINT64_C(1) << 63);
	m = map_of(CAN_REAL, 0, 32, false, false);
	assert_int_equal(raw_of(&m, 1, CAN_WRITTEN), 0x3f800000);
	assert_int_equal(raw_of(&m, 1e300, CAN_CLIPPED), 0x7f7fffff);
	assert_int_equal(raw_of(&m, INFINITY, CAN_WRITTEN), 0x7f800000);
	assert_int_equal(raw_of(&m, NAN, CAN_WRITTEN) & 0x7f800000, 0x7f800000);
	m = map_of(CAN_BOOLEAN, 0, 1, false, false);
	assert_int_equal(raw_of(&m, 0.5, CAN_WRITTEN), 1);
	assert_int_equal(raw_of(&m, NAN, CAN_NO_NUMBER), 0);
	m = map_of(CAN_INTEGER, 0, 8, false, false);
	m.max = 100;
	assert_int_equal(raw_of(&m, 101, CAN_CLIPPED), 100);
}

static void complex_values_are_two_floats_in_both_orders(void **unused)
{
	for (unsigned big = 0; big < 2; big++) {
		struct can_map m = map_of(CAN_COMPLEX, big ? 7 : 0, 64, big, false);
		union signal_data v = { .z = { 1.5f, -2.25f } }, back;
		uint8_t data[64] = { 0 };

		assert_int_equal(can_value_write(&m, SIGNAL_COMPLEX, &v, data), CAN_WRITTEN);
		assert_true(can_value_read(&m, data, &back));
		assert_true(back.z.re == 1.5f && back.z.im == -2.25f);
		assert_int_equal(data[big ? 0 : 3], 0x3f);
		assert_int_equal(data[big ? 4 : 7], 0xc0);
	}
}

/* ---- messages ---- */

static void messages_are_found_and_are_as_long_as_their_signals(void **unused)
{
	struct can_map maps[] = {
		{ .signal = 0, .id = CAN_EFF_FLAG | 5, .start = 64, .length = 8 },
		{ .signal = 1, .id = 5, .start = 7, .length = 16, .big = true },
		{ .signal = 2, .id = 5, .start = 16, .length = 1, .frame_length = 7 },
		{ .signal = 3, .id = 4, .start = 0, .length = 3 },
	};
	struct can_message m[4];

	assert_int_equal(can_messages_make(maps, 4, true, m), 3);
	assert_int_equal(m[0].id, 4);
	assert_int_equal(m[0].length, 1);
	assert_int_equal(m[1].id, 5);
	assert_int_equal(m[1].count, 2);
	assert_int_equal(m[1].reach, 3);
	assert_int_equal(m[1].length, 7);
	assert_int_equal(m[2].reach, 9);
	assert_int_equal(m[2].length, 12);
	assert_null(can_find_overlap(maps, 4));
	assert_ptr_equal(can_message_find(m, 3, CAN_EFF_FLAG | 5), &m[2]);
	assert_ptr_equal(can_message_find(m, 3, 4), &m[0]);
	assert_null(can_message_find(m, 3, 6));
	assert_null(can_message_find(m, 0, 6));
	/* Bits 7 to 0 and 15 to 8 are those of the big one. */
	maps[2].start = 8;
	assert_ptr_equal(can_find_overlap(maps, 4), &maps[2]);
}

static void frames_of_can_fd_have_one_of_its_lengths(void **unused)
{
	static const unsigned lengths[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64 };
	unsigned next = 0;

	for (unsigned reach = 1; reach <= 64; reach++) {
		struct can_map map = { .start = 8 * reach - 8, .length = 8 };
		struct can_message m;

		next += reach > lengths[next];
		assert_int_equal(can_messages_make(&map, 1, true, &m), 1);
		assert_int_equal(m.reach, reach);
		assert_int_equal(m.length, lengths[next]);
	}
}

/* ---- a bus of the test ---- */

static struct bus {
	int fds[2]; /* the node's end; the test's */
	_Atomic int attach, send, receive; /* what they return; 0: they do as they should */
	_Atomic unsigned sends;
	uint32_t overruns;
	time_t now;
} bus;

static int double_open(const struct can_bus_settings *s, char why[CAN_WHY_MAX])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, bus.fds), 0);
	return bus.fds[0];
}

static int double_attach(int fd, const struct can_bus_settings *s, unsigned *index,
			 char why[CAN_WHY_MAX])
{
	int ret = atomic_load(&bus.attach);

	snprintf(why, CAN_WHY_MAX, "%s: %s", s->interface, strerror(-ret));
	return ret;
}

static int double_send(int fd, const void *frame, size_t size)
{
	atomic_fetch_add(&bus.sends, 1);
	if (atomic_load(&bus.send))
		return atomic_load(&bus.send);
	return send(fd, frame, size, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int double_receive(int fd, struct can_arrival *a)
{
	ssize_t n;
	int ret = atomic_exchange(&bus.receive, 0);

	if (ret)
		return ret;
	n = recv(fd, a->bytes, sizeof(a->bytes), 0);
	if (n < 0)
		return -errno;
	a->size = (size_t)n;
	a->overruns = bus.overruns;
	a->received = (struct timespec){ .tv_sec = ++bus.now, .tv_nsec = 5 };
	return 0;
}

static const struct can_bus_ops double_ops = { double_open, double_attach, double_send,
					       double_receive };

static struct pool pool;
static _Atomic uint64_t figures[CAN_FIGURES];

static struct can_node *bus_node(struct made_node *m)
{
	return m->node.private_data;
}

static void start(struct made_node *m, const char *text)
{
	bus = (struct bus){ .fds = { -1, -1 } };
	memset(figures, 0, sizeof(figures));
	make_node(m, &node_can, text);
	m->node.figures = figures;
	bus_node(m)->ops = &double_ops;
	node_set_state(&m->node, NODE_STARTED);
	assert_int_equal(node_can.start(&m->node), 0);
}

static void stop(struct made_node *m)
{
	assert_int_equal(node_can.stop(&m->node), 0);
	close(bus.fds[1]);
	drop_node(m);
}

static void say(uint32_t id, unsigned len, const void *data, bool fd)
{
	struct canfd_frame f = { .can_id = id, .len = (uint8_t)len };

	memcpy(f.data, data, len);
	assert_int_equal(send(bus.fds[1], &f, fd ? CANFD_MTU : CAN_MTU, 0),
			 fd ? CANFD_MTU : CAN_MTU);
}

/* One frame that the node has sent; its size, or 0. */
static size_t hear(struct canfd_frame *f)
{
	ssize_t n = recv(bus.fds[1], f, sizeof(*f), 0);

	return n < 0 ? 0 : (size_t)n;
}

/* Without waiting; true: a sample. */
static bool get(struct made_node *m, struct sample *s)
{
	int ret;

	m->node.in.awaited = true;
	ret = node_read_one(m, s);
	assert_true(ret == 0 || ret == 1);
	return ret;
}

static bool write_values(struct made_node *m, const double v[], unsigned count)
{
	struct sample *s = sample_alloc(&pool);
	unsigned release = 1;
	int ret;

	s->length = count;
	s->flags = SAMPLE_HAS_DATA;
	s->signals = NULL;
	for (unsigned i = 0; i < count; i++)
		s->data[i].f = v[i];
	ret = node_write(&m->node, &s, 1, &release);
	sample_put(s);
	assert_true(ret == 0 || ret == 1);
	return ret;
}

#define TWO_IN \
	"interface_name = 'c0'; in = { %s signals = (" \
	"{ name = 'a'; type = 'integer'; can_id = 0x10; can_size = 2; init = 9L; }," \
	"{ name = 'b'; type = 'float'; can_id = 0x12345; can_size = 4; can_offset = 2; } ); };"

/* The form with the words in the place of %s, and with quotes. */
static const char *with(const char *form, const char *words)
{
	static char text[1500];
	const char *at = strstr(form, "%s");

	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - form), form, words, at + 2);
	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	return text;
}

static const uint8_t two[2] = { 0xfe, 0xff }, six[6] = { 0, 0, 0, 0, 0xc0, 0x3f };

static void a_sample_needs_a_frame_of_each_identifier(void **unused)
{
	struct sample *s = sample_alloc(&pool);
	struct made_node m;

	start(&m, with(TWO_IN, ""));
	assert_false(get(&m, s));
	assert_int_equal(node_state(&m.node), NODE_CONNECTED);
	say(0x10, 2, two, false);
	say(0x10, 2, two, false);
	say(CAN_EFF_FLAG | 0x10, 2, two, false); /* another identifier */
	say(CAN_RTR_FLAG | CAN_EFF_FLAG | 0x12345, 6, six, false);
	assert_false(get(&m, s));
	say(CAN_EFF_FLAG | 0x12345, 6, six, false);
	assert_true(get(&m, s));
	assert_int_equal(s->length, 2);
	assert_int_equal(s->data[0].i, -2);
	assert_true(s->data[1].f == 1.5);
	assert_int_equal(s->received.tv_sec, 5);
	assert_int_equal(s->origin.tv_sec, 5);
	assert_int_equal(s->sequence, 0);
	/* It begins again. */
	say(CAN_EFF_FLAG | 0x12345, 6, six, false);
	assert_false(get(&m, s));
	say(0x10, 2, "\1\0", false);
	assert_true(get(&m, s));
	assert_int_equal(s->data[0].i, 1);
	assert_int_equal(s->sequence, 1);
	assert_int_equal(figures[CAN_OVERWRITTEN], 1);
	assert_int_equal(figures[CAN_FRAMES_RECEIVED], 5);
	stop(&m);
	sample_put(s);
}

static void any_frame_or_one_identifier_makes_samples(void **unused)
{
	struct sample *s = sample_alloc(&pool);
	struct made_node m;

	start(&m, with(TWO_IN, "trigger = 'any';"));
	say(CAN_EFF_FLAG | 0x12345, 6, six, false);
	assert_true(get(&m, s));
	assert_int_equal(s->data[0].i, 9); /* its init */
	say(0x10, 2, two, false);
	assert_true(get(&m, s));
	assert_int_equal(s->data[0].i, -2);
	assert_true(s->data[1].f == 1.5);
	stop(&m);
	start(&m, with(TWO_IN, "trigger = 'id'; trigger_id = 0x80012345L;"));
	say(0x10, 2, two, false);
	assert_false(get(&m, s));
	say(CAN_EFF_FLAG | 0x12345, 6, six, false);
	assert_true(get(&m, s));
	assert_int_equal(s->data[0].i, -2);
	stop(&m);
	sample_put(s);
}

static void frames_that_cannot_be_meant_change_nothing(void **unused)
{
	struct sample *s = sample_alloc(&pool);
	struct made_node m;
	uint8_t bytes[CANFD_MTU] = { 0x10, 0, 0, 0, 9 };

	start(&m, with(TWO_IN, "trigger = 'any';"));
	say(0x10, 1, two, false);
	assert_int_equal(send(bus.fds[1], bytes, CAN_MTU, 0), CAN_MTU); /* 9 bytes of 8 */
	assert_int_equal(send(bus.fds[1], bytes, 3, 0), 3);
	bytes[4] = 65;
	assert_int_equal(send(bus.fds[1], bytes, CANFD_MTU, 0), CANFD_MTU);
	assert_false(get(&m, s));
	assert_int_equal(figures[CAN_SHORT_FRAMES], 1);
	assert_int_equal(figures[FAULT_MALFORMED], 4);
	bus.overruns = 3;
	say(0x10, 3, "\7\0x", true);
	assert_true(get(&m, s));
	assert_int_equal(s->data[0].i, 7);
	assert_int_equal(figures[FAULT_OVERRUN], 3);
	stop(&m);
	sample_put(s);
}

static void tell_error(uint32_t class, uint8_t controller, uint8_t tx, uint8_t rx)
{
	const uint8_t data[8] = { [1] = controller, [6] = tx, [7] = rx };

	say(CAN_ERR_FLAG | class, 8, data, false);
}

static void error_frames_are_counted_and_bus_off_is_no_connection(void **unused)
{
	struct sample *s = sample_alloc(&pool);
	struct made_node m;

	start(&m, with(TWO_IN, ""));
	tell_error(CAN_ERR_CRTL, CAN_ERR_CRTL_TX_WARNING, 0, 0);
	tell_error(CAN_ERR_CRTL | 0x200, CAN_ERR_CRTL_TX_PASSIVE, 130, 7);
	tell_error(CAN_ERR_ACK | CAN_ERR_BUSERROR | CAN_ERR_PROT | CAN_ERR_LOSTARB, 0, 0, 0);
	tell_error(CAN_ERR_TX_TIMEOUT | CAN_ERR_TRX, 0, 0, 0);
	tell_error(CAN_ERR_CRTL, CAN_ERR_CRTL_RX_OVERFLOW, 0, 0);
	assert_false(get(&m, s));
	assert_int_equal(node_state(&m.node), NODE_CONNECTED);
	tell_error(CAN_ERR_BUSOFF, 0, 0, 0);
	assert_false(get(&m, s));
	assert_int_equal(node_state(&m.node), NODE_PENDING_CONNECT);
	tell_error(CAN_ERR_RESTARTED, 0, 0, 0);
	assert_false(get(&m, s));
	assert_int_equal(node_state(&m.node), NODE_CONNECTED);
	for (unsigned i = CAN_BUS_OFF; i < CAN_TX_ERRORS; i++)
		assert_int_equal(figures[i], i != CAN_ACTIVE);
	assert_int_equal(figures[CAN_ERROR_FRAMES], 7);
	assert_int_equal(figures[CAN_TX_ERRORS], 130);
	assert_int_equal(figures[CAN_RX_ERRORS], 7);
	/* A frame from the bus says that it is there, too. */
	tell_error(CAN_ERR_BUSOFF, 0, 0, 0);
	say(0x10, 2, two, false);
	assert_false(get(&m, s));
	assert_int_equal(node_state(&m.node), NODE_CONNECTED);
	stop(&m);
	sample_put(s);
}

#define TWO_OUT \
	"interface_name = 'c0'; reconnect_interval = 10; %s out = { send_timeout = 0.05; signals = (" \
	"{ name = 'a'; type = 'float'; can_id = 0x7ff; start_bit = 4; bit_length = 12; factor = 0.5; }," \
	"{ name = 'b'; type = 'float'; can_id = 0x800; can_size = 4; frame_length = 7; }," \
	"{ name = 'c'; type = 'boolean'; can_id = 0x7ff; start_bit = 0; } ); };"

static const double values[] = { 1000.5, 1.5, 1 };

static void a_sample_becomes_a_frame_of_each_identifier(void **unused)
{
	struct canfd_frame f;
	struct made_node m;

	start(&m, with(TWO_OUT, ""));
	assert_true(write_values(&m, values, 3));
	assert_int_equal(node_state(&m.node), NODE_CONNECTED);
	assert_int_equal(hear(&f), CAN_MTU);
	assert_int_equal(f.can_id, 0x7ff);
	assert_int_equal(f.len, 2);
	assert_memory_equal(f.data, "\x11\x7d", 2); /* 2001 = 0x7d1 */
	assert_int_equal(hear(&f), CAN_MTU);
	assert_int_equal(f.can_id, CAN_EFF_FLAG | 0x800);
	assert_int_equal(f.len, 7);
	assert_memory_equal(f.data, "\0\0\xc0\x3f\0\0\0", 7);
	assert_int_equal(hear(&f), 0);
	/* Neither too short a sample nor one without a number. */
	assert_false(write_values(&m, values, 2));
	assert_false(write_values(&m, (double[]){ NAN, 0, 0 }, 3));
	assert_int_equal(m.node.counters.losses[NODE_LOSS_FORMAT], 2);
	assert_int_equal(hear(&f), 0);
	assert_true(write_values(&m, (double[]){ 1e9, 0, 0 }, 3));
	assert_int_equal(figures[CAN_CLIPPED_VALUES], 1);
	assert_int_equal(figures[CAN_FRAMES_SENT], 4);
	stop(&m);
	start(&m, with(TWO_OUT, "fd = true;"));
	assert_true(write_values(&m, values, 3));
	assert_int_equal(hear(&f), CANFD_MTU);
	assert_int_equal(f.flags, CANFD_BRS);
	stop(&m);
}

static void bytes_may_stand_in_both_orders(void **unused)
{
	struct canfd_frame f;
	struct made_node m;

	start(&m, with("%s", "interface_name = 'c0'; out = { signals = ("
		       "{ name = 'a'; type = 'float'; can_id = 1; can_size = 4; byte_order = 'big'; },"
		       "{ name = 'b'; type = 'float'; can_id = 1; can_size = 4; can_offset = 4; } ); };"));
	assert_true(write_values(&m, (double[]){ 1.5, 1.5 }, 2));
	assert_int_equal(hear(&f), CAN_MTU);
	assert_int_equal(f.len, 8);
	assert_memory_equal(f.data, "\x3f\xc0\0\0\0\0\xc0\x3f", 8);
	stop(&m);
}

/* A node whose file has a message with a multiplexor. */
static const char *multiplexed(const char *file, const char *direction)
{
	static char form[1000];

	snprintf(form, sizeof(form), "interface_name = 'c0'; dbc = '%s'; %s = { signals = ( "
		 "{ name = 'kind'; type = 'integer'; dbc_signal = 'A.Kind'; },"
		 "{ name = 'u'; type = 'float'; dbc_signal = 'A.U'; },"
		 "{ name = 'i'; type = 'float'; dbc_signal = 'A.I'; },"
		 "{ name = 'all'; type = 'float'; dbc_signal = 'A.All'; } ); };", file, direction);
	return form;
}

static void signals_of_a_multiplexor_share_a_frame(void **unused)
{
	static const char dbc[] = "BO_ 16 A: 8 X\n SG_ Kind M : 0|8@1+ (1,0) [0|0] \"\" X\n"
				  " SG_ U m1 : 15|16@0- (0.5,0) [0|0] \"\" X\n"
				  " SG_ I m2 : 8|16@1- (0.1,1) [0|0] \"\" X\n"
				  " SG_ All : 56|8@1+ (1,0) [0|0] \"\" X\n";
	char file[] = "/tmp/busbar-can-XXXXXX";
	struct sample *s = sample_alloc(&pool);
	int fd = mkstemp(file);
	struct canfd_frame f;
	struct made_node m;

	assert_int_equal(write(fd, dbc, sizeof(dbc) - 1), sizeof(dbc) - 1);
	close(fd);
	start(&m, with("%s", multiplexed(file, "in")));
	say(0x10, 8, "\1\xff\xfe\0\0\0\0\7", false);
	say(0x10, 8, "\3\0\1\0\0\0\0\10", false);
	assert_false(get(&m, s));
	say(0x10, 8, "\2\x0a\0\0\0\0\0\11", false);
	assert_true(get(&m, s));
	assert_int_equal(s->data[0].i, 2);
	assert_true(s->data[1].f == -1 && s->data[2].f == 2 && s->data[3].f == 9);
	/* Too short for what is always there, which is counted once. */
	say(0x10, 3, "\1\0\1", false);
	assert_false(get(&m, s));
	assert_int_equal(figures[CAN_SHORT_FRAMES], 1);
	assert_int_equal(figures[CAN_OVERWRITTEN], 0);
	stop(&m);
	start(&m, with("%s", multiplexed(file, "out")));
	assert_true(write_values(&m, (double[]){ 77, -1, 2, 9 }, 4));
	assert_int_equal(hear(&f), CAN_MTU);
	assert_int_equal(f.can_id, 0x10);
	assert_memory_equal(f.data, "\1\xff\xfe\0\0\0\0\11", 8);
	assert_int_equal(hear(&f), CAN_MTU);
	assert_memory_equal(f.data, "\2\x0a\0\0\0\0\0\11", 8);
	assert_int_equal(hear(&f), 0);
	assert_int_equal(figures[CAN_FRAMES_SENT], 2);
	stop(&m);
	sample_put(s);
	unlink(file);
}

static void a_full_queue_holds_up_for_a_limited_time(void **unused)
{
	struct canfd_frame f;
	struct made_node m;
	uint64_t start_ns;
	unsigned sends;

	start(&m, with(TWO_OUT, ""));
	atomic_store(&bus.send, -ENOBUFS);
	start_ns = clock_monotonic_ns_slow();
	assert_false(write_values(&m, values, 3));
	assert_true(clock_monotonic_ns_slow() - start_ns >= 50000000);
	assert_true(bus.sends > 2);
	assert_int_equal(m.node.counters.losses[NODE_LOSS_STUCK], 1);
	/* The next one is tried, but does not wait. */
	sends = bus.sends;
	assert_false(write_values(&m, values, 3));
	assert_int_equal(bus.sends, sends + 1);
	atomic_store(&bus.send, 0);
	assert_true(write_values(&m, values, 3));
	assert_int_equal(hear(&f), CAN_MTU);
	/* After bus-off nobody waits, and the loss is that of a bus that is away. */
	atomic_store(&bus.send, -ENOBUFS);
	tell_error(CAN_ERR_BUSOFF, 0, 0, 0);
	bus_node(&m)->drained_ns = 0;
	sends = bus.sends;
	assert_false(write_values(&m, values, 3));
	assert_int_equal(bus.sends, sends + 1);
	assert_int_equal(m.node.counters.losses[NODE_LOSS_ABSENT], 1);
	assert_int_equal(node_state(&m.node), NODE_PENDING_CONNECT);
	stop(&m);
}

static void *free_the_queue(void *unused)
{
	unsigned begin = atomic_load(&bus.sends);

	while (atomic_load(&bus.sends) < begin + 3)
		sched_yield();
	atomic_store(&bus.send, 0);
	return NULL;
}

static void a_frame_that_waited_is_sent(void **unused)
{
	struct made_node m;
	pthread_t thread;

	start(&m, with(TWO_OUT, ""));
	bus_node(&m)->send_timeout_s = 60;
	atomic_store(&bus.send, -EAGAIN);
	assert_int_equal(pthread_create(&thread, NULL, free_the_queue, NULL), 0);
	assert_true(write_values(&m, values, 3));
	pthread_join(thread, NULL);
	assert_int_equal(figures[CAN_WAITS], 1);
	stop(&m);
}

static void *interrupt(void *arg)
{
	struct made_node *m = arg;

	while (atomic_load(&bus.sends) < 3)
		sched_yield();
	node_can.interrupt(&m->node);
	return NULL;
}

static void a_write_that_waits_can_be_interrupted(void **unused)
{
	struct made_node m;
	pthread_t thread;

	start(&m, with(TWO_OUT, ""));
	bus_node(&m)->send_timeout_s = 1000;
	atomic_store(&bus.send, -ENOBUFS);
	assert_int_equal(pthread_create(&thread, NULL, interrupt, &m), 0);
	assert_false(write_values(&m, values, 3));
	pthread_join(thread, NULL);
	stop(&m);
}

static void samples_for_an_interface_that_is_away_are_counted(void **unused)
{
	struct made_node m;

	start(&m, with(TWO_OUT, ""));
	assert_true(write_values(&m, values, 3));
	atomic_store(&bus.attach, -ENETDOWN);
	atomic_store(&bus.send, -ENETDOWN);
	assert_false(write_values(&m, values, 3));
	assert_int_equal(node_state(&m.node), NODE_PENDING_CONNECT);
	assert_int_equal(m.node.counters.losses[NODE_LOSS_ABSENT], 1);
	assert_int_equal(figures[CAN_DOWNS], 1);
	assert_false(write_values(&m, values, 3));
	assert_int_equal(figures[CAN_DOWNS], 1);
	/* It comes again: the first frame goes, and the state follows. */
	atomic_store(&bus.send, 0);
	atomic_store(&bus.attach, 0);
	assert_true(write_values(&m, values, 3));
	assert_true(write_values(&m, values, 3));
	assert_int_equal(node_state(&m.node), NODE_CONNECTED);
	stop(&m);
}

struct reading {
	struct made_node *m;
	struct sample *s;
	int ret;
};

static void *read_blocking(void *arg)
{
	struct reading *r = arg;

	r->m->node.in.awaited = false;
	r->ret = node_read_one(r->m, r->s);
	return NULL;
}

static void a_reader_outlives_the_interface_and_is_interrupted(void **unused)
{
	struct made_node m;
	struct reading r = { .m = &m, .s = sample_alloc(&pool) };
	pthread_t thread;

	bus = (struct bus){ .attach = -ENODEV };
	memset(figures, 0, sizeof(figures));
	make_node(&m, &node_can, with(TWO_IN, "trigger = 'any';"));
	m.node.figures = figures;
	bus_node(&m)->ops = &double_ops;
	bus_node(&m)->reconnect_ms = 10;
	node_set_state(&m.node, NODE_STARTED);
	/* It need not be there at the start. */
	assert_int_equal(node_can.start(&m.node), 0);
	assert_int_equal(pthread_create(&thread, NULL, read_blocking, &r), 0);
	while (node_state(&m.node) != NODE_PENDING_CONNECT)
		sched_yield();
	atomic_store(&bus.attach, 0);
	while (node_state(&m.node) != NODE_CONNECTED)
		sched_yield();
	/* Down, and up again, while the reader sleeps. */
	atomic_store(&bus.attach, -ENETDOWN);
	atomic_store(&bus.receive, -ENETDOWN);
	socket_wait_kick(&bus_node(&m)->wait);
	while (node_state(&m.node) != NODE_PENDING_CONNECT)
		sched_yield();
	atomic_store(&bus.attach, 0);
	while (node_state(&m.node) != NODE_CONNECTED)
		sched_yield();
	assert_int_equal(atomic_load(&figures[CAN_DOWNS]), 1);
	say(0x10, 2, two, false);
	pthread_join(thread, NULL);
	assert_int_equal(r.ret, 1);
	assert_int_equal(pthread_create(&thread, NULL, read_blocking, &r), 0);
	node_can.interrupt(&m.node);
	pthread_join(thread, NULL);
	assert_int_equal(r.ret, -EINTR);
	stop(&m);
	sample_put(r.s);
}

static void a_reader_that_sleeps_looks_when_the_writer_finds_the_interface_down(void **unused)
{
	struct made_node m;
	struct reading r = { .m = &m, .s = sample_alloc(&pool) };
	pthread_t thread;

	start(&m, with(TWO_OUT, "in = { signals = ( { name = 'i'; can_id = 0x10; } ); };"));
	assert_int_equal(pthread_create(&thread, NULL, read_blocking, &r), 0);
	while (node_state(&m.node) != NODE_CONNECTED)
		sched_yield();
	/* The error is told once, and the writer has taken it. */
	atomic_store(&bus.attach, -ENETDOWN);
	atomic_store(&bus.send, -ENETDOWN);
	assert_false(write_values(&m, values, 3));
	assert_int_equal(node_state(&m.node), NODE_PENDING_CONNECT);
	atomic_store(&bus.attach, 0);
	while (node_state(&m.node) != NODE_CONNECTED)
		sched_yield();
	node_can.interrupt(&m.node);
	pthread_join(thread, NULL);
	assert_int_equal(r.ret, -EINTR);
	stop(&m);
	sample_put(r.s);
}

static void what_is_no_interface_of_can_fails_the_start(void **unused)
{
	struct made_node m;

	bus = (struct bus){ .attach = -EINVAL };
	make_node(&m, &node_can, with(TWO_IN, ""));
	bus_node(&m)->ops = &double_ops;
	assert_int_equal(node_can.start(&m.node), -EINVAL);
	close(bus.fds[1]);
	drop_node(&m);
}

static void a_kernel_without_can_sockets_is_told_so(void **unused)
{
	const struct can_bus_settings settings = { .interface = "no such", .loopback = true };
	char why[CAN_WHY_MAX] = "";
	unsigned index = 0;
	int fd = can_bus_socket.open(&settings, why);

	if (fd < 0) {
		assert_true(fd == -EAFNOSUPPORT || fd == -EPROTONOSUPPORT);
		assert_non_null(strstr(why, "modprobe can_raw"));
		return;
	}
	assert_int_equal(can_bus_socket.attach(fd, &settings, &index, why), -ENODEV);
	assert_string_equal(why, "no such: No such device");
	close(fd);
}

static void the_kernel_is_asked_for_the_identifiers_or_for_all_of_very_many(void **unused)
{
	static char text[600 * 60];
	struct made_node m;

	for (unsigned count = 512; count <= 513; count++) {
		size_t at = (size_t)sprintf(text, "interface_name = \"c0\"; in = { signals = (");
		const struct can_filter *f;

		for (unsigned i = 0; i < count; i++)
			at += (size_t)sprintf(text + at, "%s{ name = \"s%u\"; can_id = %u; }", i ? "," : "", i,
					      0x7ff - 256 + i);
		strcpy(text + at, "); };");
		start(&m, text);
		f = bus_node(&m)->filters;
		assert_int_equal(bus_node(&m)->bus.filter_count, count);
		assert_int_equal(bus_node(&m)->bus.all, count > 512);
		assert_int_equal(f[256].can_id, 0x7ff);
		assert_int_equal(f[256].can_mask, CAN_SFF_MASK | CAN_EFF_FLAG | CAN_RTR_FLAG);
		assert_int_equal(f[257].can_id, CAN_EFF_FLAG | 0x800);
		assert_int_equal(f[257].can_mask, CAN_EFF_MASK | CAN_EFF_FLAG | CAN_RTR_FLAG);
		stop(&m);
	}
}

/* ---- settings ---- */

static void wrong_settings_are_refused(void **unused)
{
	static const char *const wrong[] = {
		"can_id = 0x20000000;", "can_id = 0xa0000000L;", "can_id = 0x800; can_extended = false;",
		"can_id = 0x80000001L; can_extended = false;", "can_id = -1;", "",
		"can_id = 1; can_size = 9;", "can_id = 1; can_size = 0;", "can_id = 1; can_size = 3;",
		"can_id = 1; can_offset = 1;", "can_id = 1; can_size = 4; can_offset = 5;",
		"can_id = 1; can_size = 4; bit_length = 32;", "can_id = 1; start_bit = 0;",
		"can_id = 1; start_bit = 1; bit_length = 64;", "can_id = 1; start_bit = 57; bit_length = 8;",
		"can_id = 1; start_bit = 56; bit_length = 2; byte_order = 'big';",
		"can_id = 1; bit_length = 65;", "can_id = 1; bit_length = 16; coding = 'float';",
		"can_id = 1; factor = 0.0;", "can_id = 1; min = 2.0; max = 1.0;",
		"can_id = 1; frame_length = 9;", "can_id = 1; type = 'complex'; can_size = 4;",
		"can_id = 1; type = 'complex'; bit_length = 64;", "can_id = 1; count = 2;",
		"can_id = 1; endian = 'big';", "can_id = 1; byte_order = 'middle';",
	};
	static const char *const right[] = {
		"can_id = 0x7ff;", "can_id = 0x1fffffff;", "can_id = 0x9fffffffL;",
		"can_id = 1; can_extended = true;", "can_id = 1; can_size = 4; can_offset = 4;",
		"can_id = 1; can_size = 3; coding = 'integer';", "can_id = 1; bit_length = 64;",
		"can_id = 1; start_bit = 7; bit_length = 64; byte_order = 'big';",
		"can_id = 1; start_bit = 57; bit_length = 2; byte_order = 'big';",
		"can_id = 1; start_bit = 63; bit_length = 1;",
		"can_id = 1; bit_length = 32; coding = 'float'; factor = 2.0;",
	};
	static const char form[] = "interface_name = 'c0'; out = { signals = ( "
				   "{ name = 'x'; type = 'float'; %s } ); };";
	static const char typed[] = "interface_name = 'c0'; out = { signals = ( "
				    "{ name = 'x'; %s } ); };";
	struct made_node m;

	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (!try_node(&m, &node_can, with(strstr(wrong[i], "type") ? typed : form, wrong[i])))
			fail_msg("accepted: %s", wrong[i]);
		drop_node(&m);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(right); i++) {
		if (try_node(&m, &node_can, with(form, right[i])))
			fail_msg("refused: %s", right[i]);
		drop_node(&m);
	}
}

static void settings_that_contradict_each_other_are_refused(void **unused)
{
	static const char *const wrong[] = {
		"interface_name = 'c0';",
		"interface_name = 'a_name_of_16_byt'; in = { signals = ( { can_id = 1; } ); };",
		"interface_name = 'c0'; in = { trigger = 'id'; signals = ( { can_id = 1; } ); };",
		"interface_name = 'c0'; in = { trigger = 'id'; trigger_id = 2; signals = ( { can_id = 1; } ); };",
		"interface_name = 'c0'; in = { trigger = 'id'; trigger_id = 0x20000000; signals = ( { can_id = 1; } ); };",
		"interface_name = 'c0'; out = { signals = ( { can_id = 1; }, { name = 'b'; can_id = 1; can_size = 4; can_offset = 4; } ); };",
		"interface_name = 'c0'; in = { signals = '2f'; };",
	};
	struct made_node m;

	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (try_node(&m, &node_can, with("%s", wrong[i])) == 0)
			fail_msg("accepted: %s", wrong[i]);
		drop_node(&m);
	}
	/* What is received may be read twice; CAN FD has room for more. */
	make_node(&m, &node_can,
		  with("%s", "interface_name = 'c0'; fd = true; in = { signals = ("
		       "{ can_id = 1; can_offset = 56; }, { name = 'b'; can_id = 1; can_offset = 56; } ); };"));
	drop_node(&m);
}

static int set_up(void **unused)
{
	return pool_init(&pool, 16, 8, &memory_heap);
}

static int tear_down(void **unused)
{
	return (int)pool_destroy(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_are_those_of_a_slow_reference_at_all_places),
		cmocka_unit_test(bits_stand_where_dbc_files_have_them),
		cmocka_unit_test(integers_of_all_lengths_come_back_or_become_the_nearest),
		cmocka_unit_test(all_raw_values_of_16_bits_come_back_scaled),
		cmocka_unit_test(what_does_not_fit_becomes_the_nearest_or_is_refused),
		cmocka_unit_test(complex_values_are_two_floats_in_both_orders),
		cmocka_unit_test(messages_are_found_and_are_as_long_as_their_signals),
		cmocka_unit_test(frames_of_can_fd_have_one_of_its_lengths),
		cmocka_unit_test(a_sample_needs_a_frame_of_each_identifier),
		cmocka_unit_test(any_frame_or_one_identifier_makes_samples),
		cmocka_unit_test(frames_that_cannot_be_meant_change_nothing),
		cmocka_unit_test(error_frames_are_counted_and_bus_off_is_no_connection),
		cmocka_unit_test(a_sample_becomes_a_frame_of_each_identifier),
		cmocka_unit_test(bytes_may_stand_in_both_orders),
		cmocka_unit_test(signals_of_a_multiplexor_share_a_frame),
		cmocka_unit_test(a_full_queue_holds_up_for_a_limited_time),
		cmocka_unit_test(a_frame_that_waited_is_sent),
		cmocka_unit_test(a_write_that_waits_can_be_interrupted),
		cmocka_unit_test(samples_for_an_interface_that_is_away_are_counted),
		cmocka_unit_test(a_reader_outlives_the_interface_and_is_interrupted),
		cmocka_unit_test(a_reader_that_sleeps_looks_when_the_writer_finds_the_interface_down),
		cmocka_unit_test(what_is_no_interface_of_can_fails_the_start),
		cmocka_unit_test(a_kernel_without_can_sockets_is_told_so),
		cmocka_unit_test(the_kernel_is_asked_for_the_identifiers_or_for_all_of_very_many),
		cmocka_unit_test(wrong_settings_are_refused),
		cmocka_unit_test(settings_that_contradict_each_other_are_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
