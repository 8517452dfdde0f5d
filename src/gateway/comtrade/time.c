/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dates of a record, and the time of each row: from its stamp, or by the rates.
 *
 * The standard prefers rates to stamps where there are both; recorders that
 * note a gap do so in the stamps alone. So stamps count while they agree with the
 * rate: a step may be longer (a gap), and any step may lead to the first row of the
 * next rate. From a row on whose stamp contradicts that, the rate counts.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/comtrade/comtrade.h"
#include "gateway/comtrade/fields.h"
#include "gateway/sample/time.h"
#include "util/clock.h"
#include "util/num.h"

/* Days from 1970-01-01 to a date of the Gregorian calendar. */
static int64_t days_from_civil(int64_t y, unsigned m, unsigned d)
{
	int64_t era;
	unsigned year_of_era, day_of_year;

	y -= m <= 2;
	era = (y >= 0 ? y : y - 399) / 400;
	year_of_era = (unsigned)(y - era * 400);
	day_of_year = (153 * (m > 2 ? m - 3 : m + 9) + 2) / 5 + d - 1;
	return era * 146097 + (int64_t)(year_of_era * 365 + year_of_era / 4 -
					year_of_era / 100 + day_of_year) - 719468;
}

static void civil_from_days(int64_t days, int64_t *y, unsigned *m, unsigned *d)
{
	int64_t era;
	unsigned day_of_era, year_of_era, day_of_year, part;

	days += 719468;
	era = (days >= 0 ? days : days - 146096) / 146097;
	day_of_era = (unsigned)(days - era * 146097);
	year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
		       day_of_era / 146096) / 365;
	day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 -
				    year_of_era / 100);
	part = (5 * day_of_year + 2) / 153;
	*d = day_of_year - (153 * part + 2) / 5 + 1;
	*m = part < 10 ? part + 3 : part - 9;
	*y = (int64_t)year_of_era + era * 400 + (*m <= 2);
}

/* Three numbers with `separators` between them. */
static bool parse_three(struct piece p, const char *separators, uint64_t v[3],
			const char **rest)
{
	for (int i = 0; i < 3; i++) {
		while (p.at < p.end && *p.at == ' ')
			p.at++;
		p.at = num_parse_u64(p.at, p.end, &v[i]);
		if (!p.at || v[i] > 9999)
			return false;
		if (i == 2)
			break;
		if (p.at == p.end || !strchr(separators, *p.at))
			return false;
		p.at++;
	}
	*rest = p.at;
	return true;
}

static unsigned days_of_month(uint64_t year, uint64_t month)
{
	static const uint8_t days[] = { 31, 28, 31, 30, 31, 30,
					31, 31, 30, 31, 30, 31 };
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}

static bool parse_date(struct piece p, bool month_first, int64_t *days)
{
	uint64_t v[3], day, month, year;
	const char *rest;

	if (!parse_three(p, "/-.", v, &rest) || rest != p.end)
		return false;
	day = v[month_first];
	month = v[!month_first];
	year = v[2];
	/* Nobody has 13 months: it was written the other way round. */
	if (month > 12 && day <= 12) {
		uint64_t other = month;

		month = day;
		day = other;
	}
	if (year < 100)
		year += year < 70 ? 2000 : 1900;
	if (month < 1 || month > 12 || day < 1 ||
	    day > days_of_month(year, month))
		return false;
	*days = days_from_civil((int64_t)year, (unsigned)month, (unsigned)day);
	return true;
}

static bool parse_clock(struct piece p, struct comtrade_time *t, int64_t *sec)
{
	uint64_t v[3];
	const char *rest, *end;
	uint32_t nsec = 0;

	if (!parse_three(p, ":", v, &rest) || v[0] > 24 || v[1] > 59 || v[2] > 60)
		return false;
	if (rest < p.end && *rest == '.') {
		end = num_parse_fraction(rest + 1, p.end, &nsec);
		if (!end)
			end = rest + 1; /* a point, and nothing */
		t->nanoseconds = end - rest > 1 + 6;
		rest = end;
	}
	*sec = (int64_t)(v[0] * 3600 + v[1] * 60 + v[2]);
	t->nsec = nsec;
	return rest == p.end;
}

