/* SPDX-License-Identifier: BSD-2-Clause */
/* The set-up of MPA: what both ends agree on, what is refused, and what time and cuts do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/iwarp/setup.h"
#include "util/container_of.h"

enum { MAX = 128, SECOND = 1000000000 };

static struct iwarp_setup initiator, responder;

static void check(bool good, const char *what)
{
	if (good)
		return;
	printf("failed: %s\n", what);
	exit(1);
}

static struct iwarp_setup_params params(bool first)
{
	return (struct iwarp_setup_params){
		.initiator = first, .revision = 2, .sends_markers = true, .ird = 4, .ord = 4,
		.ird_max = MAX, .ord_max = MAX,
		.rtr = IWARP_RTR_WRITE | IWARP_RTR_READ,
	};
}

static void open_both(const struct iwarp_setup_params *i, const struct iwarp_setup_params *r)
{
	check(!iwarp_setup_open(&initiator, i, 1), "the initiator opens");
	check(!iwarp_setup_open(&responder, r, 1), "the responder opens");
}

/* All that `from` has to send, in pieces of `piece` bytes. */
static void move(struct iwarp_setup *from, struct iwarp_setup *to, size_t piece)
{
	const uint8_t *data;
	size_t bytes;

	while (data = iwarp_setup_output(from, &bytes), bytes) {
		size_t n = MIN(bytes, piece), left = n;
		uint8_t copy[IWARP_MPA_FRAME_MAX];

		memcpy(copy, data, n);
		data = copy;
		iwarp_setup_sent(from, n);
		iwarp_setup_take(to, &data, &left);
		check(!left || to->state == IWARP_SETUP_FAILED, "all of a frame is taken");
	}
}

static void accept_and_reply(uint16_t ird, uint16_t ord)
{
	check(responder.state == IWARP_SETUP_DECIDING, "the request is there");
	check(!iwarp_setup_accept(&responder, ird, ord, NULL, 0), "accepted");
	move(&responder, &initiator, SIZE_MAX);
}

static void connect_both(const struct iwarp_setup_params *i, const struct iwarp_setup_params *r)
{
	open_both(i, r);
	move(&initiator, &responder, SIZE_MAX);
	accept_and_reply(r->ird, r->ord);
	check(responder.state == IWARP_SETUP_DONE, "the responder is ready");
}

/* The initiator gets this reply to its request. */
static void forge_reply(const struct iwarp_setup_params *i, struct iwarp_mpa reply)
{
	uint8_t frame[IWARP_MPA_FRAME_MAX];
	const uint8_t *data = frame;
	size_t bytes;

	check(!iwarp_setup_open(&initiator, i, 1), "the initiator opens");
	iwarp_setup_output(&initiator, &bytes);
	iwarp_setup_sent(&initiator, bytes);
	reply.reply = true;
	bytes = iwarp_mpa_encode(&reply, frame);
	check(bytes, "a frame");
	iwarp_setup_take(&initiator, &data, &bytes);
}

static void forge_request(const struct iwarp_setup_params *r, const struct iwarp_mpa *request)
{
	uint8_t frame[IWARP_MPA_FRAME_MAX];
	const uint8_t *data = frame;
	size_t bytes = iwarp_mpa_encode(request, frame);

	check(!iwarp_setup_open(&responder, r, 1), "the responder opens");
	iwarp_setup_take(&responder, &data, &bytes);
}

static struct iwarp_mpa output_of(struct iwarp_setup *s, bool reply)
{
	struct iwarp_mpa mpa = { 0 };
	size_t bytes, whole = 0;
	const uint8_t *data = iwarp_setup_output(s, &bytes);

	check(!iwarp_mpa_decode(data, bytes, reply, &mpa, &whole) && whole == bytes, "a frame");
	return mpa;
}

