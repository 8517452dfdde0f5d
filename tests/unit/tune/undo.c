/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tune applies it takes back, byte by byte, whatever fails in between: each setting
 * alone and all together, each fault at each change.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/tune/setting.h"
#include "bench/tune/tune.h"
#include "faults.h"
#include "tree.h"
#include "util/log.h"

#define STATE "/run/busbar/tune.json"
#define CPUS "2-3"

static FILE *nowhere;
static char last_error[1024];

static bool keep_error(enum log_level level, const char *line)
{
	if (level == LOG_ERROR)
		snprintf(last_error, sizeof(last_error), "%s", line);
	return true;
}

static struct tune_options options(const char *root, const char *only)
{
	return (struct tune_options){ .root = root, .only = only, .cpus = CPUS };
}

static int apply(const char *root, const char *only)
{
	struct tune_options o = options(root, only);

	return tune_apply_main(&o, nowhere);
}

static int undo(const char *root, bool force)
{
	struct tune_options o = options(root, NULL);

	o.force = force;
	return tune_undo_main(&o, nowhere);
}

static bool has_state(const char *root)
{
	char *text = tree_get(root, STATE);

	free(text);
	return text;
}

/* A tree whose folder of the state file is there, with its snapshot. */
static char *fresh(char **snapshot)
{
	char *root = tree_make(), path[512];

	/* Its folder stays when the file goes. */
	tree_put(root, STATE, "");
	snprintf(path, sizeof(path), "%s" STATE, root);
	unlink(path);
	*snapshot = tree_snapshot(root);
	return root;
}

static void assert_tree(const char *root, const char *snapshot)
{
	char *now = tree_snapshot(root);

	assert_string_equal(now, snapshot);
	free(now);
}

static void release(char *root, char *snapshot)
{
	tree_remove(root);
	free(snapshot);
}

/* Does apply change anything for these settings, and undo take it back? */
static unsigned round_trip(const char *root, const char *before, const char *only)
{
	char *between;
	unsigned changes;

	fault_arm(FAULT_NONE, 0);
	assert_int_equal(apply(root, only), 0);
	changes = fault_changes();
	assert_int_equal(has_state(root), changes > 0);
	if (changes) {
		between = tree_snapshot(root);
		assert_string_not_equal(between, before);
		free(between);
		assert_int_equal(undo(root, false), 0);
	}
	assert_tree(root, before);
	return changes;
}

static void settings_come_and_go_alone_and_together(void **state)
{
	const struct tune_setting *s = NULL;
	char *before, *root = fresh(&before);

	(void)state;
	while ((s = tune_setting_next(s)))
		if (s->applies)
			assert_true(round_trip(root, before, s->name) > 0);
		else
			assert_int_equal(round_trip(root, before, s->name), 0);
	assert_true(round_trip(root, before, NULL) > 20);
	release(root, before);
}

/* apply with a fault, in a child if it ends the process. */
static void apply_with(const char *root, const char *only, enum fault fault, unsigned at)
{
	bool dies = fault == FAULT_KILL || fault == FAULT_KILL_AFTER;
	pid_t pid = dies ? fork() : 0;
	int status;

	if (!pid) {
		fault_arm(fault, at);
		status = apply(root, only);
		fault_arm(FAULT_NONE, 0);
		if (dies)
			_exit(1);
		/* Some interrupts may be refused: that is no failure of apply. */
		if (fault == FAULT_STATE || fault == FAULT_ERROR_AFTER)
			assert_int_equal(status, 1);
		return;
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 99);
}

static void apply_case(const char *root, const char *only, enum fault fault, unsigned at)
{
	apply_with(root, only, fault, at);
	if (has_state(root))
		assert_int_equal(undo(root, false), 0);
}

static void undo_case(const char *root, const char *only, enum fault fault, unsigned at)
{
	assert_int_equal(apply(root, only), 0);
	fault_arm(fault, at);
	assert_int_equal(undo(root, false), 1);
	fault_arm(FAULT_NONE, 0);
	assert_true(has_state(root));
	assert_int_equal(undo(root, false), 0);
}

/* All in one tree: what a case leaves behind, the next ones do not take away. At each change
 * every fault, or, with `one`, one of them in turn. */
static void every_fault_of(const char *only, bool one)
{
	char *before, *root = fresh(&before);
	unsigned n;

	fault_arm(FAULT_NONE, 0);
	assert_int_equal(apply(root, only), 0);
	n = fault_changes();
	if (n)
		assert_int_equal(undo(root, false), 0);
	for (unsigned at = 0; at < n; at++) {
		for (enum fault f = FAULT_ERROR; f < FAULT_KINDS; f++)
			if (!one || at % (FAULT_KINDS - 1) + 1 == f)
				apply_case(root, only, f, at);
		if (!one || at % 2)
			undo_case(root, only, FAULT_ERROR, at);
		if (!one || at % 2 == 0)
			undo_case(root, only, FAULT_ERROR_AFTER, at);
		assert_tree(root, before);
	}
	release(root, before);
}

static void each_fault_of_each_setting_can_be_undone(void **state)
{
	const struct tune_setting *s = NULL;

	(void)state;
	while ((s = tune_setting_next(s)))
		every_fault_of(s->name, false);
}

