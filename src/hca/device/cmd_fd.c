/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptor of a context (cmd_fd), and importing a context by it (ibv_import_device(3)).
 *
 * With kernel drivers the descriptor of a context gives any process access to its objects.
 * Objects of this adapter belong to a process. A context has a descriptor for programs that
 * pass it on, and ibv_import_device() recognizes the context by the inode. In another process
 * importing fails, because the objects do not exist there.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hca/device/device.h"
#include "hca/hca.h"
#include "hca/host/memory_file.h"
#include "hca/object/context.h"
#include "hca/share/process.h"
#include "util/list.h"

/* Contents of the file, which distinguish it from other files. */
static const char mark[] = "busbar context";

int hca_cmd_fd_create(void)
{
	int fd = hca_memory_file(mark, sizeof(mark), 0);

	if (fd < 0)
		return fd;
	if (write(fd, mark, sizeof(mark)) != (ssize_t)sizeof(mark)) {
		close(fd);
		return -EIO;
	}
	return fd;
}

static bool is_marked(int fd)
{
	char seen[sizeof(mark)];

	return pread(fd, seen, sizeof(seen), 0) == (ssize_t)sizeof(seen) &&
	       !memcmp(seen, mark, sizeof(mark));
}

/* The device of the context of this process whose descriptor is this file, or NULL. */
static struct hca_device *device_of(const struct stat *wanted)
{
	struct hca_device *device = NULL;
	struct stat st;

	pthread_mutex_lock(&hca_process.lock);
	list_for_each(ctx, &hca_process.contexts, struct hca_context, entry) {
		if (ctx->forks == hca_process.forks &&
		    fstat(ctx->verbs.context.cmd_fd, &st) == 0 &&
		    st.st_dev == wanted->st_dev && st.st_ino == wanted->st_ino)
			device = ctx->device;
	}
	pthread_mutex_unlock(&hca_process.lock);
	return device;
}

int hca_context_import(int cmd_fd, struct ibv_context **out)
{
	struct hca_device *device;
	struct stat st;

	if (fstat(cmd_fd, &st))
		return -errno;
	device = device_of(&st);
	if (!device)
		return is_marked(cmd_fd) ? -EOPNOTSUPP : -EINVAL;
	return hca_context_make(device, cmd_fd, out);
}

bool hca_owns_cmd_fd(int cmd_fd)
{
	return is_marked(cmd_fd);
}
