/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports: a thread of the node sends its own at random intervals, and takes those of the
 * peers, which tell of losses and set the sending rate.
 *
 * A report can be forged. Those that do not come from the host of out.address count as
 * foreign; those about a packet that was never sent, and those that come much more often
 * than reports are due, do not change the rate; a BYE only makes this node forget what it
 * has counted of a source of the same host.
 */
#define LOG_ROOM "gateway/rtp"
#include "gateway/node/rtp/rtp.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gateway/base/thread.h"
#include "gateway/node/rtp/rtcp_interval.h"
#include "gateway/plugin/stats.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/wakeup.h"

#define MEMBERS 64
#define RX_SIZE 4096
/* Packets taken before the thread rests for a millisecond, so that a flood of them costs
 * little. */
#define RX_BURST 64
#define REST_MS 1
/* Of UDP and IPv4, which count as part of a report's bandwidth. */
#define LOWER_HEADERS 28
/* A member that was silent for so many intervals is none any more. */
#define SILENT_INTERVALS 5
/* The shortest interval between reports of one member, which randomisation allows, is 0.41
 * times the mean, and half of that at first. */
#define SOONEST 0.2
#define LOG_PATH_MAX 512

/* Somebody who sends reports. */
struct rtcp_member {
	bool used;
	uint32_t ssrc;
	uint64_t heard_ns, taken_ns; /* taken: when its report last was */
	struct rtp_reporter reporter;
};

struct rtcp {
	pthread_t thread;
	bool running;
	int fd, wake_fd;
	struct socket_address remote;
	bool group;                  /* the remote is a multicast group */
	atomic_bool ending;
	char cname[RTCP_CNAME_MAX + 1];
	struct rtcp_interval interval;
	uint64_t last_ns, next_ns;   /* reports: the last and the next one */
	bool sent;
	struct rtcp_member members[MEMBERS];
	double loss;                 /* the worst since the rate last changed */
	uint64_t rated_ns;           /* when that was; 0: never */
	uint64_t reports;            /* that have been taken */
	FILE *log;
};

static uint64_t from_seconds(double s)
{
	return (uint64_t)(s * 1e9);
}

static uint64_t wait_ns(struct rtcp *t)
{
	return from_seconds(rtcp_interval_next(&t->interval, rtp_random() / 4294967296.0));
}

static void kick(struct rtp_node *r)
{
	if (r->rtcp)
		wakeup_post(r->rtcp->wake_fd);
}

void rtcp_note_collision(struct rtp_node *r, enum rtp_verdict v,
			const struct socket_address *from)
{
	char text[SOCKET_ADDRESS_MAX];

	if (v != RTP_DROP_COLLIDED) {
		node_figure_add(r->ends.node, RTP_FIGURE_LOOPED, 1);
		return;
	}
	node_figure_add(r->ends.node, RTP_FIGURE_COLLISIONS, 1);
	log_warn("%s: %s sends with the SSRC of this node, which goes on with another one",
		 r->ends.node->name, socket_address_print(from, text));
	kick(r);
}

/* ---- sending ---- */

static void send_compound(struct rtp_node *r, const struct rtcp_compound *c)
{
	struct rtcp *t = r->rtcp;
	uint8_t buf[RTCP_COMPOUND_MAX];
	size_t len = rtcp_encode(buf, c);

	if (sendto(t->fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL, &t->remote.sa,
		   t->remote.len) < 0) {
		log_debug("%s: a report is not sent: %s", r->ends.node->name, strerror(errno));
		return;
	}
	t->sent = true;
	rtcp_interval_size(&t->interval, (double)len + LOWER_HEADERS);
	node_figure_add(r->ends.node, RTP_FIGURE_RTCP_SENT, 1);
}

static void send_report(struct rtp_node *r, bool bye)
{
	struct rtcp *t = r->rtcp;
	struct rtcp_report reports[RTP_PEERS];
	struct rtcp_sender sender;
	struct rtcp_compound c = {
		.ssrc = rtp_session_ssrc(&r->session),
		.reports = reports,
		.cname = t->cname,
		.bye = bye,
	};

	t->interval.we_sent = rtp_session_sender(&r->session, &sender,
						 timespec_to_ns(clock_realtime()));
	if (t->interval.we_sent)
		c.sender = &sender;
	c.report_count = rtp_session_reports(&r->session, reports, clock_now_ns());
	send_compound(r, &c);
}

