/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers inspections of this process; see inspect_answer.h. */
#define LOG_ROOM "hca"
#include "hca/view/inspect_answer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/device/fail.h"
#include "hca/host/names.h"
#include "hca/share/inspect_message.h"
#include "hca/share/peers.h"
#include "hca/share/process.h"
#include "util/log.h"

/* No setting permits this to other users, because it changes the process. */
static void fail_answer(int fd, const struct ucred *cred, uint32_t device)
{
	int ret = hca_peer_may_control(cred) ? hca_fail_request(fd, device) : -EPERM;

	if (!ret)
		return; /* answered when the device has failed */
	log_warn("process %d (user %u) asks for the device to fail: %s",
		 (int)cred->pid, (unsigned)cred->uid, strerror(-ret));
	hca_inspect_reply(fd, ret);
}

bool hca_inspect_answer(int fd)
{
	struct hca_inspect_message msg;
	struct ucred cred;
	bool known;
	ssize_t n = recv(fd, &msg, sizeof(msg),
			 MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);

	if (n != sizeof(msg) || msg.magic != HCA_INSPECT_MAGIC ||
	    (msg.kind != HCA_INSPECT_QUESTION && msg.kind != HCA_INSPECT_FAIL))
		return false;
	/* If it stayed unread, the peer's recv() would fail after close(). */
	n = recv(fd, &msg, sizeof(msg), MSG_DONTWAIT);
	known = hca_peer_cred(fd, &cred);
	if (msg.kind == HCA_INSPECT_FAIL)
		fail_answer(fd, &cred, msg.device);
	/* A refused inspection is not logged: it is no attempt to harm. */
	else if (known && hca_peer_may_look(&cred))
		hca_inspect_send(fd, hca_process.segment_fd, 0);
	else
		hca_inspect_reply(fd, -EPERM);
	return true;
}
