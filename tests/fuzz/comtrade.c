/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: COMTRADE. Any bytes as a configuration, as the data of each type
 * and as a single file must end in values or an error, take no more memory than
 * they are worth, and what is printed of them must be understood again.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address -DWITH_LIBFUZZER. Without, a
 * main() mutates the seeds for about two seconds; SECONDS and SEED in the
 * environment make it longer and another one. A failing input is printed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "gateway/comtrade/comtrade.h"
#include "gateway/format/comtrade_file.h"
#include "util/clock.h"
#include "util/log.h"

#define MUTATE_BYTES "0123456789.,,,:/+-eAD\r\n \x1a\0\xff\x80"
#include "mutate.h"

#define CAPACITY 64
#define PRINT_MAX (1 << 20)
/* What a small input may cost beyond what the process has anyway. */
#define MEMORY_MAX (UINT64_C(256) << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHANNELS "1,IA,A,L,A,0.5,-1,0,-32767,32767,800,1,S\r\n" \
		 "2,UA,A,L,kV,2,0,,-32767,32767,110,0.1,P\r\n"   \
		 "1,TRIP,,,1\r\n"
#define CFG_OF(type) "ST,DEV,2013\r\n3,2A,1D\r\n" CHANNELS \
	"50\r\n2\r\n1000,3\r\n500,9\r\n31/12/1999,23:59:59.5\r\n" \
	"01/01/2000,00:00:00.000000001\r\n" type "\r\n1.5\r\n-5h30,0\r\nB,3\r\n"
#define CFF_OF(type, size) "--- file type: CFG ---\r\n" CFG_OF(type) \
	"--- file type: INF ---\r\n--- file type: HDR ---\r\n" \
	"--- file type: DAT " type size " ---\r\n"

static const char *const cfgs[] = {
	CFG_OF("ASCII"), CFG_OF("BINARY"), CFG_OF("BINARY32"), CFG_OF("FLOAT32"),
};

static const struct {
	const char *bytes;
	size_t size;
} seeds[] = {
#define SEED(s) { s, sizeof(s) - 1 }
	SEED(CFG_OF("ASCII")),
	SEED("S,D\n2,1A,1D\n1,I,A,,A,1,0,0,-9,9\n2,T,1\n60\n0\n0,10\n"
	     "12/31/91,23:59:59.000001\n12/31/91,23:59:59.5\nASCII\n"),
	SEED("S,D,0\r2,1A,1D\r1,I,A,,A,1,0,0,-9,9\r2,T,1\r60\r1\r1000,9\r"
	     "31/12/1991,23:59:59\r31/12/91,23:59:59\rASCII\r1\rUTC+0530,x\r"),
	SEED("\xef\xbb\xbf" "1,0,5,6,1\r2,65000,5,6,1\r3,464,5,6,1\r4,-9223372036854775808,5,6,1\r"),
	SEED("1,0,5,6,1\r\n2,1000,-7,,0\r\n3,,99999,8.5e3,0\r\n\x1a"),
	SEED("\1\0\0\0\0\0\0\0\5\0\0\x80\1\0\2\0\0\0\xff\xff\xff\xff\7\0\7\0\0\0"),
	SEED("\1\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x80\1\0"),
	SEED(CFF_OF("ASCII", "") "1,0,5,6,1\r\n2,1000,-7,,0\r\n"),
	SEED(CFF_OF("BINARY", ": 28")
	     "\1\0\0\0\0\0\0\0\5\0\0\x80\1\0\2\0\0\0\1\0\0\0\7\0\7\0\0\0"),
	SEED(CFF_OF("FLOAT32", ": 18")
	     "\1\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x80\1\0"),
};

