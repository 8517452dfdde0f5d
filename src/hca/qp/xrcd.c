/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC domains (ibv_open_xrcd(3)). A domain is identified by an inode, for all processes that
 * open it, or it is private. So that any process of the host can find out whether the domain
 * of an inode exists, each opening holds a socket name that contains the inode,
 *
 *   \0busbar.xrcd.<device>.<inode's device>.<inode>.<user>.<group>.<n>
 *
 * An opening looks for such names and binds its own while it holds the name with "lock" in
 * place of the last three parts. Names of users that this process must not talk to (peers.h)
 * are ignored. Any process can bind any name; by that it can only pretend that a domain
 * exists.
 */
#define LOG_ROOM "hca"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hca/hca.h"
#include "hca/host/names.h"
#include "hca/host/settings.h"
#include "hca/object/context.h"
#include "hca/object/live.h"
#include "hca/object/srq.h"
#include "hca/qp/xrc.h"
#include "hca/share/peers.h"
#include "hca/share/process.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"

#define NAME_BYTES 96
#define LOCK_TRIES 2000
#define NAME_TRIES 16
#define LOCK_WAIT_NS 500000
#define OF_INODE (UINT64_C(1) << 63)
#define OF_PROCESS (UINT64_C(1) << 62)

static struct {
	pthread_mutex_t lock;
	struct list all; /* hca_xrcd.entry */
	uint64_t count;  /* of private domains opened so far */
} xrcds = { .lock = PTHREAD_MUTEX_INITIALIZER, .all = { &xrcds.all, &xrcds.all } };

static void found(const struct hca_name_seen *seen, void *arg)
{
	struct ucred cred = { .pid = 0 };
	bool *exists = arg;
	int end = 0;

	if (sscanf(seen->rest, "%u.%u.%*x%n", &cred.uid, &cred.gid, &end) == 2 &&
	    end && !seen->rest[end] && hca_peer_may_talk(&cred))
		*exists = true;
}

/* Takes the lock name, which each opening holds for a short time; the kernel releases it when the
 * process ends. The descriptor or a negative errno. -ENOLCK: a process holds it that this one
 * must not talk to, or that is not one of busbar; the domain is then opened without the lock,
 * and two processes that open it at the same time may both find that it does not exist. */
static int domain_lock(const char *prefix)
{
	const struct timespec wait = { .tv_nsec = LOCK_WAIT_NS };
	char name[NAME_BYTES + 8];
	struct ucred cred;
	int fd = -EADDRINUSE, holder = 0;

	snprintf(name, sizeof(name), "%slock", prefix);
	for (int i = 0; i < LOCK_TRIES && fd == -EADDRINUSE; i++) {
		fd = hca_name_listen(name);
		if (fd != -EADDRINUSE)
			break;
		holder = hca_name_holder(name, &cred);
		if (!holder && !hca_peer_may_talk(&cred)) {
			hca_peer_refused("holder of an XRC domain,", &cred);
			return -ENOLCK;
		}
		nanosleep(&wait, NULL);
	}
	if (fd == -EADDRINUSE && holder == -ECONNREFUSED) {
		log_warn("XRC domain %s is held by a process that is none of busbar's",
			 prefix);
		return -ENOLCK;
	}
	if (fd < 0)
		log_error("XRC domain %s not opened: %s", prefix, strerror(-fd));
	return fd;
}

/* Binds a name of this opening. The descriptor or a negative errno. */
static int domain_name(const char *prefix)
{
	int fd = -EADDRINUSE;

	for (int i = 0; i < NAME_TRIES && fd == -EADDRINUSE; i++) {
		char name[NAME_BYTES + 48];
		uint32_t n;

		if (getrandom(&n, sizeof(n), 0) != sizeof(n))
			return -errno;
		snprintf(name, sizeof(name), "%s%u.%u.%x", prefix, geteuid(),
			 getegid(), n);
		fd = hca_name_bind(name);
	}
	return fd;
}