static void each_fault_among_all_settings_can_be_undone(void **state)
{
	(void)state;
	every_fault_of(NULL, true);
}

static void a_partition_is_not_made_where_its_cgroup_failed(void **state)
{
	char *before, *root = fresh(&before), *after;

	(void)state;
	/* 0 enables the controller, 1 makes the cgroup. */
	fault_arm(FAULT_ERROR, 1);
	assert_int_equal(apply(root, "cpuset"), 1);
	assert_int_equal(fault_changes(), 2);
	fault_arm(FAULT_NONE, 0);
	after = tree_get(root, "/sys/fs/cgroup/cgroup.subtree_control");
	assert_string_equal(after, "memory pids cpuset\n");
	free(after);
	assert_int_equal(undo(root, false), 0);
	assert_tree(root, before);
	release(root, before);
}

static void a_dry_run_changes_nothing(void **state)
{
	char *before, *root = fresh(&before), *after;
	struct tune_options o = options(root, NULL);

	(void)state;
	o.dry_run = true;
	assert_int_equal(tune_apply_main(&o, nowhere), 0);
	assert_tree(root, before);
	assert_int_equal(apply(root, NULL), 0);
	after = tree_snapshot(root);
	assert_int_equal(tune_undo_main(&o, nowhere), 0);
	assert_tree(root, after);
	free(after);
	release(root, before);
}

static void a_second_apply_is_refused(void **state)
{
	char *before, *root = fresh(&before), *after;

	(void)state;
	assert_int_equal(apply(root, "swap"), 0);
	after = tree_snapshot(root);
	assert_int_equal(apply(root, NULL), 1);
	assert_non_null(strstr(last_error, "busbar tune undo"));
	assert_tree(root, after);
	assert_int_equal(undo(root, false), 0);
	assert_tree(root, before);
	free(after);
	release(root, before);
}

/* Huge pages in use: the pool gets smaller only when their programs end. */
static void what_the_kernel_does_not_take_back_at_once_is_tried_again(void **state)
{
	char *before, *root = fresh(&before), *now;

	(void)state;
	assert_int_equal(apply(root, "hugepages"), 0);
	fault_arm(FAULT_OTHER, 0);
	assert_int_equal(undo(root, false), 1);
	fault_arm(FAULT_NONE, 0);
	now = tree_get(root, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
	assert_string_equal(now, "77\n");
	free(now);
	assert_int_equal(undo(root, false), 0);
	assert_tree(root, before);
	release(root, before);
}

static void what_others_changed_is_left_alone(void **state)
{
	const char *path = "/proc/sys/vm/swappiness";
	char *before, *root = fresh(&before), *now;

	(void)state;
	assert_int_equal(apply(root, NULL), 0);
	tree_put(root, path, "35\n");
	assert_int_equal(undo(root, false), 1);
	now = tree_get(root, path);
	assert_string_equal(now, "35\n");
	free(now);
	/* Everything else is as before, and only this one is still remembered. */
	now = tree_get(root, STATE);
	assert_non_null(strstr(now, path));
	assert_null(strstr(now, "governor"));
	free(now);
	assert_int_equal(undo(root, true), 0);
	assert_tree(root, before);
	release(root, before);
}

static void what_others_set_back_counts_as_undone(void **state)
{
	char *before, *root = fresh(&before);

	(void)state;
	assert_int_equal(apply(root, "swap"), 0);
	tree_put(root, "/proc/sys/vm/swappiness", "60\n");
	assert_int_equal(undo(root, false), 0);
	assert_tree(root, before);
	release(root, before);
}

static void a_file_that_is_gone_is_no_failure(void **state)
{
	char *before, *root = fresh(&before), path[512];

	(void)state;
	assert_int_equal(apply(root, "irq"), 0);
	snprintf(path, sizeof(path), "%s/proc/irq/131/smp_affinity_list", root);
	unlink(path);
	assert_int_equal(undo(root, false), 0);
	assert_false(has_state(root));
	release(root, before);
}

static void a_cgroup_with_something_in_it_stays(void **state)
{
	char *before, *root = fresh(&before), path[512];

	(void)state;
	assert_int_equal(apply(root, "cpuset"), 0);
	/* The kernel says EBUSY, a folder with a file ENOTEMPTY. */
	tree_put(root, "/sys/fs/cgroup/busbar-rt/cgroup.procs", "1\n");
	assert_int_equal(undo(root, false), 1);
	assert_true(has_state(root));
	snprintf(path, sizeof(path), "%s/sys/fs/cgroup/busbar-rt/cgroup.procs", root);
	unlink(path);
	assert_int_equal(undo(root, false), 0);
	assert_tree(root, before);
	release(root, before);
}

/* Truncated at each byte: refused, with the line. */
static void a_damaged_state_file_is_refused(void **state)
{
	char *before, *root = fresh(&before), *whole, *applied, name[512], line[32], longer[8192];

	(void)state;
	assert_int_equal(apply(root, "cpuset,swap,thp"), 0);
	applied = tree_snapshot(root);
	whole = tree_get(root, STATE);
	for (size_t n = 0; n + 1 < strlen(whole); n++) {
		char *part = strndup(whole, n);
		unsigned lines = 1;

		for (const char *at = part; (at = strchr(at, '\n')); at++)
			lines++;
		tree_put(root, STATE, part);
		last_error[0] = '\0';
		assert_int_equal(undo(root, false), 1);
		snprintf(name, sizeof(name), "%s" STATE ":", root);
		assert_non_null(strstr(last_error, name));
		snprintf(line, sizeof(line), ".json:%u:", lines);
		assert_non_null(strstr(last_error, line));
		free(part);
	}
	snprintf(longer, sizeof(longer), "%s{", whole);
	tree_put(root, STATE, longer);
	assert_int_equal(undo(root, false), 1);
	assert_non_null(strstr(last_error, "end of file expected"));
	tree_put(root, STATE, whole);
	assert_tree(root, applied);
	assert_int_equal(undo(root, false), 0);
	assert_tree(root, before);
	free(whole);
	free(applied);
	release(root, before);
}

/* Each byte another one: refused, or read; never a crash or a path outside. */
static void a_byte_that_changed_does_no_harm(void **state)
{
	static const char bytes[] = "\"\\x\n";
	char *before, *root = fresh(&before), *whole;
	struct tune_options o = options(root, NULL);

	(void)state;
	o.dry_run = true;
	assert_int_equal(apply(root, "swap,thp"), 0);
	whole = tree_get(root, STATE);
	for (size_t n = 0; whole[n]; n++) {
		char good = whole[n];

		for (size_t i = 0; i + 1 < sizeof(bytes); i++) {
			whole[n] = bytes[i];
			tree_put(root, STATE, whole);
			tune_undo_main(&o, nowhere);
		}
		whole[n] = good;
	}
	free(whole);
	release(root, before);
}

static void a_state_file_may_not_lead_elsewhere(void **state)
{
	static const char *const paths[] = { "/etc/passwd", "/sys/../etc/passwd", "/proc/1/mem",
					     "sys/x", "" };
	char *before, *root = fresh(&before), text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		snprintf(text, sizeof(text),
			 "{\"busbar tune\": 1, \"root\": \"%s\", \"changes\": [\n{\"setting\": \"swap\", \"progress\": \"done\", \"kind\": \"value\", \"path\": \"%s\", \"former\": \"1\", \"now\": \"2\"}\n]}\n",
			 root, paths[i]);
		tree_put(root, STATE, text);
		assert_int_equal(undo(root, true), 1);
		assert_non_null(strstr(last_error, "change 1: \"path\" does not lead"));
	}
	release(root, before);
}