#define REQUIRE(condition)                                             \
	do {                                                           \
		if (!(condition)) {                                    \
			fprintf(stderr, "failed: %s\n", #condition);   \
			print_input(data, size);                       \
			abort();                                       \
		}                                                      \
	} while (0)

static void print_input(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		fprintf(stderr, "\\x%02x", data[i]);
	fputc('\n', stderr);
}

static void try_cfg(const char *copy, const uint8_t *data, size_t size)
{
	static char text[PRINT_MAX];
	struct comtrade_error err = { 0 };
	struct comtrade_cfg *c;
	size_t len;
	int ret = comtrade_cfg_parse(&c, copy, size, 0, &err);

	REQUIRE(ret == 0 || (ret == -EBADMSG && err.text[0]));
	if (ret)
		return;
	REQUIRE(comtrade_cfg_values(c) > 0 && c->rate_count > 0);
	/* Before 2013 the text is ISO 8859-1, which may look like UTF-8. */
	c->revision = 2013;
	len = comtrade_cfg_print(c, text, sizeof(text));
	comtrade_cfg_free(c);
	REQUIRE(len <= sizeof(text));
	ret = comtrade_cfg_parse(&c, text, len, 0, &err);
	if (ret)
		fprintf(stderr, "line %u: %s\n%.*s\n", err.line, err.text,
			(int)len, text);
	REQUIRE(ret == 0);
	comtrade_cfg_free(c);
}

static struct format *formats[5]; /* of the data types, and of single files */
static struct format *writers[4]; /* of the data types */
static struct sample *smps[2];

/* Kept until the process ends; the pointers stay reachable. */
static void set_up(void)
{
	static struct config *config, *kept[4];
	static const char text[] = "{ \"type\": \"comtrade\" }";
	struct comtrade_error err;

	clock_init();
	log_set_level(LOG_ERROR); /* what is odd is warned of */
	if (config_load_text("fuzz", text, strlen(text), &config))
		abort();
	for (int i = 0; i < 5; i++) {
		if (format_new(&formats[i], config, config_root(config), NULL, NULL))
			abort();
		if (i == 4)
			break;
		comtrade_format_set_layout(formats[i], COMTRADE_PAIR);
		if (comtrade_format_use_cfg(formats[i], cfgs[i], strlen(cfgs[i]),
					    &err))
			abort();
	}
	for (int i = 0; i < 4; i++) {
		static const char *const kinds[] = { "ascii", "binary", "binary32",
						     "float32" };
		char kind[100];

		snprintf(kind, sizeof(kind), "{ \"type\": \"comtrade\", \"data\": "
			 "\"%s\", \"min\": -9, \"max\": 1e6 }", kinds[i]);
		if (config_load_text("fuzz", kind, strlen(kind), &kept[i]) ||
		    format_new(&writers[i], kept[i], config_root(kept[i]), NULL,
			       NULL))
			abort();
	}
	for (int i = 0; i < 2; i++) {
		smps[i] = calloc(1, sizeof(*smps[i]) +
					    CAPACITY * sizeof(smps[i]->data[0]));
		if (!smps[i])
			abort();
		smps[i]->capacity = CAPACITY;
	}
}

/* Whatever the values and times are, they become a record that can be read. */
static void print_all(int n, const uint8_t *data, size_t size)
{
	static char buf[64 << 10];
	static unsigned turn;
	struct format *f = writers[turn++ % 4];
	struct comtrade_error err;
	struct comtrade_cff parts;
	struct comtrade_cfg *c;
	size_t used;

	comtrade_format_set_layout(f, COMTRADE_SINGLE);
	REQUIRE(f->type->print(f, buf, sizeof(buf), &used, smps, (unsigned)n) == n);
	REQUIRE(comtrade_format_head(f, NULL, buf, sizeof(buf)) <= used);
	REQUIRE(comtrade_cff_find(buf, used, &parts, &err) == 1);
	REQUIRE(!comtrade_cfg_parse(&c, buf + parts.cfg_start,
				    parts.cfg_end - parts.cfg_start, 0, &err));
	REQUIRE(c->rates[0].end == (uint64_t)n);
	comtrade_cfg_free(c);
}

static void scan_all(struct format *f, const char *at, const uint8_t *data,
		     size_t size)
{
	size_t left = size;
	bool printed = false;

	f->type->reset(f);
	for (;;) {
		size_t used = SIZE_MAX;
		int n = f->type->scan(f, at, left, &used, smps, 2);

		REQUIRE(used <= left);
		REQUIRE(n == -EBADMSG || (n >= 0 && n <= 2));
		REQUIRE(n == 0 || used > 0);
		REQUIRE(n >= 0 || format_error(f)[0]);
		for (int i = 0; i < n; i++) {
			REQUIRE(smps[i]->length <= CAPACITY);
			REQUIRE(smps[i]->origin.tv_nsec >= 0 &&
				smps[i]->origin.tv_nsec < 1000000000);
		}
		if (n == 0)
			return;
		/* Once is enough: it takes longer than all the rest. */
		if (n > 0 && !printed)
			print_all(n, data, size);
		printed |= n > 0;
		at += used;
		left -= used;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of exactly this size shows every read beyond the end. */
	char *copy = malloc(size ? size : 1);

	if (!formats[0])
		set_up();
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	try_cfg(copy, data, size);
	for (int i = 0; i < 5; i++)
		scan_all(formats[i], copy, data, size);
	free(copy);
	return 0;
}

#ifndef WITH_LIBFUZZER
/* No input may make us ask for more: then there would be no memory. */
static void limit_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
	!defined(__clang__)
	const struct rlimit limit = { MEMORY_MAX, MEMORY_MAX };

	setrlimit(RLIMIT_AS, &limit);
#endif
}

int main(void)
{
	const char *seconds = getenv("SECONDS"), *seed = getenv("SEED");
	uint64_t stop_ns, runs = 0;

	clock_init();
	limit_memory();
	random_state = seed ? strtoull(seed, NULL, 0) : 1;
	stop_ns = clock_monotonic_ns_slow() +
		  (seconds ? strtoull(seconds, NULL, 0) : 2) * NSEC_PER_SEC;
	while (clock_monotonic_ns_slow() < stop_ns) {
		uint8_t data[4096];
		size_t k = random_below(sizeof(seeds) / sizeof(seeds[0]));
		size_t size = seeds[k].size;

		memcpy(data, seeds[k].bytes, size);
		for (uint64_t n = random_below(8); n > 0; n--)
			size = mutate(data, size, sizeof(data));
		LLVMFuzzerTestOneInput(data, size);
		runs++;
	}
	printf("%ju inputs\n", (uintmax_t)runs);
	return 0;
}
#endif
