/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting faults and telling them; see fault.h. */
#define LOG_ROOM "gateway/node"
#include "gateway/part/fault.h"

#include <stdarg.h>
#include <stdio.h>

#include "gateway/plugin/node.h"
#include "util/clock.h"
#include "util/log.h"

#define LINES_MAX 20 /* in a second */

static const char *const kind_names[FAULT_KINDS] = {
	[FAULT_MALFORMED] = "malformed",
	[FAULT_TRUNCATED] = "truncated",
	[FAULT_FOREIGN] = "from another sender",
	[FAULT_OVERRUN] = "lost because reading was too slow",
	[FAULT_DROPPED] = "dropped because the peer takes too little",
};

/* Under the lock. `last` may be NULL. */
static void tell(struct fault_counters *f, const char *last)
{
	char text[400] = "";
	size_t used = 0;

	for (unsigned k = 0; k < FAULT_KINDS && used < sizeof(text); k++) {
		uint64_t n = f->count[k] - f->said[k];

		if (n)
			used += (size_t)snprintf(text + used,
						 sizeof(text) - used, "%s%ju %s",
						 used ? ", " : "", (uintmax_t)n,
						 kind_names[k]);
		f->said[k] = f->count[k];
	}
	if (used)
		log_warn("%s: messages: %s%s%s%s", f->node->name, text,
			 last ? " (the last: " : "", last ? last : "",
			 last ? ")" : "");
}

void fault_note(struct fault_counters *f, enum socket_fault kind, uint64_t n,
		const char *fmt, ...)
{
	uint64_t now = clock_now_ns();
	char last[200];
	va_list ap;

	node_figure_add(f->node, kind, n);
	spin_lock(&f->lock);
	f->count[kind] += n;
	if (now >= f->next_ns) {
		va_start(ap, fmt);
		vsnprintf(last, sizeof(last), fmt, ap);
		va_end(ap);
		tell(f, last);
		f->next_ns = now + NSEC_PER_SEC;
	}
	spin_unlock(&f->lock);
}

/* Under the lock. */
static void tell_left_out(struct fault_counters *f)
{
	if (f->left_out)
		log_warn("%s: lines about its peers that were left out: %u", f->node->name,
			 f->left_out);
	f->lines = f->left_out = 0;
}

bool fault_may_log(struct fault_counters *f)
{
	uint64_t now = clock_now_ns();
	bool may;

	spin_lock(&f->lock);
	if (now - f->lines_ns >= NSEC_PER_SEC) {
		tell_left_out(f);
		f->lines_ns = now;
	}
	may = f->lines < LINES_MAX;
	f->lines += may;
	f->left_out += !may;
	spin_unlock(&f->lock);
	return may;
}

void fault_finish(struct fault_counters *f)
{
	spin_lock(&f->lock);
	tell(f, NULL);
	tell_left_out(f);
	spin_unlock(&f->lock);
}
