/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `digest`: a line with a cryptographic digest for each frame, so that two
 * places can find out which frames differ without comparing the samples. Frames
 * are those that the hook `frame` marks.
 *
 * A line is: origin-sequence of the first sample, of the last one, algorithm,
 * digest in hexadecimal. What is digested of a sample, in little-endian order:
 * origin seconds and nanoseconds and the sequence number, 8 bytes each, and the
 * values by type (boolean 1 byte, integer 8, float 8, complex 4 + 4); each part
 * only if the sample has it, every NaN as the same one.
 */
#define LOG_ROOM "gateway/hook"
#include "gateway/hook/part/output.h"
#include "gateway/hook/part/select.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "gateway/sample/time.h"
#include "util/log.h"
#include "util/nearest.h"

struct place {
	struct timespec origin;
	uint64_t sequence;
};

struct digest {
	const char *uri, *algorithm;

	const EVP_MD *md;
	EVP_MD_CTX *context;
	struct hook_output *to;
	atomic_bool hurry;
	bool in_frame, failed;
	uint64_t samples; /* of the frame, or outside of any */
	struct place first, last;
};

extern const struct hook_type hook_digest;

static const struct config_key digest_keys[] = {
	{ "uri", CONFIG_STRING, offsetof(struct digest, uri), .required = true,
	  .help = "File to write to" },
	{ "algorithm", CONFIG_STRING, offsetof(struct digest, algorithm),
	  "sha256", .help = "Digest that OpenSSL knows" },
};

static int digest_parse(struct hook *h, struct config *c, json_t *cfg)
{
	static const char *const usual[] = { "md5", "sha1", "sha224", "sha256",
					     "sha384", "sha512", "sha3-256",
					     "sha3-512" };
	struct digest *d = h->private_data;
	struct nearest near = NEAREST(d->algorithm);
	char hint[100];

	d->md = EVP_get_digestbyname(d->algorithm);
	if (d->md)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		nearest_try(&near, usual[i]);
	nearest_hint(&near, hint, sizeof(hint));
	config_fail(c, h->cfg, "algorithm",
		    "OpenSSL knows no digest '%.40s'%s", d->algorithm,
		    *hint ? hint : "; sha256 and sha512 are usual");
	return -EINVAL;
}

static int digest_start(struct hook *h)
{
	struct digest *d = h->private_data;
	int ret;

	d->in_frame = d->failed = false;
	atomic_store(&d->hurry, false);
	d->samples = 0;
	d->context = EVP_MD_CTX_new();
	if (!d->context)
		return -ENOMEM;
	if (!EVP_DigestInit_ex(d->context, d->md, NULL)) {
		log_error("%s: OpenSSL offers no %s here", h->owner,
			  d->algorithm);
		ret = -ENOTSUP;
		goto err_context;
	}
	d->to = hook_output_create(d->uri);
	if (!d->to) {
		ret = -errno;
		log_error("%s: hook digest cannot write %s: %s", h->owner,
			  d->uri, strerror(-ret));
		goto err_context;
	}
	return 0;
err_context:
	EVP_MD_CTX_free(d->context);
	d->context = NULL;
	return ret;
}

/* Ends the frame: one line. */
static void emit(struct digest *d)
{
	unsigned char value[EVP_MAX_MD_SIZE];
	char line[256 + 2 * EVP_MAX_MD_SIZE], first[SAMPLE_TIME_TEXT], last[SAMPLE_TIME_TEXT];
	unsigned len = 0;
	int n;

	if (!EVP_DigestFinal_ex(d->context, value, &len) ||
	    !EVP_DigestInit_ex(d->context, d->md, NULL)) {
		d->failed = true;
		return;
	}
	n = snprintf(line, 256, "%s-%" PRIu64 " %s-%" PRIu64 " %.80s ",
		     sample_time_print(first, d->first.origin), d->first.sequence,
		     sample_time_print(last, d->last.origin), d->last.sequence,
		     d->algorithm);
	for (unsigned i = 0; i < len; i++)
		n += sprintf(line + n, "%02X", value[i]);
	line[n++] = '\n';
	d->failed |= hook_output_put(d->to, "", line, (size_t)n) != 0;
}

static bool add(struct digest *d, const void *bytes, size_t len)
{
	return EVP_DigestUpdate(d->context, bytes, len) == 1;
}

