/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads answers of JetStream; see answer.h. */
#include "gateway/node/nats/answer.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Bytes of an answer; JSON takes some times as much memory. */
#define ANSWER_MAX 65536

bool nats_answer_read(struct nats_answer *a, const char *data, size_t len)
{
	json_t *o = len <= ANSWER_MAX ? json_loadb(data, len, 0, NULL) : NULL;
	const json_t *error = json_object_get(o, "error");
	const char *text = json_string_value(json_object_get(error, "description"));
	bool known;

	*a = (struct nats_answer){ 0 };
	a->good = !error && json_is_string(json_object_get(o, "stream")) &&
		  json_is_integer(json_object_get(o, "seq"));
	known = a->good || json_is_object(error);
	if (json_is_object(error)) {
		json_int_t code = json_integer_value(json_object_get(error, "code"));

		a->code = code > 0 && code < 1000 ? (int)code : 0;
		snprintf(a->text, sizeof(a->text), "%s", text ? text : "without a reason");
	}
	json_decref(o);
	for (char *t = a->text; *t; t++)
		if (iscntrl((unsigned char)*t))
			*t = ' ';
	return known;
}
