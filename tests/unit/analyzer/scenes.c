/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenes by name. Those of figures have the packets and times of the listings in T. Fukuoka's
 * thesis on on-demand paging (University of Tokyo, 2021): 4.2 to 4.4, 5.3, 6.2. The others are
 * made after its descriptions.
 */
#include <string.h>

#include "scene.h"

#define READ IB_READ_REQUEST
#define SEND IB_SEND_ONLY
#define WRITE IB_WRITE_ONLY
#define BYTES 100
#define RNR_1_28_MS (SCENE_RNR | 14)
#define RNR_0_96_MS (SCENE_RNR | 13)

static const struct scene_connection a = { 1, 2, 0x11, 0x22, 0 }, b = { 1, 2, 0x13, 0x24, 0 };

static int64_t us(double value)
{
	return (int64_t)(value * 1000 + 0.5);
}

static void fig4_2(struct scene *s)
{
	scene_request(s, &a, 0, READ, 7, BYTES);
	scene_acknowledge(s, &a, us(141), 7, RNR_1_28_MS);
	scene_response(s, &a, us(538), 7, BYTES);
	scene_request(s, &a, us(4565), READ, 7, BYTES);
	scene_response(s, &a, us(4639), 7, BYTES);
}

static void fig4_2_client(struct scene *s)
{
	scene_request(s, &a, 0, READ, 7, BYTES);
	scene_response(s, &a, us(5), 7, BYTES);
	scene_request(s, &a, us(527), READ, 7, BYTES);
	scene_response(s, &a, us(620), 7, BYTES);
}

static void fig4_3(struct scene *s)
{
	scene_request(s, &a, 0, SEND, 7, BYTES);
	scene_acknowledge(s, &a, us(513), 7, RNR_1_28_MS);
	scene_request(s, &a, us(3905), SEND, 7, BYTES);
	scene_acknowledge(s, &a, us(3906), 7, SCENE_ACK);
}

static void fig4_3_client(struct scene *s)
{
	scene_request(s, &a, 0, SEND, 7, BYTES);
	scene_acknowledge(s, &a, us(3), 7, SCENE_ACK);
}

static void fig4_4(struct scene *s)
{
	scene_request(s, &a, 0, WRITE, 7, BYTES);
	scene_acknowledge(s, &a, us(526), 7, RNR_1_28_MS);
	scene_request(s, &a, us(6035), WRITE, 7, BYTES);
	scene_acknowledge(s, &a, us(6041), 7, SCENE_ACK);
}

static void fig4_4_client(struct scene *s)
{
	scene_request(s, &a, 0, WRITE, 7, BYTES);
	scene_acknowledge(s, &a, us(3), 7, SCENE_ACK);
}

static void fig5_3_from(struct scene *s, uint32_t psn)
{
	scene_request(s, &a, 0, READ, psn, BYTES);
	scene_acknowledge(s, &a, us(140), psn, RNR_1_28_MS);
	scene_response(s, &a, us(451), psn, BYTES);
	scene_request(s, &a, us(3968), READ, psn, BYTES);
	scene_request(s, &a, us(3970), READ, psn + 1, BYTES);
	scene_response(s, &a, us(4051), psn, BYTES);
	scene_request(s, &a, us(541748), READ, psn + 1, BYTES);
	scene_response(s, &a, us(541755), psn + 1, BYTES);
}

static void fig5_3(struct scene *s)
{
	fig5_3_from(s, 1);
}

static void psn_wrap(struct scene *s)
{
	fig5_3_from(s, 0xffffff);
}

static void fig5_3_client(struct scene *s)
{
	scene_request(s, &a, 0, READ, 1, BYTES);
	scene_response(s, &a, us(5), 1, BYTES);
	scene_request(s, &a, us(778), READ, 1, BYTES);
	scene_request(s, &a, us(782), READ, 2, BYTES);
	scene_response(s, &a, us(861), 1, BYTES);
	scene_request(s, &a, us(435909), READ, 2, BYTES);
	scene_response(s, &a, us(435912), 2, BYTES);
}

