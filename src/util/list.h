/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive circular doubly linked list. Not thread safe; whoever owns the
 * list guards it.
 */
#ifndef UTIL_LIST_H
#define UTIL_LIST_H

#include <stdbool.h>

#include "util/container_of.h"

struct list {
	struct list *prev, *next;
};

static inline void list_init(struct list *l)
{
	l->prev = l->next = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

/* Appends `item` behind the last element of `l`. */
static inline void list_push(struct list *l, struct list *item)
{
	item->prev = l->prev;
	item->next = l;
	l->prev->next = item;
	l->prev = item;
}

/* Takes `item` out of its list; `item` is an empty list afterwards. */
static inline void list_remove(struct list *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	list_init(item);
}

/* Takes the first element out and returns it, NULL when empty. */
static inline struct list *list_pop(struct list *l)
{
	struct list *first = l->next;

	if (first == l)
		return NULL;
	list_remove(first);
	return first;
}

/* Moves all of `from` behind the last element of `to`. */
static inline void list_splice(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)

/*
 * The link inside `ptr`, computed on addresses only: at the end of a loop `ptr` is not an
 * object but the memory around the head, perhaps less aligned than the type.
 */
#define list_link(ptr, type, member) \
	((struct list *)(void *)((char *)(ptr) + offsetof(type, member)))

#define list_for_each(pos, head, type, member)                                \
	for (type *pos = list_entry((head)->next, type, member);              \
	     list_link(pos, type, member) != (head);                          \
	     pos = list_entry(list_link(pos, type, member)->next, type, member))

/* As list_for_each; `pos` may be removed in the body. */
#define list_for_each_safe(pos, head, type, member)                           \
	for (type *pos = list_entry((head)->next, type, member),              \
		  *pos##_next = list_entry(list_link(pos, type, member)->next, \
					   type, member);                     \
	     list_link(pos, type, member) != (head);                          \
	     pos = pos##_next,                                                \
		  pos##_next = list_entry(list_link(pos, type, member)->next, \
					  type, member))

#endif