bool comtrade_time_parse(const char *at, const char *end, bool month_first,
			 struct comtrade_time *t)
{
	struct piece f[2];
	struct comtrade_time made = { .known = true };
	int64_t days, sec;

	if (piece_split((struct piece){ at, end }, f, 2) != 2 ||
	    !parse_date(f[0], month_first, &days) ||
	    !parse_clock(f[1], &made, &sec))
		return false;
	made.sec = days * 86400 + sec;
	*t = made;
	return true;
}

void comtrade_time_print(char *to, const struct comtrade_time *t)
{
	int64_t days = t->sec / 86400, sec = t->sec % 86400, year;
	unsigned month, day;
	int n;

	if (sec < 0) {
		sec += 86400;
		days--;
	}
	civil_from_days(days, &year, &month, &day);
	n = snprintf(to, 40, "%02u/%02u/%04u,%02u:%02u:%02u.", day, month,
		     (unsigned)(year < 0 || year > 9999 ? 0 : year),
		     (unsigned)(sec / 3600), (unsigned)(sec / 60 % 60),
		     (unsigned)(sec % 60));
	if (t->nanoseconds)
		snprintf(to + n, 40 - (size_t)n, "%09u", t->nsec % 1000000000u);
	else
		snprintf(to + n, 40 - (size_t)n, "%06u",
			 t->nsec % 1000000000u / 1000);
}

int64_t comtrade_time_ns(const struct comtrade_cfg *c,
			 const struct comtrade_time *t)
{
	/* Years 0 to 9999 fit after a cut at those that nanoseconds can count. */
	int64_t sec = t->sec - (c->has_zone ? c->zone_s : 0);

	if (sec > INT64_MAX / 2 / (int64_t)NSEC_PER_SEC)
		sec = INT64_MAX / 2 / (int64_t)NSEC_PER_SEC;
	if (sec < INT64_MIN / 2 / (int64_t)NSEC_PER_SEC)
		sec = INT64_MIN / 2 / (int64_t)NSEC_PER_SEC;
	return sec * (int64_t)NSEC_PER_SEC + t->nsec;
}

struct comtrade_time comtrade_time_from_ns(int64_t ns, bool nanoseconds)
{
	int64_t sec = ns / (int64_t)NSEC_PER_SEC, rest = ns % (int64_t)NSEC_PER_SEC;

	if (rest < 0) {
		sec--;
		rest += (int64_t)NSEC_PER_SEC;
	}
	return (struct comtrade_time){
		.known = true,
		.nanoseconds = nanoseconds,
		.sec = sec,
		.nsec = (uint32_t)rest,
	};
}

/* A file may hold any number. */
static int64_t to_ns(long double v)
{
	const long double most = 4e18L;

	return v > most ? (int64_t)most : v < -most ? (int64_t)-most :
	       v == v ? llroundl(v) : 0;
}

static int64_t wrapping_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

void comtrade_clock_init(struct comtrade_clock *k, const struct comtrade_cfg *c,
			 enum comtrade_clock_mode mode)
{
	*k = (struct comtrade_clock){ .cfg = c, .mode = mode };
}

static bool has_rate(const struct comtrade_clock *k)
{
	return k->segment < k->cfg->rate_count &&
	       k->cfg->rates[k->segment].hz > 0;
}

/* Not rounded: the next segments add to it. */
static long double time_in_segment(const struct comtrade_clock *k)
{
	double hz = k->cfg->rates[k->segment].hz;
	/* The first row of all is at zero, not one interval behind it. */
	uint64_t steps = k->row - k->segment_row + (k->segment_row > 0);

	return k->segment_ns + (long double)steps * 1e9L / hz;
}

/*
 * Time of the next row by the rates. The interval before a row has the rate of
 * its segment; the last rate goes on behind the last segment.
 */
static bool nominal_time(struct comtrade_clock *k, int64_t *ns)
{
	const struct comtrade_cfg *c = k->cfg;

	while (k->segment + 1 < c->rate_count &&
	       k->row >= c->rates[k->segment].end) {
		struct comtrade_clock before = *k;

		if (k->row > k->segment_row && has_rate(k)) {
			before.row = k->row - 1;
			k->segment_ns = time_in_segment(&before);
		}
		k->segment++;
		k->segment_row = k->row;
	}
	if (!has_rate(k))
		return false;
	*ns = to_ns(time_in_segment(k));
	return true;
}