static void a_peers_ord_raises_the_ird_and_its_ird_lowers_the_ord(void)
{
	static const struct {
		uint16_t i_ird, i_ord, r_ird, r_ord;  /* wanted */
		uint16_t got_i_ird, got_i_ord, got_r_ird, got_r_ord;
	} rows[] = {
		{ 4, 4, 4, 4, 4, 4, 4, 4 },
		{ 1, 16, 4, 4, 1, 16, 16, 1 },
		{ 16, 1, 4, 128, 16, 1, 4, 16 },
		{ 0, 0, 4, 4, 0, 0, 4, 0 },
		{ 300, 300, 1, 300, 128, 128, 128, 128 },
	};

	for (size_t n = 0; n < ARRAY_SIZE(rows); n++) {
		struct iwarp_setup_params i = params(true), r = params(false);

		i.ird = rows[n].i_ird;
		i.ord = rows[n].i_ord;
		r.ird = rows[n].r_ird;
		r.ord = rows[n].r_ord;
		connect_both(&i, &r);
		check(initiator.state == IWARP_SETUP_DONE, "the initiator is ready");
		check(initiator.terms.ird == rows[n].got_i_ird &&
			      initiator.terms.ord == rows[n].got_i_ord &&
			      responder.terms.ird == rows[n].got_r_ird &&
			      responder.terms.ord == rows[n].got_r_ord,
		      "IRD and ORD");
	}
}

static void a_reply_asks_for_more_than_the_limit(void)
{
	struct iwarp_setup_params i = params(true);

	forge_reply(&i, (struct iwarp_mpa){ .revision = 2, .enhanced = true, .ird = 4,
					    .ord = MAX });
	check(initiator.state == IWARP_SETUP_DONE && initiator.terms.ird == MAX,
	      "the IRD is raised to the limit");
	forge_reply(&i, (struct iwarp_mpa){ .revision = 2, .enhanced = true, .ird = 4,
					    .ord = MAX + 1 });
	check(initiator.state == IWARP_SETUP_FAILED && initiator.result == -ENOMEM &&
		      initiator.terminate == IWARP_MPA_IRD,
	      "a TERMINATE about the IRD");
	check(iwarp_error_control(initiator.terminate) >> 16 == 0x2006, "LLP, code 6");
}

static void a_reply_offers_a_lower_ird(void)
{
	struct iwarp_setup_params i = params(true);

	forge_reply(&i, (struct iwarp_mpa){ .revision = 2, .enhanced = true, .ird = 2, .ord = 1 });
	check(initiator.terms.ord == 2 && initiator.terms.ird == 4, "the ORD is lowered");
	forge_reply(&i, (struct iwarp_mpa){ .revision = 2, .enhanced = true, .ird = 200 });
	check(initiator.terms.ord == 4, "and not raised");
}

static void the_first_message_is_a_write_before_a_read_before_a_send(void)
{
	for (uint8_t offered = 1; offered < 8; offered++)
		for (uint8_t taken = 0; taken < 8; taken++) {
			struct iwarp_setup_params i = params(true), r = params(false);
			uint8_t both = offered & taken;
			uint8_t want = both & 1 ? 1 : both & 2 ? 2 : both & 4 ? 4 : 1;

			i.peer_to_peer = true;
			i.rtr = offered;
			r.rtr = taken;
			connect_both(&i, &r);
			check(responder.terms.rtr == want, "the responder chooses");
			if (offered & want) {
				check(initiator.state == IWARP_SETUP_DONE &&
					      initiator.terms.rtr == want,
				      "the initiator knows it");
				continue;
			}
			check(initiator.state == IWARP_SETUP_FAILED &&
				      initiator.terminate == IWARP_MPA_RTR &&
				      iwarp_error_control(IWARP_MPA_RTR) >> 16 == 0x2007,
			      "none in common: a TERMINATE");
		}
}

static void a_read_as_first_message_needs_its_place(void)
{
	struct iwarp_setup_params i = params(true), r = params(false);

	i.peer_to_peer = true;
	i.rtr = IWARP_RTR_READ;
	i.ord = 1;
	r.ird = 0;
	connect_both(&i, &r);
	check(responder.terms.rtr == IWARP_RTR_READ && responder.terms.ird == 1, "one is granted");
	i.ord = 0;
	check(iwarp_setup_open(&initiator, &i, 1) == -EINVAL, "without ORD it cannot be offered");
	i.rtr |= IWARP_RTR_WRITE;
	connect_both(&i, &r);
	check(initiator.terms.rtr == IWARP_RTR_WRITE, "a WRITE needs none");
}