/* For the SSRC that a collision made this node give up. */
static void send_due_bye(struct rtp_node *r)
{
	struct rtcp_compound c = { .cname = r->rtcp->cname, .bye = true };
	bool due;

	spin_lock(&r->session.lock);
	due = r->session.bye_due;
	r->session.bye_due = false;
	c.ssrc = r->session.left_ssrc;
	spin_unlock(&r->session.lock);
	if (due)
		send_compound(r, &c);
}

/* Counts the members, and forgets those that were silent for long. */
static void count_members(struct rtp_node *r, uint64_t now)
{
	struct rtcp *t = r->rtcp;
	uint64_t interval_ns = from_seconds(MAX(rtcp_interval_mean(&t->interval),
						t->interval.min_s));
	unsigned members = 0, senders;

	for (unsigned i = 0; i < MEMBERS; i++) {
		struct rtcp_member *m = &t->members[i];

		if (m->used && now - m->heard_ns > SILENT_INTERVALS * interval_ns)
			m->used = false;
		members += m->used;
	}
	senders = rtp_session_senders(&r->session,
				      now > 2 * interval_ns ? now - 2 * interval_ns : 0);
	node_figure_set(r->ends.node, RTP_FIGURE_SOURCES, senders);
	t->interval.members = 1 + MAX(members, senders);
	t->interval.senders = senders + t->interval.we_sent;
}

/* Section 6.3.6: the interval is drawn again when it is over, because there may be more
 * members now. */
static void expire(struct rtp_node *r, uint64_t now)
{
	struct rtcp *t = r->rtcp;
	uint64_t due;

	count_members(r, now);
	due = t->last_ns + wait_ns(t);
	if (due > now) {
		t->next_ns = due;
		return;
	}
	send_report(r, false);
	t->interval.initial = false;
	t->last_ns = now;
	t->next_ns = now + wait_ns(t);
}

/* ---- receiving ---- */

static struct rtcp_member *member(struct rtcp *t, uint32_t ssrc, uint64_t now)
{
	struct rtcp_member *oldest = &t->members[0];

	for (unsigned i = 0; i < MEMBERS; i++) {
		struct rtcp_member *m = &t->members[i];

		if (m->used && m->ssrc == ssrc) {
			m->heard_ns = now;
			return m;
		}
		if (oldest->used && (!m->used || m->heard_ns < oldest->heard_ns))
			oldest = m;
	}
	*oldest = (struct rtcp_member){ .used = true, .ssrc = ssrc, .heard_ns = now };
	return oldest;
}

/* The rate changes at most once in the shortest interval, by the worst that was reported
 * meanwhile. */
static void set_rate(struct rtp_node *r, double loss, uint64_t now)
{
	struct rtcp *t = r->rtcp;
	struct rtp_rate *rate = &r->aimd.rate;
	double since_s = t->rated_ns ? (double)(now - t->rated_ns) / 1e9 : t->interval.min_s;

	t->loss = MAX(t->loss, loss);
	if (since_s < SOONEST * t->interval.min_s)
		return;
	rtp_rate_report(rate, t->loss, since_s);
	t->rated_ns = now;
	t->loss = 0;
	atomic_store_explicit(&r->step, rtp_rate_step(rate, rtp_throttle(r)),
			      memory_order_relaxed);
	node_figure_set(r->ends.node, RTP_FIGURE_RATE, (uint64_t)(rate->rate + 0.5));
	log_debug("%s: loss %g, sending rate %g", r->ends.node->name, loss, rate->rate);
	if (t->log) {
		fprintf(t->log, "%ju\t%g\t%g\n", (uintmax_t)t->reports, loss, rate->rate);
		fflush(t->log);
	}
}

static void show_report(struct rtp_node *r, const struct rtcp_report *report)
{
	int64_t round_trip = rtcp_round_trip(report, rtcp_ntp_middle(rtcp_ntp_from_ns(
							    timespec_to_ns(clock_realtime()))));
	double jitter_s = report->jitter / (double)r->clock_rate;
	struct node *n = r->ends.node;

	node_figure_set(n, RTP_FIGURE_LOSS_FRACTION, report->fraction);
	node_figure_set(n, RTP_FIGURE_PKTS_LOST,
			report->lost > 0 ? (uint64_t)report->lost : 0);
	node_figure_set(n, RTP_FIGURE_JITTER, (uint64_t)(jitter_s * 1e6));
	if (round_trip >= 0)
		node_figure_set(n, RTP_FIGURE_RTT, (uint64_t)(round_trip * 1000000 >> 16));
	if (!n->stats)
		return;
	node_stats_update(n->stats, STATS_RTP_LOSS_FRACTION, report->fraction / 256.0);
	node_stats_update(n->stats, STATS_RTP_PKTS_LOST, report->lost);
	node_stats_update(n->stats, STATS_RTP_JITTER, jitter_s);
}

