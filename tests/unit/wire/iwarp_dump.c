/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a capture file of two iWARP connections for iwarp_tshark.sh, so that tshark, an
 * independent decoder, checks them: each opcode, with CRCs; then FPDUs with markers in both
 * directions.
 */
#include <stdio.h>
#include <string.h>

#include "iwarp_samples.h"
#include "util/container_of.h"
#include "wire/iwarp/mpa.h"
#include "wire/pcapng.h"

enum { IP_BYTES = 20, TCP_BYTES = 20, SEGMENT_MAX = 9000, INITIATOR = 0, RESPONDER = 1 };

/* One TCP connection; both directions begin at the same sequence number. */
struct connection {
	uint16_t port;
	uint32_t sequence[2]; /* by the side that sends */
	struct iwarp_framer framer[2];
};

static void put_16(uint8_t *to, unsigned v)
{
	to[0] = (uint8_t)(v >> 8);
	to[1] = (uint8_t)v;
}

static void put_32(uint8_t *to, uint32_t v)
{
	put_16(to, v >> 16);
	put_16(to + 2, v & 0xffff);
}

/* A TCP segment, whose checksums tshark does not look at. */
static void send_bytes(struct connection *c, unsigned side, const uint8_t *data, size_t bytes)
{
	static uint8_t packet[IP_BYTES + TCP_BYTES + SEGMENT_MAX];
	static uint8_t block[sizeof(packet) + PCAPNG_BLOCK_EXTRA];
	uint8_t *tcp = packet + IP_BYTES;
	size_t size = IP_BYTES + TCP_BYTES + bytes;

	memset(packet, 0, IP_BYTES + TCP_BYTES);
	packet[0] = 0x45;
	put_16(packet + 2, (unsigned)size);
	packet[8] = 64;
	packet[9] = 6;
	put_32(packet + 12, 0xc0000201 + side);
	put_32(packet + 16, 0xc0000202 - side);
	put_16(tcp, side == INITIATOR ? 40000 : c->port);
	put_16(tcp + 2, side == INITIATOR ? c->port : 40000);
	put_32(tcp + 4, c->sequence[side]);
	put_32(tcp + 8, c->sequence[!side]);
	tcp[12] = TCP_BYTES / 4 << 4;
	tcp[13] = 0x18; /* PSH, ACK */
	put_16(tcp + 14, 65535);
	memcpy(tcp + TCP_BYTES, data, bytes);
	c->sequence[side] += (uint32_t)bytes;
	fwrite(block, 1, pcapng_packet(block, sizeof(block), &(struct pcapng_packet){
		.data = packet, .captured = (uint32_t)size, .length = (uint32_t)size }),
	       stdout);
}

static void begin_file(void)
{
	uint8_t block[PCAPNG_BLOCK_EXTRA];

	fwrite(block, 1, pcapng_section(block, sizeof(block), &(struct pcapng_section){ 0 }),
	       stdout);
	fwrite(block, 1, pcapng_interface(block, sizeof(block), &(struct pcapng_interface){
		.link = PCAPNG_RAW_IP }), stdout);
}

static void send_mpa(struct connection *c, const struct iwarp_mpa *mpa)
{
	uint8_t frame[IWARP_MPA_FRAME_MAX];

	send_bytes(c, mpa->reply ? RESPONDER : INITIATOR, frame, iwarp_mpa_encode(mpa, frame));
}

/* Puts the FPDU of `s`, whose payload are letters, at `to`. */
static size_t fpdu(struct connection *c, unsigned side, const struct iwarp_segment *s,
		   uint8_t *to)
{
	static uint8_t header[IWARP_HEADERS_MAX], payload[SEGMENT_MAX];
	struct iovec pieces[] = { { header, iwarp_segment_encode(s, header) },
				  { payload, s->bytes } };

	for (size_t i = 0; i < s->bytes; i++)
		payload[i] = (uint8_t)('a' + i % 26);
	return iwarp_framer_write(&c->framer[side], pieces, 2, to);
}

static void send_segment(struct connection *c, unsigned side, struct iwarp_segment s)
{
	static uint8_t bytes[SEGMENT_MAX];

	send_bytes(c, side, bytes, fpdu(c, side, &s, bytes));
}

static void connect_both(struct connection *c, bool markers)
{
	send_mpa(c, &(struct iwarp_mpa){ .markers = markers, .crc = true, .revision = 2,
					 .enhanced = true, .peer_to_peer = true,
					 .rtr_write = true, .rtr_read = true, .ird = 16,
					 .ord = 8, .private_data = (const uint8_t *)"hello",
					 .private_bytes = 5 });
	send_mpa(c, &(struct iwarp_mpa){ .reply = true, .markers = markers, .crc = true,
					 .revision = 2, .enhanced = true, .peer_to_peer = true,
					 .rtr_write = true, .ird = 8, .ord = 16 });
	for (unsigned side = 0; side < 2; side++)
		c->framer[side] = (struct iwarp_framer){ .markers = markers, .crc = true };
}

