/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of a request that come from outside as text: percent-encoding, queries, lists of
 * accepted types. Pure functions. */
#ifndef GATEWAY_CONTROL_QUERY_H
#define GATEWAY_CONTROL_QUERY_H

#include <stdbool.h>
#include <stddef.h>

/* %41 becomes 'A', in place; what is no such sequence, and %00, stays as it is. */
void query_decode_loosely(char *s);
/* Decodes `len` bytes to a string. 0, -EINVAL (no sequence, or a NUL) or -ENAMETOOLONG. */
int query_decode(const char *from, size_t len, char *to, size_t size);
/* Encodes all but letters, digits and "-._~" and the bytes of `keep`. 0 or
 * -ENAMETOOLONG. */
int query_encode(const char *from, size_t len, const char *keep, char *to, size_t size);

/* The value of `key` in "key=value&key=value", decoded; the first one counts. 0, -ENOENT,
 * -EINVAL, or -ENAMETOOLONG; after an error *to is as it was. */
int query_value(const char *query, const char *key, char *to, size_t size);

/*
 * Whether a client with the header `accept` ("" and "*" "/" "*": anything) is served at least
 * as well by type `a` as by type `b`. Types are of the form "text/plain", without parameters.
 */
bool query_prefers(const char *accept, const char *a, const char *b);
/* The weight of `type` in `accept`, from 0 (refused) to 1000. */
int query_weight(const char *accept, const char *type);

#endif