/* A report about what this node sends. False: it is not taken. */
static bool take_report(struct rtp_node *r, struct rtcp_member *m,
			const struct rtcp_report *report, uint64_t now)
{
	struct rtcp *t = r->rtcp;

	if (!rtp_session_has_sent(&r->session, report->highest))
		return false;
	/* A later one tells what this one would have told. */
	if (m->taken_ns && now - m->taken_ns < from_seconds(SOONEST * t->interval.min_s))
		return false;
	m->taken_ns = now;
	t->reports++;
	show_report(r, report);
	set_rate(r, rtp_reporter_loss(&m->reporter, report), now);
	return true;
}

static void take_reports(struct rtp_node *r, const struct rtcp_part *part,
			 const struct rtp_arrival *a)
{
	uint32_t own = rtp_session_ssrc(&r->session);
	struct rtcp_member *m;

	if (part->ssrc == own && !r->session.to_itself) {
		rtcp_note_collision(r, rtp_session_collide(&r->session, a->from, a->now_ns),
				   a->from);
		return;
	}
	m = member(r->rtcp, part->ssrc, a->now_ns);
	if (part->type == RTCP_SR)
		rtp_session_sender_report(&r->session, part->ssrc, &part->sender, a);
	for (unsigned i = 0; i < part->count; i++) {
		struct rtcp_report report = rtcp_part_report(part, i);

		if (report.ssrc == own && !take_report(r, m, &report, a->now_ns))
			node_figure_add(r->ends.node, RTP_FIGURE_RTCP_IGNORED, 1);
	}
}

static void take_bye(struct rtp_node *r, uint32_t ssrc, const struct socket_address *from)
{
	char text[SOCKET_ADDRESS_MAX];

	for (unsigned i = 0; i < MEMBERS; i++)
		if (r->rtcp->members[i].ssrc == ssrc)
			r->rtcp->members[i].used = false;
	if (rtp_session_bye(&r->session, ssrc, from))
		log_info("%s: the source 0x%08x at %s has ended", r->ends.node->name, ssrc,
			 socket_address_print(from, text));
}

static void take_compound(struct rtp_node *r, const uint8_t *data, size_t len,
			  const struct rtp_arrival *a)
{
	struct rtcp *t = r->rtcp;
	struct rtcp_part part;
	const char *why;
	size_t at = 0;

	if (rtcp_check(data, len, &why)) {
		fault_note(&r->ends.faults, FAULT_MALFORMED, 1, "RTCP: %s", why);
		return;
	}
	node_figure_add(r->ends.node, RTP_FIGURE_RTCP_RECEIVED, 1);
	rtcp_interval_size(&t->interval, (double)len + LOWER_HEADERS);
	while (rtcp_next(data, len, &at, &part)) {
		if (part.type == RTCP_SR || part.type == RTCP_RR)
			take_reports(r, &part, a);
		for (unsigned i = 0; part.type == RTCP_BYE && i < part.count; i++)
			take_bye(r, rtcp_part_bye(&part, i), a->from);
	}
	if (at < len)
		fault_note(&r->ends.faults, FAULT_MALFORMED, 1,
			   "RTCP: a packet is shorter than what it says to hold");
}

/* The number of datagrams. */
static unsigned receive(struct rtp_node *r)
{
	struct rtcp *t = r->rtcp;
	uint8_t buf[RX_SIZE];
	unsigned n;

	for (n = 0; n < RX_BURST; n++) {
		struct socket_address from = { .len = sizeof(from.storage) };
		const struct rtp_arrival a = { .from = &from, .now_ns = clock_now_ns() };
		ssize_t len = recvfrom(t->fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC,
				       &from.sa, &from.len);

		if (len < 0 && (errno == EINTR || errno == ECONNREFUSED))
			continue;
		if (len < 0)
			break;
		if (len > (ssize_t)sizeof(buf)) {
			fault_note(&r->ends.faults, FAULT_TRUNCATED, 1,
				   "RTCP: more than %u bytes", RX_SIZE);
			continue;
		}
		if (t->group || rtp_is_peer(r, &from, r->ends.verify_source ? 1 : -1))
			take_compound(r, buf, (size_t)len, &a);
	}
	return n;
}

