/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client of the control socket may send: any line, against a gateway that
 * runs. Nothing may crash it, and it must still forward at the end.
 *
 * usage: fuzz_control [RUNS [SEED]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gateway/control/server.h"
#include "gateway/super_node/super_node.h"
#include "gateway/super_node/super_node_control.h"
#include "util/clock.h"
#include "util/log.h"

static const char config_text[] =
	"nodes = { a = { type = \"signal\"; rate = 1000; values = 2 };"
	" l = { type = \"loopback\"; queuelen = 64 }; };"
	"paths = ( { in = \"a\"; out = \"l\"; queuelen = 64 }, { in = \"l\"; queuelen = 64 } );"
	"stats = 0.0; hugepages = 0;";

static struct super_node *sn;
static struct config *config;

static bool silent(enum log_level level, const char *line)
{
	return true;
}

static void begin(void)
{
	if (sn)
		return;
	log_set_sink(silent);
	if (config_load_text("fuzz", config_text, strlen(config_text),
			     &config) ||
	    super_node_new(&sn, config) || super_node_start(sn))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *answer;

	begin();
	answer = control_line(sn, (const char *)data, size);
	/* One line, whatever was asked. */
	if (!answer || strchr(answer, '\n') != answer + strlen(answer) - 1)
		abort();
	free(answer);
	return 0;
}

#ifndef FUZZ_ENGINE
static uint64_t state;

static unsigned draw(unsigned below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)((state >> 11) % below);
}

/* No file of this host: those would differ from run to run. */
static const char *const seeds[] = {
	"{\"path\":\"/nodes\",\"method\":\"GET\",\"id\":1}",
	"{\"path\":\"/api/v2/node/a/restart\",\"method\":\"POST\",\"body\":{}}",
	"{\"path\":\"/path/0/pause\",\"method\":\"POST\"}",
	"{\"path\":\"/path/a%20-%3e%20l/resume\",\"method\":\"POST\"}",
	"{\"path\":\"/stats\",\"id\":{\"x\":[null,true,1.5e300]}}",
	("{\"path\":\"/reload\",\"method\":\"POST\",\"body\":{\"config\":{\"nodes\":{\"a\":{\"type\":\"signal\",\"rate\":1000,\"values\":3},\"l\":{\"type\":\"loopback\",\"queuelen\":64}},"
	"\"paths\":[{\"in\":\"a\",\"out\":\"l\",\"queuelen\":64},{\"in\":\"l\",\"queuelen\":64}],\"stats\":0,\"hugepages\":0}}}"),
};

#define SEEDS (sizeof(seeds) / sizeof(seeds[0]))
#define TEXT_MAX 2048

static const char *const words[] = {
	"\"path\"", "\"body\"", "\"id\"", "{", "}", "[", "]", ":", ",", "null",
	"-1", "0", "1e9", "start", "stop", "pause", "resume", "restart", "stats",
	"reset", "node", "path", "nodes", "/", "%00", "%2f", "%", "a", "l", "\\u0000",
	"\"\"", "\\ud800", "signal", "loopback", "queuelen", "vectorize", "hooks",
	"rate", "in", "out", "enabled", "false", "uuid", "logging", "idle_stop",
};

static size_t mutate(char *text, size_t len)
{
	const char *word = words[draw(sizeof(words) / sizeof(words[0]))];
	size_t at = len ? draw((unsigned)len) : 0, n = strlen(word);

	switch (draw(5)) {
	case 0:
		if (len)
			text[at] = (char)draw(256);
		return len;
	case 1:
		n = draw(12) < len - at ? draw((unsigned)(len - at + 1)) % 12 : 0;
		n = n > len - at ? len - at : n;
		memmove(text + at, text + at + n, len - at - n);
		return len - n;
	case 2: /* replace */
		n = n > len - at ? len - at : n;
		memcpy(text + at, word, n);
		return len;
	default:
		if (len + n > TEXT_MAX)
			return len;
		memmove(text + at + n, text + at, len - at);
		memcpy(text + at, word, n);
		return len + n;
	}
}

static void send_line(const char *text)
{
	LLVMFuzzerTestOneInput((const uint8_t *)text, strlen(text));
}

static int64_t forwarded(void)
{
	json_t *o = super_node_path_json(sn, "1", true);
	int64_t n = json_integer_value(json_object_get(
		json_object_get(o, "stats"), "samples"));

	json_decref(o);
	return n;
}

/* Brought back to where it began it still works. */
static bool still_forwards(void)
{
	int64_t before;

	send_line(seeds[5]);
	for (unsigned i = 0; i < 2; i++) {
		char line[80];

		snprintf(line, sizeof(line), "{\"path\":\"/node/%s/restart\",\"method\":\"POST\"}",
			 i ? "a" : "l");
		send_line(line);
		snprintf(line, sizeof(line), "{\"path\":\"/path/%u/restart\",\"method\":\"POST\"}",
			 i);
		send_line(line);
	}
	before = forwarded();
	for (unsigned i = 0; i < 10000; i++) {
		if (forwarded() > before)
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return false;
}

int main(int argc, char **argv)
{
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, end;
	bool good;

	begin();
	end = clock_now_ns() + (argc > 1 ? 3600 : 2) * NSEC_PER_SEC;
	for (unsigned long run = 0; run < runs && clock_now_ns() < end; run++) {
		char text[TEXT_MAX];
		size_t len;

		state = (seed * 1000003 + run) * UINT64_C(0x9e3779b97f4a7c15) |
			1;
		draw(2);
		len = strlen(strcpy(text, seeds[draw(SEEDS)]));
		for (unsigned k = draw(5); k > 0; k--)
			len = mutate(text, len);
		if (getenv("FUZZ_SHOW"))
			fprintf(stderr, "run %lu %.*s\n", run, (int)len, text);
		LLVMFuzzerTestOneInput((const uint8_t *)text, len);
	}
	good = still_forwards();
	if (!good)
		fprintf(stderr, "nothing is forwarded any more\n");
	super_node_stop(sn);
	super_node_destroy(sn);
	config_destroy(config);
	return good ? 0 : 1;
}
#endif
