/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies bytes into and out of the buffers of a struct iovec array, piece by piece. */
#include <limits.h>
#include <string.h>

#include "rdmacm/rsocket/rs.h"

int rs_iter_init(struct rs_iter *it, const struct iovec *iov, size_t count)
{
	*it = (struct rs_iter){ .iov = iov, .count = count };
	if (count > IOV_MAX)
		return -EMSGSIZE;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len > SSIZE_MAX - it->left)
			return -EINVAL;
		it->left += iov[i].iov_len;
	}
	return 0;
}

/* The next contiguous piece; `*len` is its limit, then its length. */
static void *piece_take(struct rs_iter *it, size_t *len)
{
	void *at;

	while (it->at == it->iov->iov_len) {
		it->iov++;
		it->at = 0;
	}
	*len = MIN(*len, it->iov->iov_len - it->at);
	at = (char *)it->iov->iov_base + it->at;
	it->at += *len;
	it->left -= *len;
	return at;
}

void rs_iter_read(struct rs_iter *it, void *to, size_t len)
{
	for (size_t n; len; len -= n, to = (char *)to + n) {
		n = len;
		memcpy(to, piece_take(it, &n), n);
	}
}

void rs_iter_write(struct rs_iter *it, const void *from, size_t len)
{
	for (size_t n; len; len -= n, from = (const char *)from + n) {
		void *to;

		n = len;
		to = piece_take(it, &n);
		memcpy(to, from, n);
	}
}
