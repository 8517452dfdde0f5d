/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices and contexts: opening, device and port attributes, and the two sysfs
 * helpers. The list of devices is in list.c, GIDs and P_Keys are in gid.c.
 */
#include <infiniband/verbs.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/hca.h"
#include "util/cancel.h"
#include "verbs/abi.h"
#include "verbs/note.h"
#include "verbs/system.h"

/* A macro in verbs.h of this name calls the extended table first. */
#undef ibv_query_port

/* Not in the installed headers, but exported: librdmacm uses them. */
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size);

EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device ? device->name : verbs_null(-EINVAL);
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	if (verbs_device_foreign(device))
		return VERBS_SYSTEM(ibv_get_device_guid)(device);
	if (!device || !hca_owns_device(device)) {
		errno = EINVAL;
		return 0;
	}
	return hca_device_guid(device);
}

EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	if (verbs_device_foreign(device))
		return VERBS_SYSTEM(ibv_get_device_index) ?
			       VERBS_SYSTEM(ibv_get_device_index)(device) :
			       verbs_minus1(-EOPNOTSUPP);
	if (!device || !hca_owns_device(device))
		return verbs_minus1(-EINVAL);
	return hca_device_index(device);
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	CANCEL_OFF;
	struct ibv_context *context;
	int ret;

	if (verbs_device_foreign(device)) {
		context = VERBS_SYSTEM(ibv_open_device)(device);
		if (context)
			verbs_note(VERBS_OPENED);
		return context;
	}
	if (!device || !hca_owns_device(device))
		return verbs_null(-EINVAL);
	ret = hca_context_open(device, &context);
	if (ret)
		return verbs_null(ret);
	verbs_note(VERBS_OPENED);
	return context;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	VERBS_FORWARD(context, verbs_minus1, ibv_close_device, context);
	return verbs_minus1(context ? hca_context_close(context) : -EINVAL);
}

/* A descriptor that soft0 did not make is passed to the system's library. */
EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *context;
	int ret;

	if (!hca_owns_cmd_fd(cmd_fd) && verbs_system_open() &&
	    VERBS_SYSTEM(ibv_import_device))
		return VERBS_SYSTEM(ibv_import_device)(cmd_fd);
	ret = hca_context_import(cmd_fd, &context);
	return ret ? verbs_null(ret) : context;
}

EXPORT int ibv_query_device(struct ibv_context *context,
			    struct ibv_device_attr *attr)
{
	VERBS_FORWARD(context, verbs_errno, ibv_query_device, context, attr);
	if (!context || !attr)
		return verbs_errno(-EINVAL);
	return verbs_errno(hca_device_query(context, attr));
}

/*
 * Called only by programs whose verbs.h is older than the extended query_port; their
 * structure ends before port_cap_flags2.
 */
EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
			  struct _compat_ibv_port_attr *port_attr)
{
	VERBS_FORWARD(context, verbs_errno, ibv_query_port, context, port_num,
		      port_attr);

	const size_t size = offsetof(struct ibv_port_attr, port_cap_flags2);

	if (!context || !port_attr)
		return verbs_errno(-EINVAL);
	return verbs_errno(hca_port_query(
		context, port_num, (struct ibv_port_attr *)port_attr, size));
}

static pthread_once_t sysfs_once = PTHREAD_ONCE_INIT;
static char sysfs_path[IBV_SYSFS_PATH_MAX] = "/sys";

static void verbs_sysfs_find(void)
{
	const char *env = secure_getenv("SYSFS_PATH");
	size_t len = env ? strlen(env) : 0;

	while (len > 0 && env[len - 1] == '/')
		len--;
	if (len == 0 || len >= sizeof(sysfs_path))
		return;
	memcpy(sysfs_path, env, len);
	sysfs_path[len] = '\0';
}

EXPORT const char *ibv_get_sysfs_path(void)
{
	pthread_once(&sysfs_once, verbs_sysfs_find);
	return sysfs_path;
}

/* The length without the line's end, and a terminated text in `buf`; or -1. */
EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			       size_t size)
{
	CANCEL_OFF;
	char path[PATH_MAX];
	ssize_t len;
	int fd;

	if (!dir || !file || !buf || size == 0)
		return verbs_minus1(-EINVAL);
	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >=
	    (int)sizeof(path))
		return verbs_minus1(-ENAMETOOLONG);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	len = read(fd, buf, size - 1 > INT_MAX ? INT_MAX : size - 1);
	if (len < 0) {
		len = errno;
		close(fd);
		return verbs_minus1((int)-len);
	}
	close(fd);
	if (len > 0 && buf[len - 1] == '\n')
		len--;
	buf[len] = '\0';
	return (int)len;
}
