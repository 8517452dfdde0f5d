/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of devices: soft0 and the system's devices in one array.
 *
 * Many programs take the first device. It must work, and a real one is preferred: so
 * the system's devices come first if one of them has an active port, else soft0. The
 * system's devices keep their order.
 */
#define LOG_ROOM "verbs"
#include <infiniband/verbs.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hca/hca.h"
#include "hca/host/settings.h"
#include "util/cancel.h"
#include "util/log.h"
#include "verbs/abi.h"
#include "verbs/note.h"
#include "verbs/system.h"

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size);

struct part {
	struct ibv_device **list;
	int count;
};

/* Has the device an active port? By sysfs: opening a device can take a second. */
static bool device_active(const struct ibv_device *device)
{
	char file[32], state[32];

	for (int port = 1; port < 256; port++) {
		snprintf(file, sizeof(file), "ports/%d/state", port);
		if (ibv_read_sysfs_file(device->ibdev_path, file, state,
					sizeof(state)) < 0)
			return false;
		if (atoi(state) == IBV_PORT_ACTIVE)
			return true;
	}
	return false;
}

static bool part_active(const struct part *p)
{
	for (int i = 0; i < p->count; i++)
		if (device_active(p->list[i]))
			return true;
	return false;
}

static int part_system(struct part *p)
{
	if (!verbs_system_open())
		return -ENOSYS;
	p->list = VERBS_SYSTEM(ibv_get_device_list)(&p->count);
	/* libibverbs reads its environment when it first lists devices. */
	verbs_system_sync_data();
	if (p->list)
		return 0;
	p->count = 0;
	return errno ? -errno : -ENOSYS;
}

/*
 * The system's list is stored behind the terminating NULL of ours, for
 * ibv_free_device_list(). Not in front of it: some programs (qperf) pass the list to
 * free().
 */
static int list_make(const struct part *first, const struct part *second,
		     struct ibv_device **system, struct ibv_device ***out)
{
	size_t count = (size_t)first->count + (size_t)second->count;
	struct ibv_device **l = calloc(count + 2, sizeof(l[0]));

	if (!l)
		return -ENOMEM;
	for (int i = 0; i < first->count; i++)
		l[i] = first->list[i];
	for (int i = 0; i < second->count; i++)
		l[first->count + i] = second->list[i];
	memcpy(&l[count + 1], &system, sizeof(system));
	*out = l;
	return (int)count;
}

static int list_get(struct ibv_device ***out)
{
	struct part ours = { 0 }, theirs = { 0 };
	int ret = 0;

	hca_settings_init();
	if (hca_settings.devices & HCA_DEVICES_SYSTEM) {
		ret = part_system(&theirs);
		if (ret && hca_settings.devices == HCA_DEVICES_SYSTEM)
			return ret;
	}
	if (hca_settings.devices != HCA_DEVICES_SYSTEM) {
		ret = hca_devices(&ours.list, &ours.count);
		if (ret)
			goto err_system;
	}
	ret = part_active(&theirs) ?
		      list_make(&theirs, &ours, theirs.list, out) :
		      list_make(&ours, &theirs, theirs.list, out);
	if (ours.list)
		hca_devices_free(ours.list);
	if (ret >= 0)
		return ret;
err_system:
	if (theirs.list)
		VERBS_SYSTEM(ibv_free_device_list)(theirs.list);
	return ret;
}

EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	CANCEL_OFF;
	struct ibv_device **list;
	int ret = list_get(&list);

	verbs_note(VERBS_LISTED);
	if (num_devices)
		*num_devices = ret < 0 ? 0 : ret;
	return ret < 0 ? verbs_null(ret) : list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	struct ibv_device **system;
	size_t count = 0;

	if (!list)
		return;
	while (list[count])
		count++;
	memcpy(&system, &list[count + 1], sizeof(system));
	if (system)
		VERBS_SYSTEM(ibv_free_device_list)(system);
	free(list);
}