static bool add_u64(struct digest *d, uint64_t v)
{
	v = htole64(v);
	return add(d, &v, sizeof(v));
}

static bool add_float(struct digest *d, float v)
{
	uint32_t bits;

	if (isnan(v))
		v = NAN;
	memcpy(&bits, &v, sizeof(bits));
	bits = htole32(bits);
	return add(d, &bits, sizeof(bits));
}

static bool add_value(struct digest *d, enum signal_type type,
		      const union signal_data *v)
{
	union signal_data copy = *v;
	uint8_t truth = v->i != 0;

	switch (type) {
	case SIGNAL_BOOLEAN:
		return add(d, &truth, 1);
	case SIGNAL_COMPLEX:
		return add_float(d, v->z.re) && add_float(d, v->z.im);
	case SIGNAL_FLOAT:
		if (isnan(v->f))
			copy.f = (double)NAN;
		break;
	case SIGNAL_INTEGER:
		break;
	}
	return add_u64(d, copy.bits);
}

static bool add_sample(struct hook *h, struct digest *d, const struct sample *s)
{
	bool ok = true;

	if (s->flags & SAMPLE_HAS_ORIGIN)
		ok = add_u64(d, (uint64_t)s->origin.tv_sec) &&
		     add_u64(d, (uint64_t)s->origin.tv_nsec);
	if (s->flags & SAMPLE_HAS_SEQUENCE)
		ok &= add_u64(d, s->sequence);
	for (unsigned i = 0; ok && s->flags & SAMPLE_HAS_DATA && i < s->length;
	     i++)
		ok = add_value(d, hook_value_type(h, s, i), &s->data[i]);
	return ok;
}

static enum hook_verdict digest_process(struct hook *h, struct sample **smp)
{
	struct digest *d = h->private_data;
	const struct sample *s = *smp;
	bool had_failed = d->failed;

	if (s->flags & SAMPLE_NEW_FRAME) {
		if (d->in_frame)
			emit(d);
		d->in_frame = true;
		d->samples = 0;
		d->first = (struct place){ s->origin, s->sequence };
	}
	d->samples++;
	if (!d->in_frame)
		return HOOK_OK;
	d->last = (struct place){ s->origin, s->sequence };
	d->failed |= !add_sample(h, d, s);
	if (unlikely(d->failed && !had_failed))
		log_error("%s: hook digest cannot go on with %s, its lines are not to be trusted",
			  h->owner, d->uri);
	return HOOK_OK;
}

static void digest_periodic(struct hook *h)
{
	struct digest *d = h->private_data;

	if (d->to)
		hook_output_flush(d->to);
}

static void digest_interrupt(struct hook *h)
{
	struct digest *d = h->private_data;

	if (d->to) {
		atomic_store(&d->hurry, true);
		hook_output_interrupt(d->to);
	}
}

static int digest_stop(struct hook *h)
{
	struct digest *d = h->private_data;
	size_t left;
	int err;

	/* Nobody knows whether the last frame is whole: two places that are ended
	 * at two times shall write the same lines. */
	if (d->in_frame)
		log_info("%s: hook digest: %" PRIu64 " samples of the last frame, which no other one ended, have no digest",
			 h->owner, d->samples);
	else if (d->samples)
		log_warn("%s: no sample began a frame, so there is no digest; put the hook frame before",
			 h->owner);
	left = hook_output_close(d->to, atomic_load(&d->hurry), &err);
	d->to = NULL;
	if (err)
		log_error("%s: hook digest cannot write %s: %s", h->owner,
			  d->uri, strerror(err));
	else if (left)
		log_warn("%s: hook digest: the last %zu bytes for %s were left out, nobody read them",
			 h->owner, left, d->uri);
	EVP_MD_CTX_free(d->context);
	d->context = NULL;
	return 0;
}

const struct hook_type hook_digest = {
	.name = "digest",
	.description = "writes a digest of each frame to a file",
	.places = HOOK_PATH,
	.priority = 999,
	.read_only = true,
	.size = sizeof(struct digest),
	.keys = digest_keys,
	.key_count = ARRAY_SIZE(digest_keys),
	.parse = digest_parse,
	.start = digest_start,
	.stop = digest_stop,
	.process = digest_process,
	.periodic = digest_periodic,
	.interrupt = digest_interrupt,
};
