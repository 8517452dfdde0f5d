/* SPDX-License-Identifier: BSD-2-Clause */
/* The asking side of fail.h and faults.h; the processes are found as inspect.c finds them. */
#define LOG_ROOM "hca"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
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

/* The socket of a process, or a negative errno; -ESRCH: it has none. */
static int process_connect(uint32_t pid, struct ucred *cred)
{
	struct inspect_name *names;
	size_t count;
	int found = -ESRCH;
	int ret = inspect_names_read(&names, &count);

	if (ret)
		return ret;
	for (size_t i = 0; i < count && found == -ESRCH; i++) {
		int fd = hca_block_call(names[i].block);

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

/* `answer` begins with a struct hca_inspect_message. */
static int answer_await(int fd, const struct ucred *cred, void *answer, size_t bytes)
{
	const struct hca_inspect_message *head = answer;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, ANSWER_LIMIT_MS) != 1)
		return -ETIMEDOUT;
	n = recv(fd, answer, bytes, MSG_DONTWAIT);
	if (n == (ssize_t)bytes && head->magic == HCA_INSPECT_MAGIC &&
	    head->kind == HCA_INSPECT_ANSWER)
		return head->status < 0 ? head->status : 0;
	/* The process may close the connection of another user without answering. */
	return geteuid() != 0 && cred->uid != geteuid() ? -EPERM :
							  -EPROTONOSUPPORT;
}

/* Sends the message, of `bytes`; the answer takes its place. */
static int ask(uint32_t pid, void *message, size_t bytes, size_t answer_bytes)
{
	struct ucred cred;
	int fd = process_connect(pid, &cred), ret;

	if (fd < 0)
		return fd;
	/* Ignores that the process has closed the connection already: receiving the answer then
	 * finds the reason. */
	if (send(fd, message, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EPIPE &&
	    errno != ECONNRESET)
		ret = -errno;
	else
		ret = answer_await(fd, &cred, message, answer_bytes);
	close(fd);
	return ret;
}

int hca_fail_ask(uint32_t pid, const char *device)
{
	struct hca_inspect_message msg = {
		.magic = HCA_INSPECT_MAGIC,
		.version = HCA_INSPECT_VERSION,
		.kind = HCA_INSPECT_FAIL,
	};
	int ret = device_number(device, &msg.device);

	return ret ? ret : ask(pid, &msg, sizeof(msg), sizeof(msg));
}

/* For a terminal: one process may have written it for another user's eyes. */
static void printable(char *to, size_t size, const char *from, size_t from_size, bool lines)
{
	size_t n = 0;

	for (; n + 1 < size && n < from_size && from[n]; n++)
		to[n] = (from[n] >= ' ' && from[n] < 0x7f) || (lines && from[n] == '\n') ?
				from[n] : '?';
	to[n] = 0;
}

int hca_faults_ask(uint32_t pid, const char *text, struct hca_faults_view *out)
{
	struct hca_inspect_faults msg = {
		.head = {
			.magic = HCA_INSPECT_MAGIC,
			.version = HCA_INSPECT_VERSION,
			.kind = text ? HCA_INSPECT_FAULTS_SET : HCA_INSPECT_FAULTS_SHOW,
		},
	};
	int ret;

	memset(out, 0, sizeof(*out));
	if (text && strlen(text) >= sizeof(msg.set)) {
		snprintf(out->notes, sizeof(out->notes), "longer than %zu characters",
			 sizeof(msg.set) - 1);
		return -EINVAL;
	}
	if (text)
		snprintf(msg.set, sizeof(msg.set), "%s", text);
	ret = ask(pid, &msg, sizeof(msg), sizeof(msg));
	if (ret && ret != -EINVAL && ret != -EOPNOTSUPP)
		return ret;
	printable(out->set, sizeof(out->set), msg.set, sizeof(msg.set), false);
	printable(out->notes, sizeof(out->notes), msg.notes, sizeof(msg.notes), true);
	return ret;
}

int hca_fault_event_ask(uint32_t pid, uint32_t index, char *line, size_t line_bytes)
{
	struct hca_inspect_faults msg = {
		.head = {
			.magic = HCA_INSPECT_MAGIC,
			.version = HCA_INSPECT_VERSION,
			.kind = HCA_INSPECT_FAULTS_EVENT,
			.device = index,
		},
	};
	int ret = ask(pid, &msg, sizeof(msg.head), sizeof(msg));

	if (!ret)
		printable(line, line_bytes, msg.set, sizeof(msg.set), false);
	return ret;
}
