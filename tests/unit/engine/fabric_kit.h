/* SPDX-License-Identifier: BSD-2-Clause */
/* What tests of the fabric share: links, ports and tables set as a subnet manager sets them. */
#ifndef TESTS_FABRIC_KIT_H
#define TESTS_FABRIC_KIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/fabric/fabric.h"

#define EDR_BPS UINT64_C(100000000000) /* 4x: a byte takes 80 ps */
#define BYTE_PS UINT64_C(80)

#define CHECK(x) \
	do { \
		if (!(x)) { \
			printf("failed: %s:%d: %s\n", __FILE__, __LINE__, #x); \
			exit(1); \
		} \
	} while (0)

/* Small: meson has calloc() write all of its memory, so that the usual limits cost a tenth of a second. */
extern const struct fabric_limits kit_limits;

/* 4x EDR, a cable of a metre, 32 KiB of buffer for each lane. */
struct fabric_link kit_link(uint8_t lanes);
/* A host with one port, or a switch that cuts through after 100 ns; its number. */
uint32_t kit_host(struct fabric *f);
uint32_t kit_switch(struct fabric *f, uint8_t ports);
/* Joins two ports, which become active. */
void kit_join(struct fabric *f, uint32_t a, uint8_t port_a, uint32_t b, uint8_t port_b,
	      const struct fabric_link *link);
void kit_state(struct fabric *f, uint32_t node, uint8_t port, enum fabric_port_state state);
void kit_route(struct fabric *f, uint32_t node, uint16_t lid, uint8_t port);
/* All service levels of a node go to the lane of the same number. */
void kit_lanes(struct fabric *f, uint32_t node, uint8_t ports, uint8_t lanes);
/* A packet of a host or a switch with a BTH; the result of fabric_send(), which must take it. */
struct fabric_packet *kit_packet(struct fabric *f, uint16_t dlid, uint8_t sl, uint32_t bytes);
void kit_send(struct fabric *f, uint32_t node, uint16_t dlid, uint8_t sl, uint32_t bytes);

#endif
