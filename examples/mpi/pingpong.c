/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message there and back, by each way in which MPI can send: standard, synchronous, buffered
 * and ready, blocking and not, and as a persistent request. Measured are the call itself, the
 * time from there to its completion, and half the round trip.
 *
 *	mpirun -n 2 pingpong --call isend --size 8192
 *
 * Rank 1 sends back what it received, and rank 0 compares every byte; so both ways are checked
 * outside of the measured time. Receives are always posted before the other side sends, which
 * a ready send demands and which is fair to the others.
 */
#include "common.h"

#include <stdlib.h>

#define TAG 1
/* Buffered sends that may be under way at once, in the memory that is given to MPI. */
#define BUFFERED 8

enum call { SEND, SSEND, BSEND, RSEND, ISEND, ISSEND, IBSEND, IRSEND, PERSISTENT };

static const char *const calls[] = { "send", "ssend", "bsend", "rsend", "isend", "issend",
				     "ibsend", "irsend", "persistent", NULL };

static const struct program program = {
	.name = "pingpong",
	.summary = "A message there and back, checked, by each way in which MPI can send.",
	.option = "call",
	.words = calls,
	.processes = 2,
};

/* One side, with two buffers of which one is sent while the other receives. */
struct side {
	struct run *run;
	int other;
	char *buffer[2];
	MPI_Request sending, receiving, persistent[2];
	void *attached;
};

static void side_new(struct side *s, struct run *r)
{
	int size = (int)r->size;

	*s = (struct side){ .run = r, .other = 1 - r->rank, .sending = MPI_REQUEST_NULL,
			    .receiving = MPI_REQUEST_NULL };
	for (int i = 0; i < 2; i++) {
		s->buffer[i] = new_memory(r, r->size);
		if (r->word == PERSISTENT)
			MPI_Send_init(s->buffer[i], size, MPI_BYTE, s->other, TAG,
				      MPI_COMM_WORLD, &s->persistent[i]);
	}
	if (r->word == BSEND || r->word == IBSEND) {
		int room = BUFFERED * (size + MPI_BSEND_OVERHEAD);

		s->attached = new_memory(r, (size_t)room);
		MPI_Buffer_attach(s->attached, room);
	}
}

static void side_free(struct side *s)
{
	void *attached;
	int room;

	if (s->attached) {
		MPI_Buffer_detach(&attached, &room);
		free(s->attached);
	}
	for (int i = 0; i < 2; i++) {
		if (s->run->word == PERSISTENT)
			MPI_Request_free(&s->persistent[i]);
		free(s->buffer[i]);
	}
}

/* The call that is measured, and nothing else. */
static inline void begin_send(struct side *s, int which)
{
	int size = (int)s->run->size;
	char *at = s->buffer[which];

	switch ((enum call)s->run->word) {
	case SEND: MPI_Send(at, size, MPI_BYTE, s->other, TAG, MPI_COMM_WORLD); break;
	case SSEND: MPI_Ssend(at, size, MPI_BYTE, s->other, TAG, MPI_COMM_WORLD); break;
	case BSEND: MPI_Bsend(at, size, MPI_BYTE, s->other, TAG, MPI_COMM_WORLD); break;
	case RSEND: MPI_Rsend(at, size, MPI_BYTE, s->other, TAG, MPI_COMM_WORLD); break;
	case ISEND:
		MPI_Isend(at, size, MPI_BYTE, s->other, TAG, MPI_COMM_WORLD, &s->sending);
		break;
	case ISSEND:
		MPI_Issend(at, size, MPI_BYTE, s->other, TAG, MPI_COMM_WORLD, &s->sending);
		break;
	case IBSEND:
		MPI_Ibsend(at, size, MPI_BYTE, s->other, TAG, MPI_COMM_WORLD, &s->sending);
		break;
	case IRSEND:
		MPI_Irsend(at, size, MPI_BYTE, s->other, TAG, MPI_COMM_WORLD, &s->sending);
		break;
	case PERSISTENT:
		MPI_Start(&s->persistent[which]);
		s->sending = s->persistent[which];
		break;
	}
}

