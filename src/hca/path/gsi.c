/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pair 1 of the first transport in use that has one; see gsi.h. */
#include "hca/path/gsi.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "hca/path/path.h"

#define NUMBER_MASK ((1u << HCA_GSI_SLOT_SHIFT) - 1)

static struct {
	pthread_mutex_t lock; /* of open and close */
	const struct hca_gsi_ops *_Atomic ops; /* NULL: closed */
	hca_gsi_receive *_Atomic receive;
	_Atomic uint32_t slot;
} gsi = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const struct hca_gsi_ops *find_ops(void)
{
	for (unsigned i = 0; i < hca_transports.paths; i++)
		if (hca_transports.at[i]->gsi)
			return hca_transports.at[i]->gsi;
	return NULL;
}

bool hca_gsi_exists(void)
{
	return find_ops();
}

bool hca_local_exists(void)
{
	for (unsigned i = 0; i < hca_transports.paths; i++)
		if (hca_transports.at[i]->local)
			return true;
	return false;
}

int hca_gsi_open(hca_gsi_receive *receive)
{
	const struct hca_gsi_ops *ops = find_ops();
	int ret = 0;

	if (!ops)
		return -EHOSTUNREACH;
	pthread_mutex_lock(&gsi.lock);
	if (atomic_load(&gsi.ops)) {
		ret = -EALREADY;
		goto out;
	}
	atomic_store(&gsi.receive, receive);
	ret = ops->open();
	if (ret < 0)
		goto out;
	atomic_store(&gsi.slot, (uint32_t)ret);
	atomic_store(&gsi.ops, ops);
	ret = 0;
out:
	pthread_mutex_unlock(&gsi.lock);
	return ret;
}

void hca_gsi_close(void)
{
	const struct hca_gsi_ops *ops;

	pthread_mutex_lock(&gsi.lock);
	ops = atomic_exchange(&gsi.ops, NULL);
	if (ops)
		ops->close();
	pthread_mutex_unlock(&gsi.lock);
}

uint32_t hca_gsi_comm_id(uint32_t number)
{
	return atomic_load(&gsi.slot) << HCA_GSI_SLOT_SHIFT | (number & NUMBER_MASK);
}

void hca_gsi_deliver(const struct hca_gsi_address *from,
		     const uint8_t mad[HCA_GSI_MAD_BYTES])
{
	atomic_load(&gsi.receive)(from, mad);
}

int hca_gsi_send(const struct hca_gsi_address *to,
		 const uint8_t mad[HCA_GSI_MAD_BYTES])
{
	const struct hca_gsi_ops *ops = atomic_load(&gsi.ops);

	return ops ? ops->send(to, mad) : -ENOTCONN;
}

int hca_gsi_serve(const struct hca_gsi_service *service)
{
	const struct hca_gsi_ops *ops = atomic_load(&gsi.ops);

	return ops ? ops->serve(service) : -ENOTCONN;
}

void hca_gsi_unserve(const struct hca_gsi_service *service)
{
	const struct hca_gsi_ops *ops = atomic_load(&gsi.ops);

	if (ops)
		ops->unserve(service);
}

void hca_gsi_forked(void)
{
	const struct hca_gsi_ops *ops = atomic_load(&gsi.ops);

	pthread_mutex_init(&gsi.lock, NULL);
	atomic_store(&gsi.ops, NULL);
	if (ops)
		ops->forked();
}