static void fig6_2(struct scene *s)
{
	scene_request(s, &a, us(70816), READ, 26, BYTES);
	scene_acknowledge(s, &a, us(72510), 26, RNR_0_96_MS);
	scene_request(s, &a, us(77290), READ, 26, BYTES);
	scene_response(s, &a, us(77993), 26, BYTES);
	scene_request(s, &a, us(78019), SEND, 27, BYTES);
	scene_response(s, &a, us(78845), 26, BYTES);
	scene_request(s, &a, us(1739339), SEND, 27, BYTES);
	scene_acknowledge(s, &a, us(1739344), 27, SCENE_ACK);
}

/* Damming on one connection while another one between the same hosts works on. */
static void interleaved(struct scene *s)
{
	fig5_3_from(s, 1);
	for (uint32_t i = 0; i < 2000; i++) {
		scene_request(s, &b, us(300 * i + 1), READ, 1 + i, BYTES);
		scene_response(s, &b, us(300 * i + 6), 1 + i, BYTES);
	}
}

/* A third READ behind the resend makes the responder ask for the second one. */
static void self_heal(struct scene *s)
{
	scene_request(s, &a, 0, READ, 1, BYTES);
	scene_acknowledge(s, &a, us(140), 1, RNR_1_28_MS);
	scene_response(s, &a, us(451), 1, BYTES);
	scene_request(s, &a, us(3968), READ, 1, BYTES);
	scene_request(s, &a, us(3970), READ, 2, BYTES);
	scene_response(s, &a, us(4051), 1, BYTES);
	scene_request(s, &a, us(5000), READ, 3, BYTES);
	scene_acknowledge(s, &a, us(5004), 2, SCENE_NAK_SEQUENCE);
	scene_request(s, &a, us(5006), READ, 2, BYTES);
	scene_request(s, &a, us(5007), READ, 3, BYTES);
	scene_response(s, &a, us(5011), 2, BYTES);
	scene_response(s, &a, us(5012), 3, BYTES);
}

/* 128 queue pairs read 32 bytes each of one page; the first 30 go on for 6 ms. */
static void read_flood(struct scene *s)
{
	for (uint32_t i = 0; i < 128; i++) {
		struct scene_connection c = { 1, 2, 0x100 + i, 0x200 + i, 0 };
		unsigned sends = i < 30 ? 10 : i < 60 ? 2 : 1;

		for (unsigned k = 0; k < sends; k++) {
			scene_request_at(s, &c, us(33.0 * i + 550.0 * k), READ, 0, 32, 0x40000 + 32 * i);
			scene_response(s, &c, us(33.0 * i + 550.0 * k + 5), 0, 32);
		}
	}
}

/* 96 WRITEs to 24 pages of the responder, 4 to a page: each missing page sends all again that
 * are open. */
static void write_amplification(struct scene *s)
{
	double t = 0;

	for (uint32_t page = 0; page <= 24; page++) {
		for (uint32_t i = page ? (page - 1) * 4 : 0; i < 96; i++)
			scene_request(s, &a, us(t++), WRITE, i, 32);
		if (page > 1)
			scene_acknowledge(s, &a, us(t + 3), page * 4 - 5, SCENE_ACK);
		if (page < 24)
			scene_acknowledge(s, &a, us(t + 520), page * 4, RNR_1_28_MS);
		t += 520 + 4400;
	}
	scene_acknowledge(s, &a, us(t), 95, SCENE_ACK);
}

static void wrong_lid(struct scene *s)
{
	for (int i = 0; i < 8; i++)
		scene_request(s, &a, us(537800.0 * i), SEND, 5, BYTES);
}

static void loss(struct scene *s)
{
	for (uint32_t i = 0; i < 10; i++)
		scene_request(s, &a, us(i), SEND, 5 + i, 1024);
	scene_acknowledge(s, &a, us(8), 8, SCENE_NAK_SEQUENCE);
	for (uint32_t i = 3; i < 10; i++)
		scene_request(s, &a, us(20 + i), SEND, 5 + i, 1024);
	scene_acknowledge(s, &a, us(34), 14, SCENE_ACK);
}

static void clean(struct scene *s)
{
	for (uint32_t i = 0; i < 50; i++) {
		scene_request(s, &a, us(10 * i), SEND, 5 + i, 512);
		scene_acknowledge(s, &a, us(10 * i + 4), 5 + i, SCENE_ACK);
	}
}

