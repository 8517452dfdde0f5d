/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that do not learn that a page is there (5.2, figure 5.9; appendix A, figure A.2). */
#include "bench/odp/lab.h"

/* 32 bytes on each of 128 queue pairs are one page. The fault takes 1 ms there. */
#define COMMON "num_qps=128 size=32 paged=client ack_code=18 fault=1000000 list=on "
#define FAULT_NS 1e6

#define PAGE_OPS 128
/* Far more than a READ takes, and less than until one is sent again. */
#define LATE_NS 3e5

/* Requests of the first page that were not done soon after it was there. */
static double stale(const struct lab *l, size_t point)
{
	const json_t *trial = json_array_get(json_array_get(l->results, point), 0);
	double count = 0;

	for (size_t i = 0; i < PAGE_OPS; i++) {
		double posted = json_number_value(
			json_array_get(json_object_get(trial, "posted_ns"), i));
		double done = json_number_value(
			json_array_get(json_object_get(trial, "done_ns"), i));

		count += done > (posted > FAULT_NS ? posted : FAULT_NS) + LATE_NS;
	}
	return count;
}

static double ms_of(const struct lab *l, size_t point)
{
	return lab_value(l, point, "time_ns") / 1e6;
}

static void add_page(struct lab *l, size_t point)
{
	double count = stale(l, point), ms = ms_of(l, point);

	lab_row(l, &(struct lab_row){ "5.9", lab_if(lab_within(count, 20, 40)),
				      "30 (the model is fitted to this)", count, "" },
		"128 READs, 33 us apart: not done when the page is there", "%.0f", count);
	lab_row(l, &(struct lab_row){ "5.9", lab_if(lab_within(ms, 4, 8)),
				      "6 ms (the model is fitted to this)", ms, "ms" },
		"the same: the last is done", "%.1f ms", ms);
}

int lab_stale(struct lab *l)
{
	size_t page = lab_point(l, COMMON "num_ops=128 interval=33000");
	size_t dense = lab_point(l, COMMON "num_ops=128 interval=1000");
	size_t pages = lab_point(l, COMMON "num_ops=512 interval=1000");
	size_t x6 = lab_point(l, COMMON "num_ops=128 interval=1000 profile=connectx6");
	size_t x6_two = lab_point(l, COMMON "num_ops=256 interval=1000 profile=connectx6");
	size_t x6_four = lab_point(l, COMMON "num_ops=512 interval=1000 profile=connectx6");
	int ret = lab_run(l);

	if (ret)
		return ret;
	add_page(l, page);
	lab_row(l, &(struct lab_row){ "-", LAB_NOT_IN_SOURCE, "", ms_of(l, dense), "ms" },
		"128 READs, 1 us apart: the last is done", "%.1f ms", ms_of(l, dense));
	lab_row(l, &(struct lab_row){ "5.9", lab_if(ms_of(l, pages) > 4 * ms_of(l, page)),
				      "much longer than 128", ms_of(l, pages), "ms" },
		"512 READs: the last is done", "%.0f ms", ms_of(l, pages));
	lab_row(l, &(struct lab_row){ "A.2", lab_if(stale(l, x6) <= 0), "0", stale(l, x6), "" },
		"connectx6, 128 READs: not done when the page is there", "%.0f", stale(l, x6));
	lab_row(l, &(struct lab_row){ "A.2", lab_if(stale(l, x6_two) > 0), "some",
				      stale(l, x6_two), "" },
		"connectx6, 256 READs: of the first page likewise", "%.0f", stale(l, x6_two));
	lab_row(l, &(struct lab_row){ "A.2", lab_if(lab_within(ms_of(l, x6_four), 200, 400)),
				      "about 300 ms (the model is fitted to this)",
				      ms_of(l, x6_four), "ms" },
		"connectx6, 512 READs: the last is done", "%.0f ms", ms_of(l, x6_four));
	return 0;
}