static void each_opcode(struct connection *c)
{
	const uint32_t stag = 0x01020304;
	const uint64_t to = 0x1112131415161718;

	/* A WRITE of no bytes lets the responder begin. */
	send_segment(c, INITIATOR, (struct iwarp_segment){ .opcode = IWARP_WRITE, .last = true,
							   .stag = 1 });
	send_segment(c, INITIATOR, (struct iwarp_segment){ .opcode = IWARP_WRITE, .stag = stag,
							   .to = to, .bytes = 33 });
	send_segment(c, INITIATOR, (struct iwarp_segment){
		.opcode = IWARP_READ_REQUEST, .msn = 1,
		.read = { .sink_stag = stag, .sink_to = to, .bytes = 4096,
			  .source_stag = 0x21222324, .source_to = 0x3132333435363738 } });
	send_segment(c, RESPONDER, (struct iwarp_segment){ .opcode = IWARP_READ_RESPONSE,
							   .last = true, .stag = stag, .to = to,
							   .bytes = 8 });
	for (uint8_t opcode = IWARP_SEND; opcode <= IWARP_SEND_SE_INVALIDATE; opcode++)
		send_segment(c, INITIATOR, (struct iwarp_segment){
			.opcode = opcode, .last = opcode != IWARP_SEND, .msn = opcode,
			.mo = 100u + opcode, .invalidate_stag = 0x41424344, .bytes = 20 });
	send_segment(c, INITIATOR, (struct iwarp_segment){ .opcode = IWARP_IMMEDIATE, .msn = 8,
							   .immediate = 0x5152535455565758 });
	send_segment(c, INITIATOR, (struct iwarp_segment){ .opcode = IWARP_IMMEDIATE_SE,
							   .msn = 9 });
	for (unsigned i = 0; i < 2; i++)
		send_segment(c, INITIATOR, (struct iwarp_segment){
			.opcode = IWARP_ATOMIC_REQUEST, .msn = 2 + i,
			.atomic = { .operation = i ? IWARP_COMPARE_SWAP : IWARP_FETCH_ADD,
				    .request = 77 + i, .stag = stag, .to = to, .add_swap = 3,
				    .add_swap_mask = 4, .compare = 5, .compare_mask = 6 } });
	send_segment(c, RESPONDER, (struct iwarp_segment){ .opcode = IWARP_ATOMIC_RESPONSE,
							   .msn = 1,
							   .atomic_response = { 77, 99 } });
}

/* One for each layer, with the headers of a READ request where these belong. */
static void terminates(struct connection *c)
{
	static const enum iwarp_error errors[] = {
		IWARP_FPDU_CRC, IWARP_MPA_RTR, IWARP_DDP_BOUNDS, IWARP_DDP_TOO_LONG,
		IWARP_RDMAP_ACCESS, IWARP_RDMAP_OPCODE,
	};
	const struct iwarp_segment write = { .opcode = IWARP_WRITE, .last = true, .stag = 0x61 };
	const struct iwarp_segment read = { .opcode = IWARP_READ_REQUEST, .msn = 5,
					    .read.source_stag = 0x62 };
	uint8_t ulpdu[IWARP_HEADERS_MAX];

	for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
		struct iwarp_segment s = { .opcode = IWARP_TERMINATE, .msn = 1 };
		size_t bytes = iwarp_segment_encode(errors[i] == IWARP_DDP_BOUNDS ? &write : &read,
						    ulpdu);

		iwarp_terminate_fill(&s.terminate, errors[i], ulpdu, bytes, bytes);
		send_segment(c, RESPONDER, s);
	}
}

/* Two FPDUs in one segment, one in two. */
static void other_cuts(struct connection *c)
{
	static uint8_t bytes[2 * SEGMENT_MAX];
	struct iwarp_segment s = { .opcode = IWARP_WRITE, .stag = 0x71, .bytes = 50 };
	size_t size = fpdu(c, INITIATOR, &s, bytes);

	s.stag = 0x72;
	size += fpdu(c, INITIATOR, &s, bytes + size);
	send_bytes(c, INITIATOR, bytes, size);
	s.stag = 0x73;
	s.bytes = 1000;
	size = fpdu(c, INITIATOR, &s, bytes);
	send_bytes(c, INITIATOR, bytes, 600);
	send_bytes(c, INITIATOR, bytes + 600, size - 600);
}

/* The payload with which the next WRITE ends where a marker is due. */
static uint32_t up_to_a_marker(const struct connection *c)
{
	const struct iwarp_framer *f = &c->framer[INITIATOR];
	uint32_t bytes = 0;

	while ((f->position + iwarp_framer_bytes(f, IWARP_TAGGED_BYTES + bytes)) %
	       IWARP_MARKER_INTERVAL)
		bytes++;
	return bytes;
}

/* From short ones, so that markers fall everywhere, to some with several markers; and one that
 * begins with a marker. */
static void with_markers(struct connection *c)
{
	for (unsigned i = 0; i < 60; i++)
		send_segment(c, INITIATOR, (struct iwarp_segment){
			.opcode = IWARP_WRITE, .stag = 0x1000 + i, .bytes = 20 + 37 * i });
	send_segment(c, INITIATOR, (struct iwarp_segment){
		.opcode = IWARP_WRITE, .stag = 0x1100, .bytes = up_to_a_marker(c) });
	send_segment(c, INITIATOR, (struct iwarp_segment){ .opcode = IWARP_WRITE,
							   .stag = 0x1101, .bytes = 9 });
	send_segment(c, RESPONDER, (struct iwarp_segment){ .opcode = IWARP_READ_RESPONSE,
							   .stag = 0x2000, .bytes = 1300 });
}

int main(void)
{
	struct connection plain = { .port = 5001, .sequence = { 1000, 2000 } };
	struct connection marked = { .port = 5002, .sequence = { 1000, 2000 } };

	begin_file();
	connect_both(&plain, false);
	each_opcode(&plain);
	terminates(&plain);
	other_cuts(&plain);
	connect_both(&marked, true);
	with_markers(&marked);
	return 0;
}