static inline bool returns_early(const struct run *r)
{
	return r->word >= ISEND;
}

static inline void end_send(struct side *s)
{
	if (returns_early(s->run))
		MPI_Wait(&s->sending, MPI_STATUS_IGNORE);
}

static void post_receive(struct side *s, int which)
{
	MPI_Irecv(s->buffer[which], (int)s->run->size, MPI_BYTE, s->other, TAG,
		  MPI_COMM_WORLD, &s->receiving);
}

/* One round trip of rank 0; buffer 0 goes out, buffer 1 comes in. */
static void ping(struct side *s, uint64_t number, int64_t *row)
{
	uint64_t seed = pattern_seed(0, 1, number), begin, called, done, back;
	MPI_Status status;
	int count;

	pattern_fill(s->buffer[0], s->run->size, seed);
	post_receive(s, 1);
	begin = now_ns();
	begin_send(s, 0);
	called = now_ns();
	done = called;
	if (returns_early(s->run)) {
		end_send(s);
		done = now_ns();
	}
	MPI_Wait(&s->receiving, &status);
	back = now_ns();
	MPI_Get_count(&status, MPI_BYTE, &count);
	s->run->damaged += count != (int)s->run->size ||
			   !pattern_is(s->buffer[1], s->run->size, seed);
	if (!row)
		return;
	row[0] = (int64_t)begin;
	row[1] = (int64_t)(begin + (back - begin) / 2);
	row[2] = (int64_t)called;
	if (returns_early(s->run))
		row[3] = (int64_t)done;
}

/* Sends everything back until the last one. */
static void pong(struct side *s, long rounds)
{
	for (long i = 0; i < rounds; i++) {
		MPI_Wait(&s->receiving, MPI_STATUS_IGNORE);
		if (i + 1 < rounds)
			post_receive(s, (int)((i + 1) % 2));
		begin_send(s, (int)(i % 2));
		end_send(s);
	}
}

/* The first message of two processes makes their connection, and is not counted. */
static void connect_both(struct side *s)
{
	post_receive(s, 0);
	MPI_Send(s->buffer[1], (int)s->run->size, MPI_BYTE, s->other, TAG, MPI_COMM_WORLD);
	MPI_Wait(&s->receiving, MPI_STATUS_IGNORE);
}

static void measure(struct run *r)
{
	static const char *const names[] = { "t_begin", "t_half", "t_called", "t_done" };
	long rounds = r->warmup + r->messages;
	struct times t = { .at = NULL };
	struct side s;

	side_new(&s, r);
	connect_both(&s);
	if (r->rank)
		post_receive(&s, 0);
	else
		times_new(&t, r, returns_early(r) ? 4 : 3, names, (size_t)r->messages);
	MPI_Barrier(MPI_COMM_WORLD);
	mark_begin(r);
	if (r->rank) {
		pong(&s, rounds);
	} else {
		for (long i = 0; i < rounds; i++)
			ping(&s, (uint64_t)i,
			     i < r->warmup ? NULL : times_row(&t, (size_t)(i - r->warmup)));
	}
	mark_end(r);
	if (!r->rank) {
		times_write(&t, r);
		times_table(&t, r, "half", 0, 1, "half the round trip");
		times_table(&t, r, "call", 0, 2, "the call that sends");
		if (returns_early(r))
			times_table(&t, r, "completion", 2, 3, "from its return to the completion");
		table_row(r, "counted", "-", 2.0 * (double)rounds, "messages between the marks");
	}
	times_free(&t);
	side_free(&s);
}

int main(int argc, char **argv)
{
	struct run r;

	run_begin(&r, &program, argc, argv);
	measure(&r);
	return run_end(&r);
}
