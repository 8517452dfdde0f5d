/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Can an object that is arriving in pieces have come to its end? json_scan_samples()
 * answers that by looking at all of it; this looks at each byte once.
 */
#include "gateway/format/part/json_common.h"

bool json_may_end(struct format *f, const char *buf, size_t len,
		  struct format_unfinished *u)
{
	bool may_end = false;

	/* No further than the first possible end: there scan() takes over. */
	for (; u->seen < len && !may_end; u->seen++) {
		char c = buf[u->seen], last = u->last;

		u->last = c;
		/* At the begin of a line another object begins: this one is lost,
		 * whatever its quotes say. */
		if (c == '{' && last == '\n')
			may_end = true;
		if (u->escaped) {
			u->escaped = false;
		} else if (u->in_string) {
			u->escaped = c == '\\';
			u->in_string = c != '"';
		} else if (c == '"') {
			u->in_string = true;
		} else if (c == '{') {
			u->depth++;
		} else if (c == '}') {
			may_end |= u->depth <= 1;
			u->depth -= u->depth > 0;
		}
	}
	return may_end;
}
