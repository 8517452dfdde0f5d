/* SPDX-License-Identifier: BSD-2-Clause */
/* The frames of one message. */
#include <errno.h>

#include "gateway/node/zeromq/zeromq.h"

int zeromq_frames_take(void *socket, zmq_msg_t frames[], unsigned max)
{
	zmq_msg_t rest;
	unsigned count = 0;

	for (;;) {
		zmq_msg_t *frame = count < max ? &frames[count] : &rest;
		bool more;

		zmq_msg_init(frame);
		if (zmq_msg_recv(frame, socket, ZMQ_DONTWAIT) < 0) {
			int error = errno;

			zmq_msg_close(frame);
			zeromq_frames_close(frames, (int)count, max);
			return error == EAGAIN ? 0 : -error;
		}
		more = zmq_msg_more(frame);
		if (count++ >= max)
			zmq_msg_close(frame);
		if (!more)
			return (int)MIN(count, (unsigned)INT32_MAX);
	}
}

void zeromq_frames_close(zmq_msg_t frames[], int count, unsigned max)
{
	for (unsigned i = 0; (int)i < count && i < max; i++)
		zmq_msg_close(&frames[i]);
}
