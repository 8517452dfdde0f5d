/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar doctor`: findings, and what one host tells without the other one. Reads files of /proc
 * and /sys that everybody may read, and asks the kernel for sockets and routes. */
#include "cli/doctor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/container_of.h"

static bool found;

void doctor_say(const char *mark, const char *remedy, const char *format, ...)
{
	va_list args;

	found |= !strcmp(mark, "BAD");
	printf("%-4s ", mark);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf(remedy ? "\n     -> %s\n" : "\n", remedy);
	fflush(stdout);
}

const char *doctor_remedy(const char *format, ...)
{
	static char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return text;
}

bool doctor_found(void)
{
	return found;
}

bool doctor_is_v4(const struct sockaddr_in6 *address)
{
	return IN6_IS_ADDR_V4MAPPED(&address->sin6_addr);
}

const char *doctor_text(const struct sockaddr_in6 *address, char *to)
{
	const uint8_t *bytes = address->sin6_addr.s6_addr;
	const char *text = doctor_is_v4(address) ?
		inet_ntop(AF_INET, bytes + 12, to, INET6_ADDRSTRLEN) :
		inet_ntop(AF_INET6, bytes, to, INET6_ADDRSTRLEN);

	return text ? text : "?";
}

/* What the carrier asks for (src/transport/carrier/udp.h). */
#define WANTED_BUFFER (4u << 20)

/* ---- sockets ---- */

int doctor_socket(int type, int port)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	const int off = 0, on = 1, probe4 = IP_PMTUDISC_PROBE, probe6 = IPV6_PMTUDISC_PROBE;
	bool is_v4 = false;
	int fd = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret;

	if (fd < 0 && errno == EAFNOSUPPORT) {
		is_v4 = true;
		fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	}
	if (fd < 0)
		return -errno;
	if (!is_v4)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (type == SOCK_STREAM) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	} else {
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe6, sizeof(probe6));
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe4, sizeof(probe4));
	}
	if (port < 0 || !bind(fd, is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6,
			      is_v4 ? sizeof(v4) : sizeof(v6)))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int doctor_connect(int fd, const struct sockaddr_in6 *to)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = to->sin6_port };
	int domain = AF_INET6;
	socklen_t len = sizeof(domain);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	if (domain != AF_INET)
		return connect(fd, (const struct sockaddr *)to, sizeof(*to)) ? -errno : 0;
	if (!doctor_is_v4(to))
		return -EAFNOSUPPORT;
	memcpy(&v4.sin_addr, to->sin6_addr.s6_addr + 12, 4);
	return connect(fd, (const struct sockaddr *)&v4, sizeof(v4)) ? -errno : 0;
}

/* Users of sockets at a UDP port. */
struct holders {
	unsigned own, others;
	unsigned other_uid;
};

static void count_holders(const char *path, uint16_t port, struct holders *h)
{
	FILE *f = fopen(path, "re");
	char line[512];

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		unsigned at, uid;

		if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %*x %*x:%*x %*x:%*x %*x %u",
			   &at, &uid) != 2 || at != port)
			continue;
		if (uid == geteuid()) {
			h->own++;
		} else {
			h->others++;
			h->other_uid = uid;
		}
	}
	fclose(f);
}

/* Has the file a line that begins, or ends, so? */
static bool has_line(const char *path, const char *start, const char *end)
{
	FILE *f = fopen(path, "re");
	bool is = false;
	char line[512];

	while (f && !is && fgets(line, sizeof(line), f)) {
		size_t length = strcspn(line, "\n");

		is = !strncmp(line, start, strlen(start)) && length >= strlen(end) &&
		     !memcmp(line + length - strlen(end), end, strlen(end));
	}
	if (f)
		fclose(f);
	return is;
}

/* Is there a Unix socket whose name ends so? */
static bool has_name(const char *name)
{
	return has_line("/proc/net/unix", "", name);
}

static void say_taken(uint16_t port, bool serving)
{
	struct holders h = { .own = 0 };
	char name[64], doctor[64];

	count_holders("/proc/net/udp", port, &h);
	count_holders("/proc/net/udp6", port, &h);
	snprintf(name, sizeof(name), "@busbar.roce.%u", port);
	snprintf(doctor, sizeof(doctor), "@busbar.doctor.%u", port);
	if (has_name(doctor) && !serving) {
		doctor_note("end it before programs run: they need the port",
			    "UDP port %u is used by 'busbar doctor --serve' here", port);
	} else if (has_name(doctor)) {
		doctor_bad("leave it as it is, or end it", "'busbar doctor --serve' runs here already");
	} else if (has_name(name) && h.others) {
		doctor_bad("run all of them as one user, or each user's in a network namespace of its own",
			   "UDP port %u belongs to busbar programs of user %u: those of user %u get no share of it",
			   port, h.other_uid, geteuid());
	} else if (has_name(name) && serving) {
		doctor_bad("end them, or give --port here and at the other host",
			   "UDP port %u is used by busbar programs of this user, so probes to it cannot be answered",
			   port);
	} else if (has_name(name)) {
		doctor_good("UDP port %u is shared by busbar programs of this user", port);
	} else if (!access("/sys/module/rdma_rxe", F_OK)) {
		doctor_bad("'rdma link delete' its devices and 'modprobe -r rdma_rxe', or use that adapter: BUSBAR_DEVICES=system",
			   "UDP port %u is taken, and the kernel's rdma_rxe, which takes it, is loaded",
			   port);
	} else {
		doctor_bad("'ss -ulpn' names the program as root; end it, or set BUSBAR_ROCE_PORT to another port at all hosts",
			   "UDP port %u is taken by another program%s", port,
			   h.own ? " of this user" : "");
	}
}

static bool look_at_port(uint16_t port, bool serving)
{
	int fd = doctor_socket(SOCK_DGRAM, port);

	if (fd >= 0) {
		close(fd);
		doctor_good("UDP port %u is free", port);
		return true;
	}
	if (fd == -EADDRINUSE)
		say_taken(port, serving);
	else
		doctor_bad("ports below 1024 need root; else see what forbids sockets here (seccomp, container)",
			   "UDP port %u cannot be opened: %s", port, strerror(-fd));
	return false;
}

/* ---- addresses ---- */

static unsigned mtu_of(const char *interface)
{
	struct ifreq r = { .ifr_mtu = 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned mtu = 0;

	if (fd < 0)
		return 0;
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", interface);
	if (!ioctl(fd, SIOCGIFMTU, &r) && r.ifr_mtu > 0)
		mtu = (unsigned)r.ifr_mtu;
	close(fd);
	return mtu;
}

bool doctor_map(const struct sockaddr *from, struct sockaddr_in6 *to)
{
	if (from->sa_family == AF_INET6) {
		memcpy(to, from, sizeof(*to));
		return true;
	}
	if (from->sa_family != AF_INET)
		return false;
	*to = (struct sockaddr_in6){
		.sin6_family = AF_INET6,
		.sin6_port = ((const struct sockaddr_in *)from)->sin_port,
	};
	memset(to->sin6_addr.s6_addr + 10, 0xff, 2);
	memcpy(to->sin6_addr.s6_addr + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
	return true;
}

static void look_at_addresses(void)
{
	struct ifaddrs *list = NULL;
	unsigned usable = 0;

	if (getifaddrs(&list)) {
		doctor_bad("see what forbids netlink sockets here", "addresses cannot be read: %s",
			   strerror(errno));
		return;
	}
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		char text[INET6_ADDRSTRLEN], gid[INET6_ADDRSTRLEN];
		struct sockaddr_in6 address;

		if (!i->ifa_addr || !doctor_map(i->ifa_addr, &address) ||
		    i->ifa_flags & IFF_LOOPBACK || IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr))
			continue;
		if (!(i->ifa_flags & IFF_UP) || !(i->ifa_flags & IFF_RUNNING)) {
			doctor_note("'ip link set NAME up', and look at the cable",
				    "interface %s with %s is down", i->ifa_name,
				    doctor_text(&address, text));
			continue;
		}
		usable++;
		inet_ntop(AF_INET6, &address.sin6_addr, gid, sizeof(gid));
		doctor_good("address %s on %s, MTU %u, GID %s", doctor_text(&address, text),
			    i->ifa_name, mtu_of(i->ifa_name), gid);
	}
	freeifaddrs(list);
	if (!usable)
		doctor_bad("'ip address add ADDRESS/PREFIX dev NAME'",
			   "this host or container has no address but loopback and link-local ones");
}

/* ---- buffers and filters ---- */

static void look_at_buffers(void)
{
	static const char *const names[] = { "rmem_max", "wmem_max" };

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		char path[64];
		unsigned long bytes;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/sys/net/core/%s", names[i]);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%lu", &bytes) == 1 && bytes < WANTED_BUFFER)
			doctor_note(doctor_remedy("'sysctl -w net.core.%s=%u' as root", names[i], WANTED_BUFFER),
				    "net.core.%s is %lu: bursts longer than this are lost and repeated",
				    names[i], bytes);
		fclose(f);
	}
}

/* As far as it is seen without privilege: whether there is a filter, not what it does. */
static void look_at_filters(uint16_t port, const char *protocol)
{
	if (has_line("/etc/ufw/ufw.conf", "ENABLED=yes", ""))
		doctor_note(doctor_remedy("'ufw allow %u/%s' as root, here and there", port, protocol),
			    "the firewall ufw is on");
	if (!access("/run/firewalld", F_OK))
		doctor_note(doctor_remedy("'firewall-cmd --permanent --add-port=%u/%s; firewall-cmd --reload' as root, here and there",
					  port, protocol),
			    "the firewall firewalld is on");
	if (has_line("/proc/net/ip_tables_names", "filter", "") ||
	    has_line("/proc/net/ip6_tables_names", "filter", ""))
		doctor_note(doctor_remedy("if probes get lost: 'iptables -I INPUT -p %s --dport %u -j ACCEPT' as root, and ip6tables",
					  protocol, port),
			    "iptables has rules here");
}

bool doctor_local(uint16_t port, bool serving)
{
	bool port_is_free = look_at_port(port, serving);

	if (!serving || port_is_free) {
		look_at_addresses();
		look_at_buffers();
		look_at_filters(port, "udp");
	}
	return port_is_free;
}

void doctor_local_stream(uint16_t port)
{
	look_at_addresses();
	look_at_filters(port, "tcp");
}

/* ---- the route ---- */

unsigned doctor_overhead(const struct doctor_route *route)
{
	return (doctor_is_v4(&route->to) ? 20u : 40u) + DOCTOR_UDP_BYTES + DOCTOR_ROCE_BYTES;
}

static int look_up(const char *host, uint16_t port, struct sockaddr_in6 *to)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
	struct addrinfo *list;
	char service[8];
	int ret;

	snprintf(service, sizeof(service), "%u", port);
	ret = getaddrinfo(host, service, &hints, &list);
	if (ret) {
		doctor_bad("give its address, or put its name into /etc/hosts",
			   "the address of %s is not found: %s", host, gai_strerror(ret));
		return -ENOENT;
	}
	ret = doctor_map(list->ai_addr, to) ? 0 : -EAFNOSUPPORT;
	freeaddrinfo(list);
	return ret;
}

/* The interface that has the address; a name of "" where none has. */
static void interface_of(const struct sockaddr_in6 *from, char *name, size_t size)
{
	struct ifaddrs *list = NULL;

	*name = '\0';
	if (getifaddrs(&list))
		return;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		struct sockaddr_in6 address;

		if (i->ifa_addr && doctor_map(i->ifa_addr, &address) &&
		    IN6_ARE_ADDR_EQUAL(&address.sin6_addr, &from->sin6_addr)) {
			snprintf(name, size, "%s", i->ifa_name);
			break;
		}
	}
	freeifaddrs(list);
}

static int find_source(struct doctor_route *r)
{
	struct sockaddr_in6 from = { .sin6_family = AF_UNSPEC };
	socklen_t len = sizeof(from);
	int fd = doctor_socket(SOCK_DGRAM, 0), ret;

	if (fd < 0)
		return fd;
	ret = doctor_connect(fd, &r->to);
	if (!ret && getsockname(fd, (struct sockaddr *)&from, &len))
		ret = -errno;
	if (!ret && !doctor_map((struct sockaddr *)&from, &r->from))
		ret = -EAFNOSUPPORT;
	close(fd);
	return ret;
}

void doctor_path(const struct doctor_route *r)
{
	unsigned overhead = doctor_overhead(r);

	if (r->path == 4096)
		doctor_good("the largest path MTU of RDMA, 4096, fits into the MTU %u of %s", r->mtu,
			    r->interface);
	else if (r->path)
		doctor_note(doctor_remedy("give programs '-m %u' (path MTU), or raise the MTU to 4200 or more at both hosts and the switches between them",
					  r->path),
			    "of the path MTUs of RDMA at most %u fits into the MTU %u of %s",
			    r->path, r->mtu, r->interface);
	else if (r->mtu)
		doctor_bad("raise it to 1500 or more", "MTU %u of %s is below %u, which the smallest path MTU needs",
			   r->mtu, r->interface, 256 + overhead);
}

int doctor_route(const char *host, uint16_t port, struct doctor_route *route)
{
	struct doctor_route r = { .mtu = 0 };
	char to[INET6_ADDRSTRLEN], from[INET6_ADDRSTRLEN];
	int ret = look_up(host, port, &r.to);

	if (ret)
		return ret;
	doctor_text(&r.to, to);
	ret = find_source(&r);
	if (ret) {
		doctor_bad("'ip route get' that address; is the interface up, is there a route?",
			   "no way leads to %s: %s", to, strerror(-ret));
		return ret;
	}
	interface_of(&r.from, r.interface, sizeof(r.interface));
	r.mtu = r.interface[0] ? mtu_of(r.interface) : 0;
	for (unsigned path = 256; path <= 4096; path *= 2)
		if (path + doctor_overhead(&r) <= r.mtu)
			r.path = path;
	doctor_good("%s is reached from %s on %s", to, doctor_text(&r.from, from),
		    r.interface[0] ? r.interface : "an interface of no name");
	*route = r;
	return 0;
}