static void nobody_asks_for_a_first_message(void)
{
	struct iwarp_setup_params i = params(true), r = params(false);

	connect_both(&i, &r);
	check(!initiator.terms.rtr && !responder.terms.rtr, "none");
	i.peer_to_peer = true;
	forge_reply(&i, (struct iwarp_mpa){ .revision = 2, .enhanced = true, .ird = 1, .ord = 1 });
	check(initiator.state == IWARP_SETUP_DONE && !initiator.terms.rtr,
	      "a responder that does not know of it");
}

static void crc_is_used_if_either_end_asks(void)
{
	for (unsigned n = 0; n < 4; n++) {
		struct iwarp_setup_params i = params(true), r = params(false);

		i.crc = n & 1;
		r.crc = n & 2;
		connect_both(&i, &r);
		check(initiator.terms.crc == (n != 0) && responder.terms.crc == (n != 0), "CRC");
		check(initiator.peer.crc == (n != 0), "the reply says so");
	}
}

static void markers_are_what_the_receiver_wants(void)
{
	for (unsigned n = 0; n < 4; n++) {
		struct iwarp_setup_params i = params(true), r = params(false);

		i.markers = n & 1;
		r.markers = n & 2;
		connect_both(&i, &r);
		check(initiator.terms.markers_in == i.markers &&
			      initiator.terms.markers_out == r.markers &&
			      responder.terms.markers_in == r.markers &&
			      responder.terms.markers_out == i.markers,
		      "markers of each direction");
	}
}

static void an_end_without_markers_refuses_them(void)
{
	struct iwarp_setup_params i = params(true), r = params(false);
	struct iwarp_mpa reply;

	i.markers = true;
	r.sends_markers = false;
	open_both(&i, &r);
	move(&initiator, &responder, SIZE_MAX);
	check(responder.state == IWARP_SETUP_REPLYING, "it replies");
	reply = output_of(&responder, true);
	check(reply.reject && !reply.markers, "R is set and M is not");
	move(&responder, &initiator, SIZE_MAX);
	check(responder.state == IWARP_SETUP_FAILED && responder.result == -EPROTO, "it ends");
	check(initiator.result == -ECONNREFUSED, "the initiator is refused");
	i = params(true);
	i.sends_markers = false;
	forge_reply(&i, (struct iwarp_mpa){ .revision = 2, .enhanced = true, .markers = true });
	check(initiator.state == IWARP_SETUP_FAILED && initiator.result == -EPROTO &&
		      !initiator.terminate,
	      "so does an initiator");
}

static void revision_1_has_no_depths(void)
{
	struct iwarp_setup_params i = params(true), r = params(false);

	i.revision = 1;
	i.ird = 7;
	r.ord = 9;
	connect_both(&i, &r);
	check(initiator.peer.revision == 1 && !initiator.peer.enhanced, "a reply of revision 1");
	check(initiator.terms.ird == 7 && responder.terms.ord == 9 && !responder.terms.rtr,
	      "both keep theirs");
	i.revision = 2;
	forge_reply(&i, (struct iwarp_mpa){ .revision = 1 });
	check(initiator.result == -ECONNRESET, "a reply of a lower revision");
	forge_reply(&i, (struct iwarp_mpa){ .revision = 2 });
	check(initiator.result == -ECONNRESET, "a reply without IRD and ORD");
	/* A request of revision 2 need not be enhanced. */
	forge_request(&r, &(struct iwarp_mpa){ .revision = 2 });
	check(!iwarp_setup_accept(&responder, 1, 1, NULL, 0) &&
		      !output_of(&responder, true).enhanced, "nor is the reply then");
}

static void a_rejection_brings_its_private_data(void)
{
	struct iwarp_setup_params i = params(true), r = params(false);

	open_both(&i, &r);
	move(&initiator, &responder, SIZE_MAX);
	check(!iwarp_setup_reject(&responder, (const uint8_t *)"busy", 4), "rejected");
	move(&responder, &initiator, SIZE_MAX);
	check(responder.state == IWARP_SETUP_FAILED && responder.result == -ECONNREFUSED, "here");
	check(initiator.state == IWARP_SETUP_FAILED && initiator.result == -ECONNREFUSED &&
		      initiator.peer.private_bytes == 4 &&
		      !memcmp(initiator.peer.private_data, "busy", 4), "and there");
}