/* Opens the domain of an inode: the descriptor of the bound name, or a negative errno. */
static int domain_enter(const char *prefix, int oflags)
{
	bool exists = false;
	int lock, fd, ret;

	lock = domain_lock(prefix);
	if (lock < 0 && lock != -ENOLCK)
		return lock;
	fd = ret = hca_names_each(prefix, found, &exists);
	if (ret)
		goto out;
	/* The errors of the kernel; ibv_open_xrcd(3) does not list any. */
	fd = -EAGAIN;
	if (!exists && !(oflags & O_CREAT))
		goto out;
	fd = -EINVAL;
	if (exists && (oflags & O_EXCL))
		goto out;
	fd = domain_name(prefix);
out:
	if (lock >= 0)
		close(lock);
	return fd;
}

static int xrcd_identify(struct hca_xrcd *x, int index, int fd, int oflags)
{
	char prefix[NAME_BYTES];
	struct stat st;

	x->name_fd = -1;
	if (fd == -1) {
		if (getrandom(&x->id.hi, sizeof(x->id.hi), 0) < 0)
			return -errno;
		x->id.hi = (x->id.hi & ~OF_INODE) | OF_PROCESS;
		x->id.lo = ++xrcds.count;
		return 0;
	}
	if (fstat(fd, &st))
		return -errno;
	x->id.hi = (uint64_t)st.st_dev | OF_INODE;
	x->id.lo = st.st_ino;
	snprintf(prefix, sizeof(prefix), "busbar.xrcd.%d.%llx.%llx.", index,
		 (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	x->name_fd = domain_enter(prefix, oflags);
	return MIN(x->name_fd, 0);
}

int hca_xrcd_open(struct ibv_context *ibctx,
		  const struct ibv_xrcd_init_attr *attr, struct ibv_xrcd **out)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct hca_context *ctx = hca_context(ibctx);
	struct hca_xrcd *x;
	int ret;

	/* Without domains there are neither XRC SRQs nor XRC targets. */
	if (ctx->device->without & HCA_WITHOUT_XRC)
		return -EOPNOTSUPP;
	if ((attr->comp_mask & needed) != needed ||
	    (attr->oflags & ~(O_CREAT | O_EXCL)))
		return -EINVAL;
	if (attr->comp_mask & ~needed)
		return -EOPNOTSUPP;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	pthread_mutex_lock(&xrcds.lock);
	ret = xrcd_identify(x, ctx->device->index, attr->fd, attr->oflags);
	if (!ret)
		list_push(&xrcds.all, &x->entry);
	pthread_mutex_unlock(&xrcds.lock);
	if (ret) {
		free(x);
		return ret;
	}
	x->ibv.context = ibctx;
	hca_context_get(ctx);
	hca_live_begin(&x->ibv, HCA_XRCD);
	*out = &x->ibv;
	return 0;
}

int hca_xrcd_close(struct ibv_xrcd *ibx)
{
	struct hca_xrcd *x = hca_xrcd(ibx);

	if (!hca_live(ibx, HCA_XRCD))
		return -EINVAL;
	if (atomic_load(&x->users) > 0)
		return -EBUSY;
	hca_live_end(ibx, HCA_XRCD);
	pthread_mutex_lock(&xrcds.lock);
	list_remove(&x->entry);
	pthread_mutex_unlock(&xrcds.lock);
	if (x->name_fd >= 0)
		close(x->name_fd);
	hca_context_put(hca_context(ibx->context));
	free(x);
	return 0;
}

void hca_xrcd_forked(void)
{
	/* The names belong to the parent and must be released when it ends. */
	list_for_each_safe(x, &xrcds.all, struct hca_xrcd, entry) {
		if (x->name_fd >= 0)
			close(x->name_fd);
		x->name_fd = -1;
		list_remove(&x->entry);
	}
	pthread_mutex_init(&xrcds.lock, NULL);
	list_init(&xrcds.all);
}