static void one_direction(struct scene *s)
{
	for (uint32_t i = 0; i < 50; i++)
		scene_request(s, &a, us(10 * i), SEND, 5 + i, 512);
}

static void answers_only(struct scene *s)
{
	for (uint32_t i = 0; i < 50; i++)
		scene_acknowledge(s, &a, us(10 * i + 4), 5 + i, SCENE_ACK);
}

static void congested(struct scene *s)
{
	for (uint32_t i = 0; i < 50; i++) {
		scene_request(s, &a, us(10 * i), SEND, 5 + i, 512);
		s->packet[s->count - 1].marked = i % 3 == 0;
		scene_acknowledge(s, &a, us(10 * i + 4), 5 + i, SCENE_ACK);
		if (i % 3 == 0)
			scene_add(s, &(struct scene_packet){ .ns = us(10 * i + 5), .from = 2, .to = 1,
							     .qpn = a.client_qpn, .opcode = IB_OPCODE_CNP });
	}
}

/* READs of many packets; the last one's answers are lost from the third on and asked for again. */
static void long_reads(struct scene *s)
{
	uint32_t psn = 0xfffffa;

	for (uint32_t i = 0; i < 6; i++, psn += 8) {
		double t = 50.0 * i;

		scene_request(s, &a, us(t), READ, psn, 8 * 1024);
		for (uint32_t k = 0; k < 8; k++) {
			if (i == 5 && k == 2)
				scene_request_at(s, &a, us(t + 10), READ, psn + k, 6 * 1024, 0x10000 + 2 * 1024);
			scene_response(s, &a, us(t + 4 + k + (i == 5 && k >= 2 ? 20 : 0)), psn + k, 1024);
			s->packet[s->count - 1].opcode = (uint8_t)(k == 0 ? IB_READ_RESPONSE_FIRST :
								   k == 7 ? IB_READ_RESPONSE_LAST :
									    IB_READ_RESPONSE_MIDDLE);
		}
	}
}

static void no_receive(struct scene *s)
{
	scene_request(s, &a, 0, SEND, 5, 512);
	scene_acknowledge(s, &a, us(4), 5, SCENE_RNR | 12);
	scene_request(s, &a, us(700), SEND, 5, 512);
	scene_acknowledge(s, &a, us(704), 5, SCENE_ACK);
}

static const struct {
	const char *name;
	void (*make)(struct scene *s);
} scenes[] = {
	{ "fig4.2", fig4_2 }, { "fig4.2-client", fig4_2_client }, { "fig4.3", fig4_3 },
	{ "fig4.3-client", fig4_3_client }, { "fig4.4", fig4_4 }, { "fig4.4-client", fig4_4_client },
	{ "fig5.3", fig5_3 }, { "fig5.3-client", fig5_3_client }, { "fig6.2", fig6_2 },
	{ "interleaved", interleaved }, { "self-heal", self_heal }, { "read-flood", read_flood },
	{ "write-amplification", write_amplification }, { "wrong-lid", wrong_lid }, { "loss", loss },
	{ "psn-wrap", psn_wrap }, { "clean", clean }, { "one-direction", one_direction },
	{ "answers-only", answers_only }, { "congested", congested }, { "no-receive", no_receive },
	{ "long-reads", long_reads },
};
#define SCENES (sizeof(scenes) / sizeof(scenes[0]))

const char *const scene_names[] = {
	"fig4.2", "fig4.2-client", "fig4.3", "fig4.3-client", "fig4.4", "fig4.4-client", "fig5.3",
	"fig5.3-client", "fig6.2", "interleaved", "self-heal", "read-flood", "write-amplification",
	"wrong-lid", "loss", "psn-wrap", "clean", "one-direction", "answers-only", "congested",
	"no-receive", "long-reads", NULL,
};
_Static_assert(sizeof(scene_names) / sizeof(scene_names[0]) == SCENES + 1, "one name for each scene");

bool scene_named(const char *name, struct scene *s)
{
	for (size_t i = 0; i < SCENES; i++) {
		if (strcmp(name, scenes[i].name))
			continue;
		memset(s, 0, sizeof(*s));
		scenes[i].make(s);
		scene_sort(s);
		return true;
	}
	return false;
}
