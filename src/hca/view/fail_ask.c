/* SPDX-License-Identifier: BSD-2-Clause */
/* The asking side of fail.h; the processes are found as inspect.c finds them. */
#define LOG_ROOM "hca"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/device/device.h"
#include "hca/host/names.h"
#include "hca/object/context.h"
#include "hca/share/inspect_message.h"
#include "hca/share/process.h"
#include "hca/view/inspect.h"
#include "hca/view/inspect_read.h"

/* Time for all its queue pairs to be flushed. */
#define ANSWER_LIMIT_MS 5000

static int device_number(const char *name, uint32_t *device)
{
	const char *known;

	*device = HCA_INSPECT_DEVICES;
	if (!name)
		return 0;
	for (uint32_t i = 0; (known = hca_device_name(i)); i++)
		if (!strcmp(known, name)) {
			*device = i;
			return 0;
		}
	return -ENODEV;
}

/* The socket of a process, or -ESRCH. */
static int process_connect(uint32_t pid, struct ucred *cred)
{
	struct inspect_name *names;
	size_t count;
	int found = -ESRCH;
	int ret = inspect_names_read(&names, &count);

	if (ret)
		return ret;
	for (size_t i = 0; i < count && found == -ESRCH; i++) {
		int fd = hca_block_connect(names[i].block);

		if (fd < 0)
			continue; /* ended meanwhile */
		if (hca_peer_cred(fd, cred) && cred->pid == (pid_t)pid)
			found = fd;
		else
			close(fd);
	}
	free(names);
	return found;
}

static int answer_await(int fd, const struct ucred *cred)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct hca_inspect_message msg = { 0 };
	ssize_t n;

	if (poll(&p, 1, ANSWER_LIMIT_MS) != 1)
		return -ETIMEDOUT;
	n = recv(fd, &msg, sizeof(msg), MSG_DONTWAIT);
	if (n == sizeof(msg) && msg.magic == HCA_INSPECT_MAGIC &&
	    msg.kind == HCA_INSPECT_ANSWER)
		return msg.status < 0 ? msg.status : 0;
	/* The process may close the connection of another user without answering. */
	return geteuid() != 0 && cred->uid != geteuid() ? -EPERM :
							  -EPROTONOSUPPORT;
}

int hca_fail_ask(uint32_t pid, const char *device)
{
	struct hca_inspect_message msg = {
		.magic = HCA_INSPECT_MAGIC,
		.version = HCA_INSPECT_VERSION,
		.kind = HCA_INSPECT_FAIL,
	};
	struct ucred cred;
	int ret = device_number(device, &msg.device);
	int fd;

	if (ret)
		return ret;
	fd = process_connect(pid, &cred);
	if (fd < 0)
		return fd;
	/* Ignores that the process has closed the connection already: receiving the answer then
	 * finds the reason. */
	if (send(fd, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
	    errno != EPIPE && errno != ECONNRESET)
		ret = -errno;
	else
		ret = answer_await(fd, &cred);
	close(fd);
	return ret;
}
