/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endurance: a gateway whose nodes and paths are restarted, paused and reloaded
 * at random, as in months of a laboratory's life, and whose memory must stay flat:
 * what the allocator has given out, the pages of the process, its descriptors and
 * its threads. At the end it forwards as at the beginning and no sample is lost
 * from a pool.
 *
 * usage: endure [SECONDS [SEED]]
 */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gateway/super_node/super_node.h"
#include "gateway/super_node/super_node_control.h"
#include "gateway/super_node/super_node_reload.h"
#include "util/clock.h"
#include "util/log.h"

#define SECONDS 3.0
/* Pages that come and go with timing; growth that does not end passes any. */
#define RSS_SLACK_KIB 3072
#define HEAP_SLACK (96 << 10)

static const char text[] =
	"nodes = {"
	" fast = { type = \"signal\"; signal = \"counter\"; rate = 20000; values = 8; monitor_missed = false };"
	" slow = { type = \"signal\"; signal = \"sine\"; rate = 500; values = %u; monitor_missed = false };"
	" other = { type = \"signal\"; rate = 300; values = 2; monitor_missed = false };"
	" one = { type = \"loopback\"; queuelen = 256 };"
	" two = { type = \"loopback\"; queuelen = 256; mode = \"pthread\" };"
	" tape = { type = \"file\"; uri = \"/dev/null\"; format = \"csv\"; out = { buffer_size = 32768 }; };"
	"};"
	"paths = ( { in = \"fast\"; out = \"one\"; queuelen = 256 }, { in = \"one\"; out = \"tape\"; queuelen = 256 },"
	" { in = ( \"slow\", \"other\" ); out = \"two\"; queuelen = 256; rate = 300 }, { in = \"two\"; queuelen = %u }, { in = \"fast\"; queuelen = 256 } );"
	"stats = 20.0; hugepages = 0; logging = { level = \"error\" };";

static const char *const nodes[] = { "fast", "slow", "other", "one", "two", "tape" };
#define NODES (sizeof(nodes) / sizeof(nodes[0]))
static const char *const paths[] = { "0", "1", "2", "3", "4" };

static unsigned errors;
static uint64_t state;

static bool count_errors(enum log_level level, const char *line)
{
	if (level == LOG_ERROR) {
		errors++;
		fprintf(stderr, "%s\n", line);
	}
	return true;
}

static unsigned draw(unsigned below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)((state >> 11) % below);
}

struct usage {
	size_t heap;
	long rss_kib;
	unsigned fds, threads;
};

static unsigned entries(const char *folder)
{
	DIR *d = opendir(folder);
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static struct usage measure(void)
{
	struct mallinfo2 m = mallinfo2();
	struct usage u = { .heap = m.uordblks + m.hblkhd };
	FILE *f = fopen("/proc/self/statm", "r");
	long size = 0, resident = 0;

	if (f && fscanf(f, "%ld %ld", &size, &resident) == 2)
		u.rss_kib = resident * (sysconf(_SC_PAGESIZE) / 1024);
	if (f)
		fclose(f);
	u.fds = entries("/proc/self/fd");
	u.threads = entries("/proc/self/task");
	return u;
}

static void reload(struct super_node *sn)
{
	struct config *c;
	char buf[2048];
	json_t *report = NULL, *o;

	snprintf(buf, sizeof(buf), text, 2 + draw(3), 256 + draw(3));
	if (config_load_text("endure", buf, strlen(buf), &c))
		exit(1);
	o = json_deep_copy(config_root(c));
	config_destroy(c);
	if (super_node_reload(sn, o, &report))
		errors++;
	json_decref(o);
	json_decref(report);
}

static void act(struct super_node *sn)
{
	enum control_verb verb = (enum control_verb)draw(5);

	switch (draw(16)) {
	case 0:
		reload(sn);
		break;
	case 1:
		json_decref(super_node_snapshot(sn));
		json_decref(super_node_nodes_json(sn));
		break;
	case 2:
		super_node_path_reset(sn, NULL);
		break;
	case 3:
	case 4:
	case 5:
		super_node_path_control(sn, paths[draw(5)], verb);
		break;
	case 6:
		super_node_node_rewind(sn, nodes[draw(NODES)]);
		break;
	default:
		super_node_node_control(sn, nodes[draw(NODES)], verb);
	}
}

/* Everything runs, and each path moves samples. */
static bool works(struct super_node *sn)
{
	for (unsigned i = 0; i < NODES; i++)
		super_node_node_control(sn, nodes[i], CONTROL_RESTART);
	for (unsigned i = 0; i < 5; i++)
		super_node_path_control(sn, paths[i], CONTROL_RESTART);
	super_node_path_reset(sn, NULL);
	for (unsigned i = 0; i < 5; i++) {
		json_int_t samples = 0;

		for (unsigned wait = 0; wait < 10000 && !samples; wait++) {
			json_t *o = super_node_path_json(sn, paths[i], true);

			samples = json_integer_value(json_object_get(
				json_object_get(o, "stats"), "samples"));
			json_decref(o);
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		}
		if (samples)
			continue;
		fprintf(stderr, "path %u does not forward any more\n", i);
		return false;
	}
	return true;
}

static unsigned long act_until(struct super_node *sn, uint64_t end_ns)
{
	unsigned long n = 0;

	for (; clock_now_ns() < end_ns; n++) {
		act(sn);
		if (n % 8 == 0)
			nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	}
	return n;
}

static bool is_flat(struct usage a, struct usage b)
{
	printf("heap %zu KiB to %zu KiB, rss %ld KiB to %ld KiB, descriptors %u to %u, threads %u to %u\n",
	       a.heap >> 10, b.heap >> 10, a.rss_kib, b.rss_kib, a.fds, b.fds,
	       a.threads, b.threads);
	/* A path that began beside a stopped node has a thread for each source. */
	if (b.fds > a.fds + 4 || b.threads > a.threads + 4)
		return false;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* Their allocators keep what was freed, and look for leaks themselves. */
	return true;
#else
	return b.heap <= a.heap + HEAP_SLACK &&
	       b.rss_kib <= a.rss_kib + RSS_SLACK_KIB;
#endif
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : SECONDS;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) :
				   (uint64_t)time(NULL);
	uint64_t span = (uint64_t)(seconds * 1e9);
	struct usage before, after;
	struct super_node *sn;
	unsigned long acts;
	struct config *c;
	char buf[2048];
	bool good;

	printf("seed %llu, %g s\n", (unsigned long long)seed, seconds);
	fflush(stdout);
	state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	clock_init();
	log_set_sink(count_errors);
	snprintf(buf, sizeof(buf), text, 2, 256);
	if (config_load_text("endure", buf, strlen(buf), &c) ||
	    super_node_new(&sn, c) || super_node_start(sn))
		return 1;
	acts = act_until(sn, clock_now_ns() + span / 3);
	good = works(sn);
	reload(sn);
	before = measure();
	acts += act_until(sn, clock_now_ns() + span * 2 / 3);
	good &= works(sn);
	reload(sn);
	after = measure();
	good &= is_flat(before, after);
	super_node_stop(sn);
	super_node_destroy(sn);
	config_destroy(c);
	printf("%lu commands, %u errors\n", acts, errors);
	return good && !errors ? 0 : 1;
}
