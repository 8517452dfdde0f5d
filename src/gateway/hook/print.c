/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `print`: writes samples in some format to standard output, each behind a
 * prefix, or to the end of a file.
 *
 * What is printed is buffered; it is written at the rate of the statistics, when
 * the buffer is full, and at the end. The path waits for a reader that is slow;
 * who ends the path does not wait for one that has stopped.
 */
#define LOG_ROOM "gateway/hook"
#include "gateway/plugin/hook.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/format.h"
#include "gateway/hook/part/output.h"
#include "gateway/plugin/node.h"
#include "gateway/sample/signals.h"
#include "util/log.h"

#define BUFFER_SIZE 65536

struct print {
	json_t *format_value;
	const char *prefix, *output;

	struct format *format;
	char *prefix_text;   /* "" for none */
	struct hook_output *to;
	char *buf;           /* of one sample */
	size_t size;
	uint64_t left_out;   /* samples since somebody read any */
	uint64_t refused;    /* that the format cannot hold */
	bool header_due, failed;
	atomic_bool hurry;   /* it is to end */
};

extern const struct hook_type hook_print;

static const struct config_key print_keys[] = {
	{ "format", CONFIG_JSON, offsetof(struct print, format_value),
	  .help = "Format of the samples (\"villas.human\")" },
	{ "prefix", CONFIG_STRING, offsetof(struct print, prefix),
	  .help = "Text before each sample on standard output; the name of node or path by default" },
	{ "output", CONFIG_STRING, offsetof(struct print, output),
	  .help = "File to append to instead of standard output" },
};

static int print_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct print *p = h->private_data;

	if (p->format_value && !json_is_string(p->format_value) &&
	    !json_is_object(p->format_value)) {
		config_fail(c, h->cfg, "format",
			    "expected the name of a format or a group such as { type = \"csv\" }");
		return -EINVAL;
	}
	if (p->prefix && p->output)
		log_warn("%s: hook print: `prefix` is for standard output and has no effect in the file '%s'",
			 config_where(c, h->cfg), p->output);
	if (format_new(&p->format, c, p->format_value, "villas.human", NULL))
		return -EINVAL;
	if (p->prefix || p->output)
		p->prefix_text = strdup(p->output ? "" : p->prefix);
	else if (asprintf(&p->prefix_text, "%s %s: ",
			  h->node ? "Node" : "Path", h->owner) < 0)
		p->prefix_text = NULL;
	return p->prefix_text ? 0 : -ENOMEM;
}

static int print_signals(struct hook *h, struct signal_list *in,
			 struct signal_list **out)
{
	struct print *p = h->private_data;

	if (!in)
		return 0;
	if (format_check_signals(p->format, h->config, h->cfg, in))
		return -EINVAL;
	signal_list_put(p->format->signals);
	p->format->signals = signal_list_get(in);
	*out = signal_list_get(in);
	return 0;
}

static int print_start(struct hook *h)
{
	struct print *p = h->private_data;
	int ret;

	p->size = BUFFER_SIZE;
	p->buf = malloc(p->size);
	if (!p->buf)
		return -ENOMEM;
	p->failed = false;
	p->left_out = p->refused = 0;
	atomic_store(&p->hurry, false);
	p->to = hook_output_open(p->output);
	if (!p->to) {
		ret = -errno;
		log_error("%s: hook print cannot write %s: %s", h->owner,
			  p->output ?: "to standard output", strerror(-ret));
		free(p->buf);
		p->buf = NULL;
		return ret;
	}
	/* A file that holds samples already has its header. */
	p->header_due = p->format->header && p->format->type->header &&
			(!p->output || hook_output_is_new(p->to));
	return 0;
}

/* It went on, but is not where it was to be written. What standard output does not
 * show is no record that is missing. */
static void lose(struct hook *h, uint64_t count)
{
	if (((const struct print *)h->private_data)->output)
		atomic_fetch_add_explicit(&h->unwritten, count,
					  memory_order_relaxed);
}

/* The disk is full, the reader has gone: said once. */
static void fail(struct hook *h, int error)
{
	struct print *p = h->private_data;

	if (p->failed)
		return;
	p->failed = true;
	log_error("%s: hook print cannot write %s: %s", h->owner,
		  p->output ?: "to standard output", strerror(error));
}

