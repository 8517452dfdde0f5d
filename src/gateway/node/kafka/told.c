/* SPDX-License-Identifier: BSD-2-Clause */
/* What librdkafka tells: errors, delivery reports, changes of a group. */
#define LOG_ROOM "gateway/kafka"
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "gateway/node/kafka/kafka.h"
#include "util/log.h"

/* The library gives no reason for a certificate that it refuses. Returns the error of OpenSSL's
 * check as its text in `why`, and in the node. */
int kafka_on_certificate(rd_kafka_t *rk, const char *broker, int32_t id, int *error, int depth,
			 const char *certificate, size_t size, char *why, size_t why_size,
			 void *arg)
{
	struct kafka_node *m = arg;

	if (!*error)
		return 1;
	atomic_store(&m->distrust, *error);
	snprintf(why, why_size, "%s", X509_verify_cert_error_string(*error));
	return 0;
}

/* The library adds how long the attempt took: the same reason would be said each time. */
static int text_len(const char *reason)
{
	const char *took = strstr(reason, " (after ");

	return (int)(took ? (size_t)(took - reason) : strlen(reason));
}

/* What TLS says of a handshake: the library's text has numbers of OpenSSL and advice that often is
 * not to the point. The text of a handshake that fails at its first step consists of the numbers
 * and the reason. True: it is in last_error. */
static bool note_tls(struct kafka_node *m, const char *reason)
{
	static const char start[] = "SSL handshake failed: ";
	const char *said = strstr(reason, "SSL routines:"), *tls = strstr(reason, start);
	int distrust = atomic_load(&m->distrust);

	if (!tls && said)
		tls = strstr(reason, "error:");
	if (!tls)
		return false;
	/* routines:FUNCTION:REASON, without a function since OpenSSL 3. */
	said = said ? strchr(said + strlen("SSL routines:"), ':') : NULL;
	said = said ? said + 1 : tls + strlen(start);
	if (distrust && strstr(tls, "certificate verify failed"))
		said = X509_verify_cert_error_string(distrust);
	said = outside_tls_reason(said);
	snprintf(m->last_error, sizeof(m->last_error), "%.*sTLS: %.*s", (int)(tls - reason), reason,
		 text_len(said), said);
	return true;
}

void kafka_note_error(struct kafka_node *m, const char *reason)
{
	if (!note_tls(m, reason))
		snprintf(m->last_error, sizeof(m->last_error), "%.*s", text_len(reason), reason);
}

void kafka_on_error(rd_kafka_t *rk, int err, const char *reason, void *arg)
{
	struct kafka_node *m = arg;
	bool produces = rk == m->producer.rk;
	char fatal[200];

	switch (err) {
	case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
		/* The reason has come before. */
		(produces ? &m->producer : &m->consumer)->down = true;
		return;
	case RD_KAFKA_RESP_ERR__FATAL:
		rd_kafka_fatal_error(rk, fatal, sizeof(fatal));
		kafka_note_error(m, fatal);
		m->fatal = m->fatal || produces;
		return;
	default:
		kafka_note_error(m, reason);
		m->disturbed = m->disturbed || produces;
		log_debug("node %s: %s: %s", m->outside.node->name, rd_kafka_err2name(err), reason);
	}
}

void kafka_on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *arg)
{
	struct kafka_node *m = arg;
	uint64_t tag = (uintptr_t)message->_private;

	if (m->silent || m->fatal)
		return;
	if (message->err)
		outside_reject(&m->outside, tag, rd_kafka_err2str(message->err));
	else
		outside_confirm(&m->outside, tag, false);
}

void kafka_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err,
			rd_kafka_topic_partition_list_t *partitions, void *arg)
{
	struct kafka_node *m = arg;
	bool given = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
	const rd_kafka_topic_partition_list_t *all = given ? partitions : NULL;
	rd_kafka_topic_partition_list_t *now;

	if (strcmp(rd_kafka_rebalance_protocol(rk), "COOPERATIVE"))
		rd_kafka_assign(rk, all);
	else
		rd_kafka_error_destroy(given ? rd_kafka_incremental_assign(rk, partitions) :
					       rd_kafka_incremental_unassign(rk, partitions));
	m->assigned = given;
	if (given)
		node_figure_add(m->outside.node, KAFKA_ASSIGNMENTS, 1);
	if (rd_kafka_assignment(rk, &now))
		return;
	node_figure_set(m->outside.node, KAFKA_PARTITIONS, (uint64_t)now->cnt);
	rd_kafka_topic_partition_list_destroy(now);
}
