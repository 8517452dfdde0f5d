/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Importing (ibv_import_device(3), ibv_import_mr(3)): further handles of a context and of
 * a region of this process. Protection domains are imported in pd.c, device memory in dm.c.
 *
 * With kernel drivers the descriptor of a context gives any process access to its objects.
 * Objects of this adapter belong to a process. A context has a descriptor (cmd_fd) for
 * programs that pass it on, and ibv_import_device() recognizes the context by the inode. In
 * another process importing fails, because the objects do not exist there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hca/device/context.h"
#include "hca/device/live.h"
#include "hca/hca.h"
#include "hca/host/memory_file.h"
#include "hca/memory/import.h"
#include "hca/memory/key.h"
#include "hca/memory/mr.h"
#include "hca/memory/pd.h"
#include "hca/share/process.h"
#include "util/list.h"
#include "util/spin.h"

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

int hca_mr_import(struct ibv_pd *pd, uint32_t handle, struct ibv_mr **out)
{
	struct hca_mr *mr, *from = NULL;

	if (!hca_live(pd, HCA_PD))
		return -EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	spin_lock(&hca_key_lock);
	if (handle < HCA_KEYS)
		from = hca_key_mr(handle);
	if (from && hca_pd(from->ibv.pd)->id == hca_pd(pd)->id &&
	    !hca_context_inherited(from->ibv.context)) {
		*mr = (struct hca_mr){
			.ibv = { .length = from->ibv.length,
				 .handle = handle,
				 .lkey = from->ibv.lkey,
				 .rkey = from->ibv.rkey },
			.index = from->index,
			.access = from->access,
			.null = from->null,
			.imported = true,
		};
	}
	spin_unlock(&hca_key_lock);
	if (!mr->imported) {
		free(mr);
		return -EINVAL;
	}
	/* `addr` remains NULL: the address is of the registering process, ibv_import_mr(3). */
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	hca_pd_get(hca_pd(pd));
	hca_live_begin(&mr->ibv, HCA_MR);
	*out = &mr->ibv;
	return 0;
}

void hca_mr_end_import(struct hca_mr *mr)
{
	hca_live_end(&mr->ibv, HCA_MR);
	hca_pd_put(hca_pd(mr->ibv.pd));
	free(mr);
}

void hca_mr_unimport(struct ibv_mr *mr)
{
	if (hca_live(mr, HCA_MR) && hca_mr(mr)->imported)
		hca_mr_end_import(hca_mr(mr));
}
