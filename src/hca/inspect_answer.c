/* SPDX-License-Identifier: BSD-2-Clause */
/* The asked side of an inspection; see inspect_message.h. */
#define LOG_ROOM "hca"
#include "hca/inspect_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/process.h"
#include "util/log.h"

static void answer_send(int fd, int segment_fd)
{
	struct hca_inspect_message msg = {
		.magic = HCA_INSPECT_MAGIC,
		.version = HCA_INSPECT_VERSION,
		.kind = HCA_INSPECT_ANSWER,
		.status = segment_fd < 0 ? -EPERM : 0,
		.segment_version = HCA_SEGMENT_VERSION,
		.segment_bytes = sizeof(struct hca_segment),
	};
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} space = { 0 };
	struct iovec iov = { &msg, sizeof(msg) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (segment_fd >= 0) {
		struct cmsghdr *c = &space.align;

		h.msg_control = space.buf;
		h.msg_controllen = sizeof(space.buf);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &segment_fd, sizeof(segment_fd));
	}
	if (sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("inspection not answered: %m");
}

bool hca_inspect_answer(int fd)
{
	struct hca_inspect_message msg;
	struct ucred cred;
	ssize_t n = recv(fd, &msg, sizeof(msg),
			 MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);

	if (n != sizeof(msg) || msg.magic != HCA_INSPECT_MAGIC ||
	    msg.kind != HCA_INSPECT_QUESTION)
		return false;
	/* Unread, it would make the asker's receive fail. */
	n = recv(fd, &msg, sizeof(msg), MSG_DONTWAIT);
	/* Quiet when not: to look at what others do is no fault to report here. */
	answer_send(fd, hca_peer_cred(fd, &cred) && hca_peer_allowed(&cred) ?
				hca_process.segment_fd : -1);
	return true;
}
