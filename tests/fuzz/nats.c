/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the answers of JetStream that the node-type nats reads: each is good, an error
 * with a text that can be shown, or no answer; and of the numbers at the end of their subjects.
 *
 * usage: fuzz_nats [RUNS [SEED]]
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUTATE_BYTES "{}[]\":,.0123456789-eE\\u \n\0\x7f\xff"
#include "drive.h"
#include "gateway/node/nats/answer.h"

static void must(bool good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), subject[64];
	struct nats_answer a;
	bool known = nats_answer_read(&a, (const char *)data, size);
	uint64_t tag;

	must(!a.good || (known && !*a.text && !a.code));
	must(strnlen(a.text, sizeof(a.text)) < sizeof(a.text) && a.code >= 0 && a.code < 1000);
	for (const char *t = a.text; *t; t++)
		must(!iscntrl((unsigned char)*t));
	memcpy(text, data, size);
	text[size] = '\0';
	tag = nats_answer_tag(text);
	if (tag) {
		snprintf(subject, sizeof(subject), "x.%llu", (unsigned long long)tag);
		must(nats_answer_tag(subject) == tag);
	}
	free(text);
	return 0;
}

#ifndef FUZZER
#define SIZE_MAX_OF_ANSWER 1024

static const char *const valid[] = {
	"{\"stream\":\"LAB\",\"seq\":17,\"duplicate\":true}",
	("{\"type\":\"io.nats.jetstream.api.v1.pub_ack_response\",\"error\":{\"code\":503,"
	 "\"err_code\":10008,\"description\":\"JetStream system temporarily unavailable\"}}"),
	"{\"error\":{\"code\":400},\"stream\":\"LAB\",\"seq\":0}",
	"_INBOX.Xk2.123456789012345678",
	"_INBOX.Xk2.17",
};

static size_t make(uint8_t *bytes, size_t capacity)
{
	const char *text = valid[random_below(sizeof(valid) / sizeof(valid[0]))];
	size_t size = strlen(text);

	memcpy(bytes, text, size);
	return mutate_times(bytes, size, capacity, random_below(6));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 200000, SIZE_MAX_OF_ANSWER, make);
}
#endif