static void private_data_come_through_however_they_are_cut(void)
{
	struct iwarp_setup_params i = params(true), r = params(false);
	uint8_t data[512];

	memset(data, 0x5a, sizeof(data));
	i.private_data = data;
	for (uint16_t bytes = 0; bytes <= 508; bytes += 127) {
		for (size_t piece = 1; piece < 600; piece += 37) {
			i.private_bytes = bytes;
			open_both(&i, &r);
			move(&initiator, &responder, piece);
			check(responder.state == IWARP_SETUP_DECIDING &&
				      responder.peer.private_bytes == bytes &&
				      !memcmp(responder.peer.private_data, data, bytes),
			      "of the request");
			check(!iwarp_setup_accept(&responder, 4, 4, data, bytes), "accepted");
			move(&responder, &initiator, piece);
			check(initiator.state == IWARP_SETUP_DONE &&
				      initiator.peer.private_bytes == bytes, "of the reply");
		}
	}
	i.private_bytes = 509;
	check(iwarp_setup_open(&initiator, &i, 1) == -EINVAL, "too long a request");
	i.private_bytes = 0;
	open_both(&i, &r);
	move(&initiator, &responder, SIZE_MAX);
	check(iwarp_setup_accept(&responder, 4, 4, data, 509) == -EINVAL &&
		      responder.state == IWARP_SETUP_DECIDING, "too long a reply changes nothing");
	check(!iwarp_setup_accept(&responder, 4, 4, data, 508), "a shorter one is sent");
}

static void what_is_no_mpa_is_closed_without_a_reply(void)
{
	static const char *const starts[] = {
		"GET / HTTP/1.1\r\n\r\n....", "MPA ID Rep Frame....",
		"MPA ID Req Frame\0\3\0\0", "MPA ID Req Frame\0\2\2\1",
	};
	static const enum iwarp_error errors[] = { IWARP_MPA_KEY, IWARP_MPA_KEY,
						   IWARP_MPA_REVISION, IWARP_MPA_PRIVATE_DATA };
	struct iwarp_setup_params r = params(false);

	for (size_t n = 0; n < ARRAY_SIZE(starts); n++) {
		const uint8_t *data = (const uint8_t *)starts[n];
		size_t bytes = 20, out;

		check(!iwarp_setup_open(&responder, &r, 1), "open");
		iwarp_setup_take(&responder, &data, &bytes);
		iwarp_setup_output(&responder, &out);
		check(responder.state == IWARP_SETUP_FAILED && responder.result == -EPROTO &&
			      !out && responder.broken == errors[n], "the rule that was broken");
	}
}

static void enhanced_without_depths_is_rejected(void)
{
	struct iwarp_setup_params r = params(false);
	const uint8_t *data = (const uint8_t *)"MPA ID Req Frame\x10\2\0\2..";
	size_t bytes = 22;

	check(!iwarp_setup_open(&responder, &r, 1), "open");
	iwarp_setup_take(&responder, &data, &bytes);
	check(responder.state == IWARP_SETUP_REPLYING && output_of(&responder, true).reject,
	      "by a reply");
	iwarp_setup_output(&responder, &bytes);
	iwarp_setup_sent(&responder, bytes);
	check(responder.state == IWARP_SETUP_FAILED && responder.broken == IWARP_MPA_ENHANCED,
	      "and it ends");
}

static void nothing_may_follow_a_request_before_its_reply(void)
{
	struct iwarp_setup_params i = params(true), r = params(false);
	const uint8_t *data = (const uint8_t *)"x";
	size_t bytes = 1;

	open_both(&i, &r);
	move(&initiator, &responder, SIZE_MAX);
	iwarp_setup_take(&responder, &data, &bytes);
	check(responder.state == IWARP_SETUP_FAILED && responder.result == -EPROTO, "deciding");
	open_both(&i, &r);
	move(&initiator, &responder, SIZE_MAX);
	check(!iwarp_setup_accept(&responder, 1, 1, NULL, 0), "accepted");
	iwarp_setup_sent(&responder, 10);
	data = (const uint8_t *)"x";
	bytes = 1;
	iwarp_setup_take(&responder, &data, &bytes);
	check(responder.state == IWARP_SETUP_FAILED, "replying");
}

