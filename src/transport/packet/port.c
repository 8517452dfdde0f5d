/* SPDX-License-Identifier: BSD-2-Clause */
/* A port opens, closes, ends with the process, and is given up in a forked child; see packet.h. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "transport/packet/packet.h"

#define TRIES_AT_END 64u

int packet_port_open(struct packet_port *port, struct carrier *carrier)
{
	const struct carrier_upper upper = { .deliver = packet_deliver, .arg = port };
	uint8_t *packet = malloc(PACKET_HEADER_BYTES + PACKET_MTU);
	uint8_t *answers = malloc(PACKET_TRAIN_BYTES);
	struct hca_demand *demand = NULL;
	int ret = -ENOMEM;

	if (!packet || !answers)
		goto err;
	ret = hca_demand_open(packet_on_demand, port, &demand);
	if (ret)
		goto err;
	carrier_set_upper(carrier, &upper);
	/* The progress thread may poll before the port opens and after it has closed. */
	hca_lock(&port->receive_lock);
	atomic_store(&port->carrier, carrier);
	ret = packet_faults_apply(port);
	if (ret) {
		atomic_store(&port->carrier, NULL);
		hca_unlock(&port->receive_lock);
		goto err;
	}
	port->packet = packet;
	port->answers = answers;
	port->demand = demand;
	port->generation++;
	packet_presence_open(port, packet_on_work);
	list_init(&port->answering);
	list_init(&port->targets);
	list_init(&port->waiting);
	hca_unlock(&port->receive_lock);
	return 0;

err:
	hca_demand_close(demand);
	free(packet);
	free(answers);
	return ret;
}

static void release(struct packet_port *port)
{
	carrier_close(port->carrier);
	free(port->packet);
	free(port->answers);
	atomic_store(&port->carrier, NULL);
	port->fault = NULL;
	atomic_store(&port->holds_back, false);
	port->packet = port->answers = NULL;
}

void packet_port_close(struct packet_port *port)
{
	struct hca_demand *demand = port->demand;

	packet_presence_close(port);
	packet_faults_end(port);
	hca_lock(&port->receive_lock);
	port->demand = NULL;
	release(port);
	hca_unlock(&port->receive_lock);
	hca_demand_close(demand);
}

void packet_port_end(struct packet_port *port)
{
	unsigned tries = 0;
	bool mine = false;

	/* A signal handler that has interrupted a call of the adapter calls exit(). */
	if (hca_self.depth || hca_self.auto_held)
		return;
	/* Or it keeps another thread inside of such a call. */
	while (hca_owner_inside())
		if (++tries > TRIES_AT_END)
			return;
		else
			sched_yield();
	hca_enter();
	while (!(mine = hca_trylock(&port->receive_lock)) && ++tries <= TRIES_AT_END)
		sched_yield();
	if (mine) {
		port->no_waiting = true;
		if (port->carrier)
			packet_run_answers(port);
		hca_unlock(&port->receive_lock);
	}
	if (mine)
		packet_faults_tell(port);
	hca_leave();
}

void packet_port_forked(struct packet_port *port)
{
	release(port);
	port->demand = NULL;
	hca_demand_forked();
	port->generation++;
	port->receive_lock = port->wait_lock = (struct spin){ 0 };
	packet_faults_forked(port);
	packet_presence_forked(port, packet_on_work);
	atomic_store(&port->backlog, 0);
	hca_copies_forked(&port->copies);
}
