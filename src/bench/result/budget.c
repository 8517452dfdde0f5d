/* SPDX-License-Identifier: BSD-2-Clause */
/* See budget.h. */
#include "bench/result/budget.h"

#include <math.h>
#include <string.h>

#include "bench/result/number.h"

bool budget_is_part(const char *name)
{
	return strchr(name, '.') != NULL;
}

bool budget_is_part_of(const char *part, const char *whole)
{
	size_t n = strlen(whole);

	return !strncmp(part, whole, n) && part[n] == '.';
}

/* Sets sum and rest of what was filled in. */
static void add_up(struct budget *b)
{
	b->sum_ns = 0;
	for (size_t i = 0; i < b->count; i++)
		b->sum_ns += b->parts[i].middle;
	b->rest_ns = b->whole.middle - b->sum_ns;
}

double budget_share(const struct budget *b, double ns)
{
	return b->whole.middle > 0 ? 100 * ns / b->whole.middle : NAN;
}

static struct budget_part part_of(const json_t *latency)
{
	json_int_t count = json_integer_value(json_object_get(latency, "count"));

	return (struct budget_part){
		.label = text_of(latency, "label"),
		.count = count > 0 ? (size_t)count : 0,
		.p10 = number_of(latency, "p10"),
		.median = number_of(latency, "p50"),
		.p90 = number_of(latency, "p90"),
		.middle = number_of(latency, "middle"),
	};
}

bool budget_of(const json_t *latencies, const char *whole, struct budget *b)
{
	const char *name;
	json_t *latency;

	*b = (struct budget){ .whole = part_of(json_object_get(latencies, whole)) };
	json_object_foreach((json_t *)latencies, name, latency)
		if (budget_is_part_of(name, whole) && b->count < BUDGET_PARTS_MAX)
			b->parts[b->count++] = part_of(latency);
	add_up(b);
	return b->count > 0;
}

static void print_number(FILE *f, double value, int width, int decimals)
{
	if (isfinite(value))
		fprintf(f, "%*.*f", width, decimals, value);
	else
		fprintf(f, "%*s", width, "-");
}

static void print_part(FILE *f, const struct budget *b, const struct budget_part *p)
{
	fprintf(f, "  %-40.40s", p->label);
	if (p->count)
		fprintf(f, "%8zu", p->count);
	else
		fprintf(f, "%8s", "");
	print_number(f, p->p10, 9, 0);
	print_number(f, p->median, 9, 0);
	print_number(f, p->p90, 9, 0);
	print_number(f, p->middle, 9, 1);
	print_number(f, budget_share(b, p->middle), 8, 1);
	fputs(" %\n", f);
}

static void print_sum(FILE *f, const struct budget *b, const char *label, double ns)
{
	const struct budget_part p = { .label = label, .p10 = NAN, .median = NAN, .p90 = NAN,
				       .middle = ns };

	print_part(f, b, &p);
}

void budget_print(FILE *f, const json_t *latencies)
{
	const char *name;
	json_t *latency;
	struct budget b;

	json_object_foreach((json_t *)latencies, name, latency) {
		if (budget_is_part(name) || !budget_of(latencies, name, &b))
			continue;
		fprintf(f, "\n  Where the time goes [ns]: %s\n", name);
		fprintf(f, "  %-40s%8s%9s%9s%9s%9s%8s\n", "", "number", "10 %", "median",
			"90 %", "middle", "of all");
		for (size_t i = 0; i < b.count; i++)
			print_part(f, &b, &b.parts[i]);
		print_sum(f, &b, "sum of the parts", b.sum_ns);
		print_part(f, &b, &b.whole);
		print_sum(f, &b, "not explained", b.rest_ns);
	}
}