static void bytes_behind_the_reply_are_the_connections(void)
{
	struct iwarp_setup_params i = params(true);
	uint8_t frame[IWARP_MPA_FRAME_MAX + 3];
	const struct iwarp_mpa reply = { .reply = true, .revision = 2, .enhanced = true, .ird = 1 };
	const uint8_t *data = frame;
	size_t bytes;

	check(!iwarp_setup_open(&initiator, &i, 1), "open");
	iwarp_setup_take(&initiator, &data, &(size_t){ 1 });
	check(initiator.state == IWARP_SETUP_FAILED, "a reply before the request is sent");
	check(!iwarp_setup_open(&initiator, &i, 1), "open");
	iwarp_setup_output(&initiator, &bytes);
	iwarp_setup_sent(&initiator, bytes);
	bytes = iwarp_mpa_encode(&reply, frame) + 3;
	data = frame;
	iwarp_setup_take(&initiator, &data, &bytes);
	check(initiator.state == IWARP_SETUP_DONE && bytes == 3, "they are left");
	iwarp_setup_take(&initiator, &data, &bytes);
	check(bytes == 3, "for ever");
}

static void a_set_up_has_a_time_limit(void)
{
	struct iwarp_setup_params i = params(true), r = params(false);

	i.wait_ns = 10 * (uint64_t)SECOND;
	r.wait_ns = 5 * (uint64_t)SECOND;
	open_both(&i, &r);
	check(initiator.deadline_ns == i.wait_ns + 1 && responder.deadline_ns == r.wait_ns + 1,
	      "the limits");
	iwarp_setup_timer(&responder, r.wait_ns);
	check(responder.state == IWARP_SETUP_LISTENING, "not before");
	iwarp_setup_timer(&responder, r.wait_ns + 1);
	check(responder.state == IWARP_SETUP_FAILED && responder.result == -ETIMEDOUT,
	      "no request");
	iwarp_setup_timer(&initiator, i.wait_ns + 1);
	check(initiator.state == IWARP_SETUP_FAILED && initiator.result == -ETIMEDOUT, "no reply");
	open_both(&i, &r);
	move(&initiator, &responder, SIZE_MAX);
	check(!responder.deadline_ns, "the program may take its time");
	iwarp_setup_timer(&responder, UINT64_MAX);
	accept_and_reply(1, 1);
	check(initiator.state == IWARP_SETUP_DONE && !initiator.deadline_ns, "in time");
	iwarp_setup_timer(&initiator, UINT64_MAX);
	check(initiator.state == IWARP_SETUP_DONE, "and that stays");
}

static void the_stream_ends_in_between(void)
{
	struct iwarp_setup_params i = params(true), r = params(false);

	open_both(&i, &r);
	iwarp_setup_ended(&initiator);
	iwarp_setup_ended(&responder);
	check(initiator.result == -ECONNRESET && responder.result == -ECONNRESET, "both fail");
	connect_both(&i, &r);
	iwarp_setup_ended(&initiator);
	check(initiator.state == IWARP_SETUP_DONE, "behind the set-up it is the connection's");
}

int main(void)
{
	a_peers_ord_raises_the_ird_and_its_ird_lowers_the_ord();
	a_reply_asks_for_more_than_the_limit();
	a_reply_offers_a_lower_ird();
	the_first_message_is_a_write_before_a_read_before_a_send();
	a_read_as_first_message_needs_its_place();
	nobody_asks_for_a_first_message();
	crc_is_used_if_either_end_asks();
	markers_are_what_the_receiver_wants();
	an_end_without_markers_refuses_them();
	revision_1_has_no_depths();
	a_rejection_brings_its_private_data();
	private_data_come_through_however_they_are_cut();
	what_is_no_mpa_is_closed_without_a_reply();
	enhanced_without_depths_is_rejected();
	nothing_may_follow_a_request_before_its_reply();
	bytes_behind_the_reply_are_the_connections();
	a_set_up_has_a_time_limit();
	the_stream_ends_in_between();
	return 0;
}
