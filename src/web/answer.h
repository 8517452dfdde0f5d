/* SPDX-License-Identifier: BSD-2-Clause */
/* What the file server answers to the text of a request. */
#ifndef WEB_ANSWER_H
#define WEB_ANSWER_H

#include <stdbool.h>

#include "web/server.h"

struct answer {
	char *head;             /* registered; the content of errors lies behind it */
	size_t head_bytes;
	void *content;          /* of a file, or in `head` */
	size_t content_bytes;
	bool has_piece;
	struct store_piece piece;
};

/* Every text gets an answer, if only "400 Bad Request". -ENOBUFS: no memory. */
int answer_make(struct server *s, const char *text, size_t bytes, struct answer *out);
void answer_free(struct server *s, struct answer *a);

#endif