static void a_state_file_of_others_is_not_used(void **state)
{
	char *before, *root = fresh(&before), path[512];

	(void)state;
	assert_int_equal(apply(root, "swap"), 0);
	snprintf(path, sizeof(path), "%s" STATE, root);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(undo(root, false), 1);
	assert_non_null(strstr(last_error, "other users"));
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(undo(root, false), 0);
	assert_tree(root, before);
	release(root, before);
}

static void the_changes_of_another_root_are_not_undone(void **state)
{
	char *before, *root = fresh(&before), path[512];
	struct tune_options o = options("/nowhere", NULL);

	(void)state;
	assert_int_equal(apply(root, "swap"), 0);
	snprintf(path, sizeof(path), "%s" STATE, root);
	o.state_file = path;
	assert_int_equal(tune_undo_main(&o, nowhere), 1);
	assert_non_null(strstr(last_error, "--root"));
	assert_int_equal(undo(root, false), 0);
	assert_tree(root, before);
	release(root, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_come_and_go_alone_and_together),
		cmocka_unit_test(each_fault_of_each_setting_can_be_undone),
		cmocka_unit_test(each_fault_among_all_settings_can_be_undone),
		cmocka_unit_test(a_partition_is_not_made_where_its_cgroup_failed),
		cmocka_unit_test(a_dry_run_changes_nothing),
		cmocka_unit_test(a_second_apply_is_refused),
		cmocka_unit_test(what_the_kernel_does_not_take_back_at_once_is_tried_again),
		cmocka_unit_test(what_others_changed_is_left_alone),
		cmocka_unit_test(what_others_set_back_counts_as_undone),
		cmocka_unit_test(a_file_that_is_gone_is_no_failure),
		cmocka_unit_test(a_cgroup_with_something_in_it_stays),
		cmocka_unit_test(a_damaged_state_file_is_refused),
		cmocka_unit_test(a_byte_that_changed_does_no_harm),
		cmocka_unit_test(a_state_file_may_not_lead_elsewhere),
		cmocka_unit_test(a_state_file_of_others_is_not_used),
		cmocka_unit_test(the_changes_of_another_root_are_not_undone),
	};
	int failed;

	/* State files that a test writes are like those of apply. */
	umask(022);
	nowhere = fopen("/dev/null", "we");
	log_set_sink(keep_error);
	failed = cmocka_run_group_tests_name("tune: undo", tests, NULL, NULL);
	fclose(nowhere);
	return failed;
}
