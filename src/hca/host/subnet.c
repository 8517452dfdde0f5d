/* SPDX-License-Identifier: BSD-2-Clause */
/* The port in a simulated InfiniBand subnet; see subnet.h. */
#include "hca/host/subnet.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "hca/host/settings.h"
#include "util/container_of.h"

static struct {
	pthread_mutex_t lock; /* a leaf; of the next two */
	struct plug_welcome host;
	struct plug_port port;
	/* Copies that packets need. */
	_Atomic uint16_t pkeys[PLUG_PKEYS];
	_Atomic uint16_t lid;
	_Atomic uint8_t lmc;
	/* hca_subnet_learn() */
	pthread_once_t once;
	int learnt;
} subnet = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

bool hca_subnet_on(void)
{
	return hca_settings.fabric[0];
}

uint64_t hca_subnet_place(void)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *c = hca_settings.fabric; *c; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	return hash;
}

static void learn(void)
{
	struct plug_welcome welcome;
	struct plug_place place;
	struct plug_port port;
	int fd, ret = plug_place(&place);

	subnet.learnt = ret < 0 ? ret : -ENODEV;
	if (ret != 1)
		return;
	fd = plug_connect(&place, PLUG_VERBS, &welcome, &port);
	subnet.learnt = MIN(fd, 0);
	if (fd < 0)
		return;
	close(fd);
	hca_subnet_set_host(&welcome);
	hca_subnet_set_port(&port);
}

int hca_subnet_learn(void)
{
	pthread_once(&subnet.once, learn);
	return subnet.learnt;
}

void hca_subnet_set_host(const struct plug_welcome *welcome)
{
	pthread_mutex_lock(&subnet.lock);
	subnet.host = *welcome;
	pthread_mutex_unlock(&subnet.lock);
}

void hca_subnet_set_port(const struct plug_port *port)
{
	pthread_mutex_lock(&subnet.lock);
	subnet.port = *port;
	subnet.port.pkey_count = MIN(port->pkey_count, PLUG_PKEYS);
	subnet.port.guid_count = MIN(port->guid_count, PLUG_GUIDS);
	for (unsigned i = 0; i < PLUG_PKEYS; i++)
		atomic_store_explicit(&subnet.pkeys[i],
				      i < subnet.port.pkey_count ? port->pkeys[i] : 0,
				      memory_order_relaxed);
	atomic_store_explicit(&subnet.lid, port->lid, memory_order_relaxed);
	atomic_store_explicit(&subnet.lmc, port->lmc & 7, memory_order_relaxed);
	pthread_mutex_unlock(&subnet.lock);
}

void hca_subnet_host(struct plug_welcome *welcome)
{
	pthread_mutex_lock(&subnet.lock);
	*welcome = subnet.host;
	pthread_mutex_unlock(&subnet.lock);
}

void hca_subnet_port(struct plug_port *port)
{
	pthread_mutex_lock(&subnet.lock);
	*port = subnet.port;
	pthread_mutex_unlock(&subnet.lock);
}

uint16_t hca_subnet_pkey(unsigned index)
{
	return index < PLUG_PKEYS ?
		       atomic_load_explicit(&subnet.pkeys[index], memory_order_relaxed) : 0;
}

uint16_t hca_subnet_lid(void)
{
	return atomic_load_explicit(&subnet.lid, memory_order_relaxed);
}

unsigned hca_subnet_lmc(void)
{
	return atomic_load_explicit(&subnet.lmc, memory_order_relaxed);
}

bool hca_subnet_is_own_lid(uint16_t lid)
{
	const uint16_t own = hca_subnet_lid();

	return own && lid >> hca_subnet_lmc() == own >> hca_subnet_lmc();
}

int hca_subnet_check_address(const struct ibv_ah_attr *to)
{
	const bool group = to->dlid >= HCA_LID_GROUPS;

	if (!to->dlid || to->dlid == HCA_LID_PERMISSIVE ||
	    to->src_path_bits >= 1u << hca_subnet_lmc())
		return -EINVAL;
	/* The receivers know a group by the MGID of its GRH. */
	if (group != (to->is_global && to->grh.dgid.raw[0] == 0xff))
		return -EINVAL;
	return 0;
}

void hca_subnet_forked(void)
{
	pthread_mutex_init(&subnet.lock, NULL);
}
