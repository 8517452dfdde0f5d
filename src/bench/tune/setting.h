/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings of a host that matter to a gateway: a table of them, each with a function
 * that looks at the files of the kernel and says what is, what would be better, what stands in
 * the way, and which lines of a profile of tuned bring it about. check prints the first three,
 * apply makes a profile of the last; so the two never disagree.
 */
#ifndef BENCH_TUNE_SETTING_H
#define BENCH_TUNE_SETTING_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/tune/cpus.h"
#include "bench/tune/profile.h"
#include "bench/tune/tree.h"
#include "bench/tune/tune.h"

enum tune_verdict {
	TUNE_GOOD,   /* as it should be */
	TUNE_BETTER, /* something else would be better, and it can be had */
	TUNE_LIMIT,  /* this host, or what it runs on, stands in the way */
	TUNE_ABSENT, /* the kernel has no such thing, or hides it */
	TUNE_VERDICTS,
};

/* What is known of the host before the first look. */
struct tune_host {
	struct tune_tree tree;
	struct tune_cpus online;
	struct tune_cpus cpus; /* to be kept for real-time programs; none: not chosen */
	bool virtual;          /* a hypervisor is below */
};

struct tune_setting;

struct tune_look {
	const struct tune_host *host;
	const struct tune_tree *tree; /* of the host */
	const struct tune_setting *setting;
	struct tune_profile *profile; /* gets the lines; NULL: nobody wants them */
	char line[4096]; /* the first of setting->path, if there is one */
	/* Results; the texts are "" where there is nothing to say. */
	enum tune_verdict verdict;
	char today[256], better[256], limit[320];
};

struct tune_setting {
	const char *name;
	const char *why;  /* one sentence */
	void (*look)(struct tune_look *l);
	/* A file, without which `look` is not called: then there is no such thing, for the reason
	 * `absent`; NULL: because it cannot be read. */
	const char *path, *absent;
	/* For look_sysctl(): what is written if the number in the file is not from `low` to `high`. */
	const char *wanted;
	int low, high;
	bool applies;     /* apply can do something about it */
	bool asked_only;  /* apply does so only when --only names it */
	bool may_remain;  /* the kernel may refuse a part, which is no failure of apply */
};

/* All settings, in the order of the output; begins and ends with NULL. */
const struct tune_setting *tune_setting_next(const struct tune_setting *s);
const struct tune_setting *tune_setting_find(const char *name);

/* Reads what is online and whether there is a hypervisor. `root` is "" or a folder. 0, or a
 * negative errno, logged: there is no kernel below the root. */
int tune_host_read(struct tune_host *host, const char *root);

/* Checks the names of --only and reads the host and --cpus. 0 or a negative errno, logged. */
int tune_prepare(const struct tune_options *o, struct tune_host *host);
/* Is the setting among those of --only? */
bool tune_wanted(const struct tune_options *o, const struct tune_setting *s);

/* Looks at one setting; adds to the profile, which may be NULL. */
void tune_look(const struct tune_host *host, const struct tune_setting *setting,
	       struct tune_profile *profile, struct tune_look *l);

/*
 * Where the version 2 hierarchy of cgroups is mounted, below the root: "/sys/fs/cgroup".
 * 0, -ENOENT: nowhere, or -ENAMETOOLONG.
 */
int tune_cgroup_mount(const struct tune_tree *t, char *to, size_t size);
#define TUNE_CGROUP "busbar-rt"
#define TUNE_FLAGS_BYTES 8192 /* of a processor, in /proc/cpuinfo */

/* ---- for the look functions ---- */

#define LOOK_PRINTF __attribute__((format(printf, 2, 3)))
void look_today(struct tune_look *l, const char *format, ...) LOOK_PRINTF;
/* Sets the verdict to TUNE_BETTER unless it is TUNE_LIMIT. */
void look_better(struct tune_look *l, const char *format, ...) LOOK_PRINTF;
/* Sets the verdict to TUNE_LIMIT. */
void look_limit(struct tune_look *l, const char *format, ...) LOOK_PRINTF;
/* Sets the verdict to TUNE_ABSENT, `today` is the reason. */
void look_absent(struct tune_look *l, const char *format, ...) LOOK_PRINTF;
/*
 * Adds a line to the profile, or one for a file of the kernel. It is added also where the
 * value is as it should be: that may be due to the profile that is active now, and tuned takes
 * that one back first.
 */
void look_want(struct tune_look *l, const char *section, const char *key, const char *value);
void look_want_file(struct tune_look *l, const char *path, const char *value);
/* A function that look functions call got `err`: the profile is not complete. */
void look_failed(struct tune_look *l, int err);
/* Is one processor all there is? Then the limit is that there is nothing to `what`. */
bool look_alone(struct tune_look *l, const char *what);
/* Looks at the number in setting->path. */
void look_sysctl(struct tune_look *l);

/* Tables of the rooms' files; each ends with a NULL name. */
extern const struct tune_setting tune_settings_clock[];  /* processors' clocks and sleep */
extern const struct tune_setting tune_settings_place[];  /* who runs where */
extern const struct tune_setting tune_settings_memory[];
extern const struct tune_setting tune_settings_kernel[];
extern const struct tune_setting tune_settings_host[];   /* what is below: only looked at */

#endif
