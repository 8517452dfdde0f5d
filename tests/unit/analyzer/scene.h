/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of RDMA connections with their times, and capture files of them: in both formats
 * and byte orders and with every link type that is read.
 */
#ifndef TESTS_ANALYZER_SCENE_H
#define TESTS_ANALYZER_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ib/header.h"

#define SCENE_US INT64_C(1000)
#define SCENE_MS INT64_C(1000000)

struct scene_packet {
	int64_t ns;
	uint16_t from, to;   /* hosts */
	uint32_t qpn, psn;
	uint8_t opcode, syndrome;
	bool marked;
	uint64_t va;
	uint32_t length;     /* of a READ or WRITE */
	uint32_t payload;
	const struct ib_packet *headers; /* instead of those of the above; NULL: none */
};

struct scene {
	struct scene_packet *packet;
	size_t count, room;
};

struct scene_file {
	bool ng, big, ns;    /* pcapng; byte order; classic pcap with nanoseconds */
	uint16_t link;
	bool tagged;         /* Ethernet with a VLAN tag; ERF with an extension header */
	bool ip6;
	bool twice;          /* pcapng: each packet sent and received, 2 us later */
	uint32_t snap;       /* 0: whole packets */
	uint64_t dropped;    /* pcapng: in a statistics block at the end */
};

/* A connection between a requester and a responder. */
struct scene_connection {
	uint16_t client, server;
	uint32_t client_qpn, server_qpn;
	uint32_t psn;        /* the next */
};

enum scene_syndrome {
	SCENE_ACK = 0x1f,
	SCENE_RNR = 0x20,    /* and the code */
	SCENE_NAK_SEQUENCE = 0x60,
};

void scene_free(struct scene *s);
void scene_add(struct scene *s, const struct scene_packet *p);
void scene_request(struct scene *s, const struct scene_connection *c, int64_t ns, uint8_t opcode,
		   uint32_t psn, uint32_t length);
/* As a request, with an address. */
void scene_request_at(struct scene *s, const struct scene_connection *c, int64_t ns, uint8_t opcode,
		      uint32_t psn, uint32_t length, uint64_t va);
void scene_response(struct scene *s, const struct scene_connection *c, int64_t ns, uint32_t psn,
		    uint32_t length);
void scene_acknowledge(struct scene *s, const struct scene_connection *c, int64_t ns, uint32_t psn,
		       uint8_t syndrome);
/* Packets in the order of their times. */
void scene_sort(struct scene *s);
/* The bytes of a capture file, to be freed. */
uint8_t *scene_write(const struct scene *s, const struct scene_file *f, size_t *bytes);

/* Scenes of the literature, and others; see scenes.c. False: there is no such name. */
bool scene_named(const char *name, struct scene *s);
extern const char *const scene_names[];

#endif
