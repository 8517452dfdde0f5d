/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls that list devices: ours, and those of the system's library. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/base/base.h"
#include "rdmacm/device/device.h"
#include "rdmacm/system/system.h"
#include "verbs/private.h"

static bool ours_come_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool ours = list && list[0] && busbar_owns_device(list[0]);

	if (list)
		ibv_free_device_list(list);
	return ours;
}

/*
 * A list of the `count` contexts of `ours` and then those of the system's library that are not
 * ours; NULL: out of memory. As in src/verbs/list.c, the system's list is stored behind the
 * terminating NULL of ours, for rdma_free_devices(). soft0 is in it as well, because the system's
 * librdmacm lists the devices of our libibverbs.so.1.
 */
static struct ibv_context **list_merge(struct ibv_context **ours, unsigned count, int *total)
{
	struct ibv_context **system = NULL, **out;
	size_t n = 0, first;
	int theirs = 0;

	if (forward_ready())
		system = FORWARD_CALL(rdma_get_devices, &theirs);
	out = calloc(count + (size_t)theirs + 2, sizeof(out[0]));
	if (!out)
		goto err_system;
	first = !system || ours_come_first() ? count : 0;
	for (; n < first; n++)
		out[n] = ours[n];
	for (int i = 0; i < theirs; i++)
		if (!busbar_owns_device(system[i]->device))
			out[n++] = system[i];
	for (size_t i = first; i < count; i++)
		out[n++] = ours[i];
	memcpy(&out[n + 1], &system, sizeof(system));
	*total = (int)n;
	return out;

err_system:
	if (system)
		FORWARD_CALL_VOID(rdma_free_devices, system);
	return NULL;
}

CMA_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	FORWARD_INSIDE(rdma_get_devices, num_devices);

	struct ibv_context **ours, **out;
	int ret = cma_devices_init(), total = 0;
	unsigned count;

	if (num_devices)
		*num_devices = 0;
	if (ret) {
		errno = -ret;
		return NULL;
	}
	ours = cma_devices_contexts(&count);
	if (!ours)
		return NULL;
	out = list_merge(ours, count, &total);
	free(ours);
	if (num_devices)
		*num_devices = total;
	return out;
}

CMA_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	FORWARD_INSIDE(rdma_free_devices, list);

	struct ibv_context **system;
	size_t n = 0;

	if (!list)
		return;
	while (list[n])
		n++;
	memcpy(&system, &list[n + 1], sizeof(system));
	if (system)
		FORWARD_CALL_VOID(rdma_free_devices, system);
	free(list);
}
