/* SPDX-License-Identifier: BSD-2-Clause */
/* The processors' clocks and their sleep: cpufreq and cpuidle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tune/setting.h"

#define CPUFREQ "/sys/devices/system/cpu/cpufreq"
/* A state that takes longer to leave delays a sample noticeably. */
#define DEEP_US 10

static const char *no_cpufreq(const struct tune_look *l)
{
	return l->host->virtual ?
	       "not shown: the hypervisor sets the clock" :
	       "not shown: the firmware sets the clock, or no cpufreq driver is loaded";
}

/*
 * Looks at FILE of each policy, which should be `wanted`. Returns the number of policies that
 * have the file; *others has another value, the first of which is in `other`.
 */
static size_t look_policies(struct tune_look *l, const char *file, const char *wanted,
			    size_t *others, char *other, size_t size)
{
	size_t count, there = 0;
	int *policies;

	*others = 0;
	look_failed(l, tune_tree_numbers(l->tree, CPUFREQ, "policy", &policies, &count));
	for (size_t i = 0; i < count; i++) {
		char path[128], line[64];

		snprintf(path, sizeof(path), CPUFREQ "/policy%d/%s", policies[i], file);
		if (tune_tree_line(l->tree, path, line, sizeof(line)))
			continue;
		there++;
		if (strcmp(line, wanted) && !(*others)++)
			snprintf(other, size, "%s", line);
	}
	free(policies);
	return there;
}

/* Is the file there? */
static bool look_words(struct tune_look *l, const char *file)
{
	const char *wanted = "performance";
	char other[64];
	size_t others, there = look_policies(l, file, wanted, &others, other, sizeof(other));

	if (!there) {
		look_absent(l, "%s", no_cpufreq(l));
		return false;
	}
	if (!others) {
		look_today(l, "%s", wanted);
		return true;
	}
	look_today(l, "%s on %zu of %zu clock domains", other, others, there);
	look_better(l, "%s", wanted);
	return true;
}

static void look_governor(struct tune_look *l)
{
	char available[256];
	int err = tune_tree_line(l->tree, CPUFREQ "/policy0/scaling_available_governors",
				 available, sizeof(available));

	if (!err && !tune_has_word(available, "performance", TUNE_BLANKS)) {
		look_today(l, "%s", available);
		look_limit(l, "the driver offers no governor 'performance', only: %.200s",
			   available);
		return;
	}
	if (look_words(l, "scaling_governor"))
		look_want(l, "cpu", "governor", "performance");
}

static void look_energy(struct tune_look *l)
{
	if (look_words(l, "energy_performance_preference"))
		look_want(l, "cpu", "energy_performance_preference", "performance");
}

/* The path of the file of a policy, and its number. 0 or a negative errno. */
static int policy_number(const struct tune_tree *t, int policy, const char *file, char path[128],
			 long long *n)
{
	snprintf(path, 128, CPUFREQ "/policy%d/%s", policy, file);
	return tune_tree_number(t, path, n);
}

/* The lowest clock is to be the highest that is allowed. */
static void look_frequency(struct tune_look *l)
{
	long long low = 0, high = 0, most = 0;
	size_t count, lower = 0;
	int *policies;

	look_failed(l, tune_tree_numbers(l->tree, CPUFREQ, "policy", &policies, &count));
	for (size_t i = 0; i < count; i++) {
		char path[128], wanted[32];
		long long min, max, hardware;

		if (policy_number(l->tree, policies[i], "cpuinfo_max_freq", path, &hardware) ||
		    policy_number(l->tree, policies[i], "scaling_max_freq", path, &max) ||
		    policy_number(l->tree, policies[i], "scaling_min_freq", path, &min))
			continue;
		low = !most || min < low ? min : low;
		high = !most || max < high ? max : high;
		most = hardware > most ? hardware : most;
		snprintf(wanted, sizeof(wanted), "%lld", max);
		look_want_file(l, path, wanted);
		lower += min < max;
	}
	free(policies);
	if (!most) {
		look_absent(l, "%s", no_cpufreq(l));
		return;
	}
	look_today(l, "%lld to %lld MHz, the hardware does %lld", low / 1000, high / 1000,
		   most / 1000);
	if (high < most)
		look_limit(l, "the highest clock is limited to %lld of %lld MHz: by the firmware, by heat, or by scaling_max_freq",
			   high / 1000, most / 1000);
	if (lower)
		look_better(l, "always %lld MHz", high / 1000);
}