/* Without the wraps of 32 bits. */
static int64_t whole_stamp(struct comtrade_clock *k,
			   const struct comtrade_row *row)
{
	uint32_t raw = (uint32_t)row->stamp;
	int64_t step;

	if (!row->wraps)
		return row->stamp;
	if (k->row == 0) {
		/* Before the trigger: no record begins half an hour late. */
		k->stamp = (int32_t)raw;
	} else {
		/* Back by more than half the range is forward over its end. */
		step = (int64_t)raw - (int64_t)k->raw;
		if (step < -(INT64_C(1) << 31))
			step += INT64_C(1) << 32;
		k->stamp = wrapping_add(k->stamp, step);
	}
	k->raw = raw;
	return k->stamp;
}

/* Nanoseconds. */
static double unit_of(const struct comtrade_cfg *c)
{
	bool fine = c->start.nanoseconds || c->trigger.nanoseconds;

	return (fine ? 1 : 1000) * c->time_multiplier;
}

static int64_t stamp_time(struct comtrade_clock *k, const struct comtrade_row *row)
{
	double unit = unit_of(k->cfg);
	int64_t stamp = whole_stamp(k, row), whole = (int64_t)unit, ns;

	if ((double)whole == unit && row->fraction == 0 &&
	    !__builtin_mul_overflow(stamp, whole, &ns))
		return ns;
	return to_ns(((long double)stamp + row->fraction) * unit);
}

/* Three odd steps in a row are no gaps, but stamps of another rate or unit. */
#define ODD_STEPS 3

/*
 * Does the stamp of a row contradict the rate? `step` is the time since the row before by the
 * stamps, `interval` by the rate; `apart` is the difference of both clocks now. If the unit of the
 * stamps is longer than the interval, there are steps of zero.
 */
static bool contradicts(struct comtrade_clock *k, int64_t step, int64_t interval,
			int64_t apart, double unit_ns)
{
	bool odd = step < interval / 2 || (double)step > 1.5 * (double)interval + unit_ns;

	if (k->row == 1)
		return odd;
	k->odd_steps = odd && (double)llabs(apart) > unit_ns ? k->odd_steps + 1 : 0;
	return k->odd_steps == ODD_STEPS ||
	       (k->odd_steps && step < interval / 10);
}

/* Compares with the row before; the first row of a rate may come at any time. */
static void compare(struct comtrade_clock *k, int64_t stamp, int64_t nominal, bool first)
{
	int64_t step = sample_time_sum_ns(stamp, -k->last_ns);
	int64_t interval = sample_time_sum_ns(nominal, -k->last_nominal_ns);
	int64_t apart = sample_time_sum_ns(sample_time_sum_ns(stamp, -nominal),
					   -k->offset_ns);

	if (first) {
		k->odd_steps = 0;
		return;
	}
	k->by_rate = contradicts(k, step, interval, apart, unit_of(k->cfg));
	k->odd.row = k->row + 1;
	k->odd.hz = k->cfg->rates[k->segment].hz;
	k->odd.stamp_ns = stamp;
	k->odd.rate_ns = sample_time_sum_ns(k->offset_ns, nominal);
}

bool comtrade_clock_next(struct comtrade_clock *k,
			 const struct comtrade_row *row, int64_t *ns)
{
	unsigned segment = k->segment;
	int64_t nominal = 0, stamp;
	bool rated = nominal_time(k, &nominal), stamped = false;

	if (k->mode != COMTRADE_CLOCK_RATE && !k->by_rate && row->has_stamp) {
		stamp = stamp_time(k, row);
		if (k->mode == COMTRADE_CLOCK_AUTO && k->row > 0 && rated && k->stamped)
			compare(k, stamp, nominal, k->segment != segment);
		stamped = !k->by_rate;
		if (stamped)
			*ns = stamp;
		/* While steps are odd, the rate goes on from the last that was not. */
		if (stamped && rated && !k->odd_steps)
			k->offset_ns = sample_time_sum_ns(stamp, -nominal);
	}
	if (!stamped && rated)
		*ns = sample_time_sum_ns(k->offset_ns, nominal);
	k->row++;
	k->stamped = stamped;
	k->last_nominal_ns = nominal;
	if (!stamped && !rated)
		return false;
	k->last_ns = *ns;
	return true;
}
