/* SPDX-License-Identifier: BSD-2-Clause */
/* Error frames, by which the driver of an interface tells what happens on the bus. */
#define LOG_ROOM "gateway/can"
#include <linux/can/error.h>
#include <stdio.h>

#include "gateway/node/can/can.h"
#include "util/clock.h"
#include "util/log.h"

/* Older kernel headers do not define this flag. */
#ifndef CAN_ERR_CNT
#define CAN_ERR_CNT 0x00000200U
#endif
#ifndef CAN_ERR_CRTL_ACTIVE
#define CAN_ERR_CRTL_ACTIVE 0x40
#endif

/* Where the frame has the state of the controller, and its counters. */
#define CONTROLLER 1
#define TX_ERRORS 6
#define RX_ERRORS 7
/* A bus with a fault has thousands of error frames a second; so often is a line of them. */
#define LINE_NS NSEC_PER_SEC

static const struct error_kind {
	uint32_t class;
	uint8_t state;         /* of a controller: these bits; 0: the class is enough */
	enum can_figure figure;
	const char *text;
} kinds[] = {
	{ CAN_ERR_BUSOFF, 0, CAN_BUS_OFF, "bus-off" },
	{ CAN_ERR_RESTARTED, 0, CAN_RESTARTED, "the controller was restarted" },
	{ CAN_ERR_CRTL, CAN_ERR_CRTL_RX_PASSIVE | CAN_ERR_CRTL_TX_PASSIVE, CAN_PASSIVE,
	  "error passive" },
	{ CAN_ERR_CRTL, CAN_ERR_CRTL_RX_WARNING | CAN_ERR_CRTL_TX_WARNING, CAN_WARNING,
	  "many errors (warning level)" },
	{ CAN_ERR_CRTL, CAN_ERR_CRTL_ACTIVE, CAN_ACTIVE, "few errors again (error active)" },
	{ CAN_ERR_CRTL, CAN_ERR_CRTL_RX_OVERFLOW | CAN_ERR_CRTL_TX_OVERFLOW, CAN_OVERFLOWS,
	  "the controller had no room" },
	{ CAN_ERR_LOSTARB, 0, CAN_ARBITRATION_LOST, "arbitration lost" },
	{ CAN_ERR_TX_TIMEOUT, 0, CAN_TX_TIMEOUTS, "a frame could not be sent in time" },
	{ CAN_ERR_PROT, 0, CAN_PROTOCOL_ERRORS, "protocol error" },
	{ CAN_ERR_ACK, 0, CAN_NO_ACK, "no other device acknowledges" },
	{ CAN_ERR_BUSERROR, 0, CAN_BUS_ERRORS, "bus error" },
	{ CAN_ERR_TRX, 0, CAN_TRANSCEIVER, "the transceiver tells a fault" },
};

static uint8_t byte(const struct can_received *r, unsigned i)
{
	return i < r->len ? r->data[i] : 0;
}

static bool has(const struct can_received *r, const struct error_kind *k)
{
	return r->id & k->class && (!k->state || byte(r, CONTROLLER) & k->state);
}

void can_error_print(const struct can_received *r, char *buf, size_t size)
{
	size_t used = 0;

	*buf = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && used < size; i++)
		if (has(r, &kinds[i]))
			used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
						 kinds[i].text);
	if (!used)
		snprintf(buf, size, "class 0x%03x", r->id);
}

static void say(struct can_node *c, const struct can_received *r, bool state)
{
	uint64_t now = clock_now_ns();
	char text[400];

	if (!state && now - atomic_load(&c->said_ns) < LINE_NS)
		return;
	if (!fault_may_log(&c->faults))
		return;
	if (!state)
		atomic_store(&c->said_ns, now);
	can_error_print(r, text, sizeof(text));
	if (r->id & CAN_ERR_BUSOFF)
		log_error("%s: %s: %s: the controller takes no part in the bus until it is restarted (`ip link set %s type can restart`, or restart-ms)",
			  c->node->name, c->bus.interface, text, c->bus.interface);
	else
		log_warn("%s: %s: %s", c->node->name, c->bus.interface, text);
}

void can_take_error(struct can_node *c, const struct can_received *r)
{
	bool state = false, common = true;

	node_figure_add(c->node, CAN_ERROR_FRAMES, 1);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct error_kind *k = &kinds[i];

		if (!has(r, k))
			continue;
		node_figure_add(c->node, k->figure, 1);
		state |= k->figure >= CAN_BUS_OFF && k->figure <= CAN_ACTIVE;
		/* Lost arbitration is usual on a sound bus. */
		common &= k->class == CAN_ERR_LOSTARB;
	}
	if (r->id & CAN_ERR_CNT) {
		node_figure_set(c->node, CAN_TX_ERRORS, byte(r, TX_ERRORS));
		node_figure_set(c->node, CAN_RX_ERRORS, byte(r, RX_ERRORS));
	}
	if (r->id & CAN_ERR_BUSOFF)
		atomic_store(&c->bus_off, true);
	else if (r->id & CAN_ERR_RESTARTED || byte(r, CONTROLLER) & CAN_ERR_CRTL_ACTIVE)
		atomic_store(&c->bus_off, false);
	if (!common)
		say(c, r, state);
}