static void look_turbo(struct tune_look *l)
{
	long long value;

	if (!tune_tree_number(l->tree, "/sys/devices/system/cpu/intel_pstate/no_turbo", &value))
		look_today(l, "%s", value ? "off" : "on");
	else if (!tune_tree_number(l->tree, CPUFREQ "/boost", &value))
		look_today(l, "%s", value ? "on" : "off");
	else
		look_absent(l, "%s", no_cpufreq(l));
}

static void state_file(char *to, size_t size, int cpu, int state, const char *file)
{
	snprintf(to, size, "/sys/devices/system/cpu/cpu%d/cpuidle/state%d/%s", cpu, state, file);
}

/* Wants the deep states of a processor off; returns how many are on. */
static unsigned look_idle_states(struct tune_look *l, int cpu, char *deepest, size_t size,
				 long long *longest)
{
	char dir[96], path[128];
	size_t count;
	unsigned on = 0;
	int *states;

	snprintf(dir, sizeof(dir), "/sys/devices/system/cpu/cpu%d/cpuidle", cpu);
	look_failed(l, tune_tree_numbers(l->tree, dir, "state", &states, &count));
	for (size_t i = 0; i < count; i++) {
		long long latency, disabled;

		state_file(path, sizeof(path), cpu, states[i], "latency");
		if (tune_tree_number(l->tree, path, &latency))
			continue;
		state_file(path, sizeof(path), cpu, states[i], "disable");
		if (tune_tree_number(l->tree, path, &disabled))
			continue;
		if (latency > DEEP_US) {
			on += !disabled;
			look_want_file(l, path, "1");
		}
		if (!disabled && latency > *longest) {
			*longest = latency;
			state_file(dir, sizeof(dir), cpu, states[i], "name");
			tune_tree_line(l->tree, dir, deepest, size);
		}
	}
	free(states);
	return on;
}

static void look_cstates(struct tune_look *l)
{
	const struct tune_cpus *cpus = tune_cpus_count(&l->host->cpus) ?
				       &l->host->cpus : &l->host->online;
	char driver[64], deepest[64] = "?";
	long long longest = -1;
	unsigned on = 0;

	for (int cpu = 0; cpu < TUNE_CPUS_MAX; cpu++)
		if (tune_cpus_has(cpus, cpu))
			on += look_idle_states(l, cpu, deepest, sizeof(deepest), &longest);
	tune_tree_line(l->tree, "/sys/devices/system/cpu/cpuidle/current_driver", driver,
		       sizeof(driver));
	if (longest < 0) {
		look_absent(l, "no idle states are shown (driver %s)", driver[0] ? driver : "none");
		return;
	}
	look_today(l, "deepest state that is on: %s, %lld us to leave (driver %s)", deepest,
		   longest, driver);
	if (on)
		look_better(l, "measure first (below); where it helps: 'busbar tune hold', or apply --only cstates");
	else if (l->host->virtual)
		look_limit(l, "an idle processor goes back to the hypervisor: how long it takes to return is the hypervisor's matter (measured below)");
}

const struct tune_setting tune_settings_clock[] = {
	{ .name = "energy", .look = look_energy, .applies = true,
	  .why = "The preference for saving energy delays the rise of the clock after a pause." },
	{ .name = "governor", .look = look_governor, .applies = true,
	  .why = "A clock that falls between two steps makes the next one late." },
	{ .name = "frequency", .look = look_frequency, .applies = true,
	  .why = "With a lowest clock equal to the highest, latencies do not depend on the load before." },
	{ .name = "turbo", .look = look_turbo,
	  .why = "On is faster, off is more even, because then the clock of one core does not depend on the others; neither is wrong." },
	{ .name = "cstates", .look = look_cstates, .applies = true, .asked_only = true,
	  .why = "Waking from a deep idle state takes time; but on some machines busy cores are slower when the others may not sleep." },
	{ .name = NULL },
};