static void put(struct hook *h, const char *prefix, size_t len, unsigned samples)
{
	struct print *p = h->private_data;
	const char *name = p->output ?: "standard output";
	int ret = hook_output_put(p->to, prefix, p->buf, len);

	if (unlikely(ret))
		lose(h, samples);
	if (unlikely(ret == -EAGAIN)) {
		if (p->left_out++ == 0)
			log_warn("%s: hook print: nobody reads %s, samples are left out",
				 h->owner, name);
	} else if (unlikely(ret)) {
		fail(h, -ret);
	} else if (unlikely(p->left_out)) {
		log_info("%s: hook print: %llu samples were left out of %s",
			 h->owner, (unsigned long long)p->left_out, name);
		p->left_out = 0;
	}
}

static bool grow(struct print *p, size_t size)
{
	char *buf = realloc(p->buf, size);

	if (!buf)
		return false;
	p->buf = buf;
	p->size = size;
	return true;
}

static void put_header(struct hook *h, const struct sample *s)
{
	struct print *p = h->private_data;
	struct signal_list *l = signal_list_header(s->signals ?: p->format->signals,
						   s->length);
	size_t len;

	p->header_due = false;
	if (!l)
		return;
	len = p->format->type->header(p->format, p->buf, p->size, l);
	if (len < p->size || (grow(p, len + 1) &&
			      p->format->type->header(p->format, p->buf,
						      p->size, l)))
		put(h, "", len, 0);
	signal_list_put(l);
}

/* The format cannot hold it, or there is no memory for so long a text. */
static void refuse(struct hook *h, const struct sample *s, int err)
{
	struct print *p = h->private_data;

	lose(h, 1);
	if (p->refused++)
		return;
	log_warn("%s: hook print cannot print a sample of %u values in the format %s: %s; further ones are counted",
		 h->owner, s->length, p->format->type->name,
		 !err ? "it is too long" :
		 *format_error(p->format) ? format_error(p->format) :
					    strerror(-err));
}

static enum hook_verdict print_process(struct hook *h, struct sample **smp)
{
	struct print *p = h->private_data;
	size_t used = 0;
	int ret;

	if (unlikely(p->header_due))
		put_header(h, *smp);
	/* Only the first sample of a size does not fit. */
	while (!(ret = p->format->type->print(p->format, p->buf, p->size, &used,
					      smp, 1)))
		if (p->size > (size_t)64 << 20 || !grow(p, 2 * p->size))
			break;
	if (likely(ret > 0))
		put(h, p->format->type->lines ? p->prefix_text : "", used, 1);
	else
		refuse(h, *smp, ret);
	return HOOK_OK;
}

static void print_periodic(struct hook *h)
{
	struct print *p = h->private_data;

	if (p->to)
		hook_output_flush(p->to);
}

static void print_interrupt(struct hook *h)
{
	struct print *p = h->private_data;

	atomic_store(&p->hurry, true);
	if (p->to)
		hook_output_interrupt(p->to);
}

static int print_stop(struct hook *h)
{
	struct print *p = h->private_data;
	int error;
	size_t left = hook_output_close(p->to, atomic_load(&p->hurry), &error);

	p->to = NULL;
	if (error)
		fail(h, error);
	if (p->refused)
		log_warn("%s: hook print could not print %llu samples",
			 h->owner, (unsigned long long)p->refused);
	/* How many samples were in what nobody took is not known: one at least. */
	if (error || left)
		lose(h, 1);
	if (p->left_out)
		log_warn("%s: hook print: %llu samples were left out, nobody read them",
			 h->owner, (unsigned long long)p->left_out);
	if (left)
		log_warn("%s: hook print: nobody reads %s, the last %zu bytes are left out",
			 h->owner, p->output ?: "standard output", left);
	free(p->buf);
	p->buf = NULL;
	return 0;
}

static void print_destroy(struct hook *h)
{
	struct print *p = h->private_data;

	format_destroy(p->format);
	free(p->prefix_text);
}

const struct hook_type hook_print = {
	.name = "print",
	.description = "prints samples to standard output or a file",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.read_only = true,
	.size = sizeof(struct print),
	.keys = print_keys,
	.key_count = ARRAY_SIZE(print_keys),
	.parse = print_parse,
	.start = print_start,
	.stop = print_stop,
	.destroy = print_destroy,
	.signals = print_signals,
	.process = print_process,
	.interrupt = print_interrupt,
	.periodic = print_periodic,
};
