/* SPDX-License-Identifier: BSD-2-Clause */
/* The exported functions of version BUSBAR_1, over those of hca; see private.h. */
#include "verbs/note.h"
#include "verbs/private.h"

#include "hca/hca.h"
#include "hca/host/allowed.h"
#include "hca/host/subnet.h"
#include "hca/host/subnet_peer.h"
#include "hca/path/gsi.h"
#include "hca/run/progress.h"
#include "hca/share/peers.h"
#include "hca/share/process.h"
#include "hca/view/inspect.h"
#include "verbs/system.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int busbar_progress_hold(void)
{
	return progress_hold();
}

EXPORT void busbar_progress_release(void)
{
	progress_release();
}

EXPORT int busbar_progress_watch(int fd, uint32_t events,
				 void (*fn)(void *arg, uint32_t events),
				 void *arg)
{
	return progress_watch(fd, events, fn, arg);
}

EXPORT int busbar_progress_rewatch(int fd, uint32_t events)
{
	return progress_rewatch(fd, events);
}

EXPORT void busbar_progress_unwatch(int fd)
{
	progress_unwatch(fd);
}

EXPORT void busbar_progress_unwatch_async(int fd)
{
	progress_unwatch_async(fd);
}

EXPORT void busbar_progress_timer_init(struct progress_timer *t,
				       void (*fn)(struct progress_timer *t))
{
	progress_timer_init(t, fn);
}

EXPORT void busbar_progress_timer_arm(struct progress_timer *t,
				      uint64_t deadline_ns)
{
	progress_timer_arm(t, deadline_ns);
}

EXPORT void busbar_progress_timer_disarm(struct progress_timer *t)
{
	progress_timer_disarm(t);
}

EXPORT void busbar_progress_timer_cancel(struct progress_timer *t)
{
	progress_timer_cancel(t);
}

EXPORT bool busbar_progress_is_self(void)
{
	return progress_is_self();
}

EXPORT void busbar_take_in(void)
{
	hca_take_in();
}

EXPORT bool busbar_qp_exists(const struct ibv_qp *qp, uint32_t qpn)
{
	return hca_qp_exists(qp, qpn);
}

EXPORT bool busbar_context_failed(struct ibv_context *ctx)
{
	return hca_context_failed(ctx);
}

EXPORT bool busbar_owns_device(const struct ibv_device *dev)
{
	return hca_owns_device(dev);
}

EXPORT void *busbar_system_dlopen(const struct busbar_system_library *lib)
{
	return verbs_system_library_open(lib);
}

EXPORT void busbar_note_opened(void)
{
	verbs_note(VERBS_OPENED);
}

EXPORT int busbar_peer_check(int fd, const char *what, pid_t *pid)
{
	return hca_peer_check(fd, what, pid);
}

EXPORT int busbar_inspector_open(unsigned version, struct hca_inspector **out)
{
	return hca_inspector_open(version, out);
}

EXPORT int busbar_inspector_look(struct hca_inspector *in, struct hca_view **out)
{
	return hca_inspector_look(in, out);
}

EXPORT void busbar_view_free(struct hca_view *view)
{
	hca_view_free(view);
}

EXPORT void busbar_inspector_close(struct hca_inspector *in)
{
	hca_inspector_close(in);
}

EXPORT int busbar_fail_ask(uint32_t pid, const char *device)
{
	return hca_fail_ask(pid, device);
}

EXPORT int busbar_faults_ask(uint32_t pid, const char *text, struct hca_faults_view *out)
{
	return hca_faults_ask(pid, text, out);
}

EXPORT int busbar_fault_event_ask(uint32_t pid, uint32_t index, char *line, size_t line_bytes)
{
	return hca_fault_event_ask(pid, index, line, line_bytes);
}

EXPORT bool busbar_subnet_on(void)
{
	return hca_subnet_on();
}

EXPORT uint64_t busbar_subnet_place(void)
{
	return hca_subnet_place();
}

EXPORT void busbar_subnet_own_ipv4(uint8_t ip[4])
{
	hca_subnet_own_ipv4(ip);
}

EXPORT int busbar_subnet_gid_of_ipv4(const uint8_t ip[4], union ibv_gid *gid)
{
	return hca_subnet_gid_of_ipv4(ip, gid);
}

EXPORT int busbar_subnet_path_to(const union ibv_gid *to, struct hca_subnet_path *path)
{
	return hca_subnet_path_to(to, path);
}

EXPORT int busbar_subnet_join(const union ibv_gid *mgid, bool sends_only,
			      struct hca_subnet_path *path)
{
	return hca_subnet_join(mgid, sends_only, path);
}

EXPORT int busbar_subnet_lid_of_gid(const union ibv_gid *gid, uint16_t *lid)
{
	return hca_subnet_lid_of_gid(gid, lid);
}

EXPORT bool busbar_gsi_exists(void)
{
	return hca_gsi_exists();
}

EXPORT bool busbar_local_exists(void)
{
	return hca_local_exists();
}

EXPORT int busbar_gsi_open(void (*receive)(const struct hca_gsi_address *from,
					   const uint8_t *mad))
{
	return hca_gsi_open(receive);
}

EXPORT uint32_t busbar_gsi_comm_id(uint32_t number)
{
	return hca_gsi_comm_id(number);
}

EXPORT int busbar_gsi_send(const struct hca_gsi_address *to, const uint8_t *mad)
{
	return hca_gsi_send(to, mad);
}

EXPORT int busbar_gsi_serve(const struct hca_gsi_service *service)
{
	return hca_gsi_serve(service);
}

EXPORT void busbar_gsi_unserve(const struct hca_gsi_service *service)
{
	hca_gsi_unserve(service);
}

EXPORT int busbar_stream_attach(uint32_t qpn, const struct hca_stream *stream)
{
	return hca_stream_attach(qpn, stream);
}

EXPORT int busbar_stream_close(uint32_t qpn, const void *arg)
{
	return hca_stream_close(qpn, arg);
}

EXPORT void busbar_stream_forget(uint32_t qpn, const void *arg)
{
	hca_stream_forget(qpn, arg);
}

EXPORT bool busbar_network_allows(const union ibv_gid *gid)
{
	return hca_network_allows(gid->raw);
}
