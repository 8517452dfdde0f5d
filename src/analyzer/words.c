/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of what the analyzer finds; see words.h. */
#include "analyzer/words.h"

struct kind_words {
	const char *key, *name, *advice;
};

static const struct kind_words kinds[] = {
	[ANALYZER_DAMMING] = { "damming", "packet damming",
		"Pin the memory of these queue pairs (no on-demand paging), or prefetch it with "
		"ibv_advise_mr before the first use. Otherwise set the smallest minimal RNR NAK "
		"delay (code 1, not 0), and let a timer post a further request on the same queue "
		"pair: the responder then asks for the lost one." },
	[ANALYZER_READ_FLOOD] = { "read_flood", "READ flood",
		"Let one queue pair read a page first and the others after it is complete, prefetch "
		"or touch the local buffers before the READs, or pin them. At most about 10 queue "
		"pairs should meet untouched pages at the same time." },
	[ANALYZER_WRITE_AMPLIFICATION] = { "write_amplification", "WRITE amplification",
		"Keep at most 4 WRITEs to untouched pages under way, prefetch the target at the "
		"responder (ibv_advise_mr), or pin it." },
	[ANALYZER_TIMEOUT] = { "timeout", "timeout",
		"Look at the destination's address and state, at cables, switches and congestion. A "
		"smaller timeout helps only down to the adapter's own minimum." },
	[ANALYZER_DAMMING_RECOVERED] = { "damming_recovered", "recovered packet damming",
		"A request was lost behind a pending period, and only a later request saved it from "
		"the timeout. Pin or prefetch the memory as for packet damming." },
	[ANALYZER_REFUSED] = { "refused", "refused request",
		"The responder ended the connection: look at the keys, addresses and access rights "
		"that the request used." },
	[ANALYZER_LOSS] = { "loss", "packet loss",
		"Look at error counters of ports and cables, and at drops in switches and hosts." },
	[ANALYZER_RNR] = { "receiver_not_ready", "receiver not ready",
		"Post receives earlier, or more of them." },
	[ANALYZER_CONGESTION] = { "congestion", "congestion",
		"Switches mark packets: several senders share a port. Look at the load of the path." },
	[ANALYZER_PAGE_FAULT] = { "page_fault", "page fault",
		"Pages were missing and came in within the usual time; prefetching avoids the wait." },
	[ANALYZER_INCOMPLETE] = { "incomplete", "not judged in full",
		"Capture both directions at one place, without losses, and from before the start." },
	[ANALYZER_NONE] = { "none", "nothing found", "" },
};

const char *analyzer_kind_name(enum analyzer_kind kind)
{
	return kinds[kind].name;
}

const char *analyzer_kind_key(enum analyzer_kind kind)
{
	return kinds[kind].key;
}

const char *analyzer_kind_advice(enum analyzer_kind kind)
{
	return kinds[kind].advice;
}

const char *analyzer_side_key(enum analyzer_side side)
{
	static const char *const keys[] = { "unknown", "server", "client" };

	return keys[side];
}

const char *analyzer_confidence_key(enum analyzer_confidence confidence)
{
	static const char *const keys[] = { "low", "medium", "high" };

	return keys[confidence];
}

static const struct {
	const char *key, *name;
} triggers[ANALYZER_TRIGGERS] = {
	[ANALYZER_BY_RNR] = { "rnr_nak", "RNR NAK" },
	[ANALYZER_BY_SEQUENCE] = { "sequence_nak", "sequence NAK" },
	[ANALYZER_BY_DISCARD] = { "answer_dropped", "answer dropped by the requester" },
	[ANALYZER_BY_GAP] = { "answer_lost", "answer lost" },
	[ANALYZER_BY_TIMEOUT] = { "timeout", "timeout" },
	[ANALYZER_BY_DAMMING] = { "damming", "timeout behind a pending period" },
	[ANALYZER_BY_UNKNOWN] = { "unexplained", "no cause visible" },
};

const char *analyzer_trigger_key(enum analyzer_trigger trigger)
{
	return triggers[trigger].key;
}

const char *analyzer_trigger_name(enum analyzer_trigger trigger)
{
	return triggers[trigger].name;
}

static const struct {
	const char *key, *text;
} gaps[] = {
	{ "no_answers", "the capture has its requests and none of the answers: neither RNR NAKs nor losses can be seen" },
	{ "no_requests", "the capture has answers and none of the requests" },
	{ "requests_missing", "requests are missing in the capture" },
	{ "answers_missing", "answers are missing in the capture" },
	{ "resends_unexplained", "requests were sent again, and the capture does not show why" },
	{ "ends_early", "the capture ends while a request waits for its answer" },
	{ "no_times", "packets have no times" },
	{ "forgotten", "more requests were open than the analyzer keeps" },
};

const char *analyzer_gap_text(unsigned nth)
{
	return nth < sizeof(gaps) / sizeof(gaps[0]) ? gaps[nth].text : NULL;
}

const char *analyzer_gap_key(unsigned nth)
{
	return nth < sizeof(gaps) / sizeof(gaps[0]) ? gaps[nth].key : NULL;
}