/* ---- the thread ---- */

static void *run(void *arg)
{
	struct rtp_node *r = arg;
	struct rtcp *t = r->rtcp;
	struct pollfd fds[] = {
		{ .fd = t->wake_fd, .events = POLLIN },
		{ .fd = t->fd, .events = POLLIN },
	};

	while (!atomic_load(&t->ending)) {
		uint64_t now;

		wakeup_poll(fds, ARRAY_SIZE(fds), t->next_ns);
		if (receive(r) == RX_BURST)
			poll(fds, 1, REST_MS);
		send_due_bye(r);
		now = clock_now_ns();
		if (now >= t->next_ns)
			expire(r, now);
	}
	/* Section 6.3.7: who has sent nothing says no BYE. */
	if (t->sent || r->session.own.packets)
		send_report(r, true);
	return NULL;
}

static int open_log(struct rtp_node *r)
{
	char path[LOG_PATH_MAX];
	time_t now = time(NULL);
	struct tm tm;
	int err;

	if (!r->aimd.log)
		return 0;
	gmtime_r(&now, &tm);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* that is the point */
	if (!strftime(path, sizeof(path), r->aimd.log, &tm)) {
#pragma GCC diagnostic pop
		log_error("%s: aimd.log: the name is empty or too long", r->ends.node->name);
		return -ENAMETOOLONG;
	}
	r->rtcp->log = fopen(path, "we");
	if (!r->rtcp->log) {
		err = errno;
		log_error("%s: aimd.log: '%s': %s", r->ends.node->name, path, strerror(err));
		return -err;
	}
	fputs("# cnt\tfrac_loss\trate\n", r->rtcp->log);
	return 0;
}

static void make_cname(struct rtp_node *r)
{
	char host[128] = "";

	gethostname(host, sizeof(host) - 1);
	if (r->rtcp_settings.cname)
		snprintf(r->rtcp->cname, sizeof(r->rtcp->cname), "%s",
			 r->rtcp_settings.cname);
	else
		snprintf(r->rtcp->cname, sizeof(r->rtcp->cname), "%.100s-%08x@%s",
			 r->ends.node->name, rtp_random(), *host ? host : "localhost");
}

int rtcp_open(struct rtp_node *r)
{
	struct rtcp *t = calloc(1, sizeof(*t));
	uint64_t now = clock_now_ns();
	int ret;

	r->rtcp = t;
	if (!t)
		return -ENOMEM;
	t->fd = -1;
	t->wake_fd = wakeup_open_signal();
	if (t->wake_fd < 0) {
		ret = t->wake_fd;
		log_error("%s: no event descriptor: %s", r->ends.node->name, strerror(-ret));
		return ret;
	}
	ret = rtp_open_rtcp(r, &t->fd, &t->remote);
	if (!ret)
		ret = open_log(r);
	if (ret)
		return ret;
	t->group = socket_address_is_multicast(&t->remote);
	make_cname(r);
	t->interval = (struct rtcp_interval){
		.min_s = r->rtcp_settings.interval_s,
		.bandwidth = (double)r->rtcp_settings.bandwidth / 8,
		.average_size = LOWER_HEADERS + 100,
		.members = 1,
		.initial = true,
	};
	rtp_rate_begin(&r->aimd.rate, r->aimd.rate_init);
	atomic_store(&r->step, rtp_rate_step(&r->aimd.rate, rtp_throttle(r)));
	node_figure_set(r->ends.node, RTP_FIGURE_RATE, (uint64_t)(r->aimd.rate.rate + 0.5));
	t->last_ns = now;
	t->next_ns = now + wait_ns(t);
	ret = thread_start(&t->thread, "rtcp", THREAD_AS_CALLER, run, r);
	if (ret)
		log_error("%s: no thread for reports: %s", r->ends.node->name, strerror(-ret));
	t->running = !ret;
	return ret;
}

void rtcp_close(struct rtp_node *r)
{
	struct rtcp *t = r->rtcp;

	if (!t)
		return;
	atomic_store(&t->ending, true);
	if (t->running) {
		kick(r);
		pthread_join(t->thread, NULL);
	}
	if (t->fd >= 0)
		close(t->fd);
	if (t->wake_fd >= 0)
		close(t->wake_fd);
	if (t->log)
		fclose(t->log);
	free(t);
	r->rtcp = NULL;
}
