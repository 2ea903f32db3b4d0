/*
 * softverbs: a user-space stand-in for libibverbs.so.1 on machines that have
 * neither RDMA hardware nor a soft-RoCE kernel module.
 *
 * One shared object presents N RoCE v2 devices ("softrdma0", ...).  Reliable
 * connected queue pairs, memory regions, completion queues and completion
 * channels behave as the verbs interface documents; one-sided RDMA WRITE and
 * READ are carried out between processes of the same machine with
 * process_vm_writev / process_vm_readv.  Everything a peer must know about a
 * queue pair or memory region lives in a file mapped by all processes
 * ($SOFTVERBS_DIR/registry), so access checks use the owner's published keys.
 *
 * See README.md for what is and is not emulated.
 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define EXPORT __attribute__((visibility("default")))
#define MAGIC (0x53564200u ^ (uint32_t)sizeof(struct registry)) /* changes with the layout */
#define NQ 16384          /* queue pairs, all processes together */
#define NM 32768          /* memory regions, all processes together */
#define MAXDEV 16
#define MAXSGE 16
#define MAXINLINE 256
#define NGID 4
#define PORTMTU IBV_MTU_4096

/* ------------------------------------------------------------ shared file */

struct qslot {
	_Atomic uint32_t qpn; /* 0: free */
	_Atomic uint32_t state;
	uint32_t gen;
	int32_t pid;
	uint64_t start; /* owner's start time, tells a reused pid apart */
	uint32_t pd, access, ip, dest, sq_psn, rq_psn, mtu;
	_Atomic uint32_t down; /* the port of its device is down */
};

struct mslot {
	_Atomic uint32_t key; /* 0: free; both lkey and rkey */
	uint32_t gen;
	int32_t pid;
	uint32_t pd;
	uint64_t start, addr, len, iova;
	uint32_t access;
};

struct registry {
	uint32_t magic, qhint, mhint, pdnext, qhigh, mhigh;
	struct qslot q[NQ];
	struct mslot m[NM];
};

static struct registry *R;
static int regfd = -1;
static int32_t me;
static uint64_t mystart;
static pthread_mutex_t reg_mu = PTHREAD_MUTEX_INITIALIZER;

/* ---------------------------------------------------------- configuration */

static struct {
	char dir[PATH_MAX - 256];
	int ndev, debug;
	uint32_t ip; /* host order, device i has ip + i */
	long delay_us, retry_ms;
	uint64_t max_mr;
	const char *stats, *down;
} C;

static _Atomic uint64_t n_wr, n_rd, b_wr, b_rd, n_err, n_flush, n_qp, n_mr, n_cqe, n_ev;

static void dbg(const char *fmt, ...)
{
	if (!C.debug)
		return;
	va_list ap;
	char buf[512];
	va_start(ap, fmt);
	vsnprintf(buf, sizeof buf, fmt, ap);
	va_end(ap);
	fprintf(stderr, "softverbs[%d]: %s\n", (int)getpid(), buf);
}

static uint64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static long envl(const char *k, long d)
{
	const char *v = getenv(k);
	return v && *v ? strtol(v, NULL, 0) : d;
}

static void load_config(void)
{
	const char *d = getenv("SOFTVERBS_DIR"), *ip = getenv("SOFTVERBS_IP");
	struct in_addr a;
	if (d && *d)
		snprintf(C.dir, sizeof C.dir, "%s", d);
	else
		snprintf(C.dir, sizeof C.dir, "%s/softverbs", getenv("TMPDIR") ? getenv("TMPDIR") : P_tmpdir);
	C.ndev = (int)envl("SOFTVERBS_NDEV", 1);
	if (C.ndev < 0 || C.ndev > MAXDEV)
		C.ndev = 1;
	C.debug = (int)envl("SOFTVERBS_DEBUG", 0);
	C.delay_us = envl("SOFTVERBS_DELAY_US", 0);
	C.retry_ms = envl("SOFTVERBS_RETRY_MS", -1);
	C.max_mr = (uint64_t)envl("SOFTVERBS_MAX_MR", 1L << 40);
	C.stats = getenv("SOFTVERBS_STATS");
	C.down = getenv("SOFTVERBS_DOWN");
	C.ip = 0x7f000001;
	if (ip && inet_pton(AF_INET, ip, &a) == 1)
		C.ip = ntohl(a.s_addr);
}

/* 0 if there is no such process (a zombie counts as gone) */
static uint64_t start_time(int32_t pid)
{
	char p[64], buf[1024];
	snprintf(p, sizeof p, "/proc/%d/stat", pid);
	int fd = open(p, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, buf, sizeof buf - 1);
	close(fd);
	if (n <= 0)
		return 0;
	buf[n] = 0;
	char *s = strrchr(buf, ')');
	if (!s || s[2] == 'Z' || s[2] == 'X')
		return 0;
	s += 2;
	for (int i = 3; i < 22 && s; i++) { /* field 22 is starttime */
		s = strchr(s, ' ');
		if (s)
			s++;
	}
	return s ? strtoull(s, NULL, 10) : 0;
}

static bool alive(int32_t pid, uint64_t start)
{
	return (pid == me && start == mystart) || start_time(pid) == start;
}

static void reg_lock(void)
{
	pthread_mutex_lock(&reg_mu);
	while (flock(regfd, LOCK_EX) && errno == EINTR)
		;
}

static void reg_unlock(void)
{
	flock(regfd, LOCK_UN);
	pthread_mutex_unlock(&reg_mu);
}

/* ------------------------------------------------- devices and fake sysfs */

static struct ibv_device devs[MAXDEV];

static void mkdirs(char *p)
{
	for (char *s = p + 1; (s = strchr(s, '/')); s++) {
		*s = 0;
		mkdir(p, 0777);
		*s = '/';
	}
	mkdir(p, 0777);
}

static void put(const char *dir, const char *name, const char *val)
{
	char p[PATH_MAX + 64];
	snprintf(p, sizeof p, "%s/%s", dir, name);
	int fd = open(p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	if (write(fd, val, strlen(val)) < 0)
		dbg("write %s: %s", p, strerror(errno));
	close(fd);
}

/* A typical RoCE table: link-local v1, link-local v2, IPv4 v1, IPv4 v2 */
static void gid_of(uint32_t ip, int idx, union ibv_gid *g)
{
	memset(g, 0, sizeof *g);
	uint32_t be = htonl(ip);
	if (idx >= 2) {
		g->raw[10] = g->raw[11] = 0xff;
	} else {
		g->raw[0] = 0xfe;
		g->raw[1] = 0x80;
		g->raw[8] = 0x02;
		g->raw[11] = 0xff;
	}
	memcpy(g->raw + 12, &be, 4);
}

/* A port is down if SOFTVERBS_DOWN names its device or $SOFTVERBS_DIR/down/DEVICE exists. */
static bool port_down(int i)
{
	char p[PATH_MAX];
	size_t n = strlen(devs[i].name);
	for (const char *d = C.down; d && (d = strstr(d, devs[i].name)); d += n)
		if (!d[n] || d[n] == ',')
			return true;
	snprintf(p, sizeof p, "%s/down/%.32s", C.dir, devs[i].name);
	return faccessat(AT_FDCWD, p, F_OK, 0) == 0;
}

static void make_sysfs(int i)
{
	char pci[PATH_MAX], ib[PATH_MAX + 64], d[PATH_MAX + 128], f[16], v[64];
	snprintf(pci, sizeof pci, "%s/sys/devices/pci0000:00/0000:00:%02x.0", C.dir, 0x10 + i);
	snprintf(ib, sizeof ib, "%s/infiniband/%s", pci, devs[i].name);
	mkdirs(ib);
	put(pci, "numa_node", "0\n");
	snprintf(d, sizeof d, "%s/device", ib);
	if (symlink("../..", d)) { /* already there */ }
	put(ib, "node_type", "1: CA\n");
	snprintf(d, sizeof d, "%s/ports/1", ib);
	mkdirs(d);
	put(d, "state", port_down(i) ? "1: DOWN\n" : "4: ACTIVE\n");
	put(d, "link_layer", "Ethernet\n");
	static const char *sub[] = {"gids", "gid_attrs/types", "gid_attrs/ndevs"};
	for (int k = 0; k < 3; k++) {
		snprintf(d, sizeof d, "%s/ports/1/%s", ib, sub[k]);
		mkdirs(d);
		for (int g = 0; g < NGID; g++) {
			union ibv_gid gid;
			gid_of(C.ip + i, g, &gid);
			snprintf(f, sizeof f, "%d", g);
			if (k == 0) {
				char *o = v;
				for (int b = 0; b < 16; b += 2)
					o += sprintf(o, "%s%02x%02x", b ? ":" : "", gid.raw[b], gid.raw[b + 1]);
				strcpy(o, "\n");
			} else {
				strcpy(v, k == 1 ? (g & 1 ? "RoCE v2\n" : "IB/RoCE v1\n") : "lo\n");
			}
			put(d, f, v);
		}
	}
	snprintf(d, sizeof d, "%s/sys/class/infiniband", C.dir);
	mkdirs(d);
	snprintf(d, sizeof d, "%s/sys/class/infiniband/%s", C.dir, devs[i].name);
	snprintf(ib, sizeof ib, "../../devices/pci0000:00/0000:00:%02x.0/infiniband/%s", 0x10 + i,
		 devs[i].name);
	if (symlink(ib, d)) { /* already there */ }
}

static void sweep(void) /* drop what dead processes left; registry locked */
{
	for (uint32_t i = 0; i < R->qhigh; i++)
		if (atomic_load(&R->q[i].qpn) && !alive(R->q[i].pid, R->q[i].start))
			atomic_store(&R->q[i].qpn, 0);
	for (uint32_t i = 0; i < R->mhigh; i++)
		if (atomic_load(&R->m[i].key) && !alive(R->m[i].pid, R->m[i].start))
			atomic_store(&R->m[i].key, 0);
}

static int init_once(void)
{
	static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&mu);
	if (R && me == getpid()) {
		pthread_mutex_unlock(&mu);
		return 0;
	}
	char p[PATH_MAX];
	me = getpid();
	mystart = start_time(me);
	snprintf(p, sizeof p, "%s", C.dir);
	mkdirs(p);
	snprintf(p, sizeof p, "%s/registry", C.dir);
	if (R)
		munmap(R, sizeof *R);
	R = NULL;
	regfd = open(p, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (regfd < 0 || ftruncate(regfd, sizeof(struct registry)))
		goto fail;
	void *m = mmap(NULL, sizeof(struct registry), PROT_READ | PROT_WRITE, MAP_SHARED, regfd, 0);
	if (m == MAP_FAILED)
		goto fail;
	R = m;
	for (int i = 0; i < C.ndev; i++) {
		devs[i].node_type = IBV_NODE_CA;
		devs[i].transport_type = IBV_TRANSPORT_IB;
		snprintf(devs[i].name, sizeof devs[i].name, "softrdma%d", i);
		snprintf(devs[i].dev_name, sizeof devs[i].dev_name, "uverbs%d", i);
		snprintf(devs[i].dev_path, sizeof devs[i].dev_path, "/sys/class/infiniband_verbs/uverbs%d", i);
		snprintf(devs[i].ibdev_path, sizeof devs[i].ibdev_path, "%.200s/sys/class/infiniband/softrdma%d",
			 C.dir, i);
	}
	reg_lock();
	if (R->magic != MAGIC) {
		memset(R, 0, sizeof *R);
		R->magic = MAGIC;
		R->pdnext = 1;
	}
	sweep();
	for (int i = 0; i < C.ndev; i++)
		make_sysfs(i);
	reg_unlock();
	pthread_mutex_unlock(&mu);
	return 0;
fail:
	fprintf(stderr, "softverbs: cannot use %s: %s\n", p, strerror(errno));
	pthread_mutex_unlock(&mu);
	return -1;
}

/* ---------------------------------------------------------------- objects */

struct ev {
	struct ev *next;
	void *cq;
	struct ibv_async_event a;
};

struct evq { /* an event queue whose fd is readable while it is not empty */
	pthread_mutex_t mu;
	struct ev *head, **tail;
};

struct schan {
	struct ibv_comp_channel c;
	struct evq q;
};

struct sctx {
	struct ibv_context c;
	int dev;
	pthread_mutex_t mu; /* queue pairs, their pending work and the engine */
	pthread_cond_t work, idle;
	pthread_t thread;
	bool running, stop, down;
	uint64_t checked;
	struct sqp *qps;
	struct evq async;
};

struct spd {
	struct ibv_pd p;
	uint32_t id;
	_Atomic int refs;
};

struct smr {
	struct ibv_mr m;
	struct mslot *s;
};

struct cqe {
	struct ibv_wc wc;
	struct sqp *qp;
	int slots;
};

struct scq {
	struct ibv_cq c;
	pthread_mutex_t mu;
	pthread_cond_t acked;
	struct cqe *ring;
	int head;
	_Atomic int n; /* changed under mu, read without it by idle pollers */
	int armed; /* 1: next completion, 2: next solicited or failed one */
	uint32_t delivered, acks;
	_Atomic int refs;
};

struct wri {
	struct wri *next;
	uint64_t wr_id, raddr, deadline, ready;
	uint32_t rkey, len;
	int op, flags, nsge;
	struct ibv_sge sge[MAXSGE];
	uint8_t inl[];
};

struct sqp {
	struct ibv_qp q;
	struct qslot *s;
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;
	bool sig_all, busy;
	struct wri *head, *tail, *rhead; /* send queue, posted receives */
	int depth, rdepth, unsig;        /* slots in use; unsignalled since the last CQE */
	uint64_t not_before;
	int pidfd;
	struct sqp *next;
};

static void evq_init(struct evq *q)
{
	pthread_mutex_init(&q->mu, NULL);
	q->head = NULL;
	q->tail = &q->head;
}

static void evq_push(struct evq *q, int fd, void *cq, const struct ibv_async_event *a)
{
	struct ev *e = calloc(1, sizeof *e);
	uint64_t one = 1;
	e->cq = cq;
	if (a)
		e->a = *a;
	pthread_mutex_lock(&q->mu);
	*q->tail = e;
	q->tail = &e->next;
	pthread_mutex_unlock(&q->mu);
	if (write(fd, &one, 8) != 8)
		dbg("event write: %s", strerror(errno));
}

static struct ev *evq_pop(struct evq *q, int fd)
{
	uint64_t v;
	for (;;) {
		if (read(fd, &v, 8) != 8) /* blocks unless the user set O_NONBLOCK */
			return NULL;
		pthread_mutex_lock(&q->mu);
		struct ev *e = q->head;
		if (e) {
			q->head = e->next;
			if (!q->head)
				q->tail = &q->head;
		}
		pthread_mutex_unlock(&q->mu);
		if (e)
			return e;
	}
}

static void evq_forget(struct evq *q, int fd, void *cq)
{
	int n = 0;
	pthread_mutex_lock(&q->mu);
	for (struct ev **pp = &q->head; *pp;) {
		struct ev *e = *pp;
		if (cq && e->cq == cq) {
			*pp = e->next;
			free(e);
			n++;
		} else {
			pp = &e->next;
		}
	}
	q->tail = &q->head;
	while (*q->tail)
		q->tail = &(*q->tail)->next;
	pthread_mutex_unlock(&q->mu);
	for (uint64_t v; n > 0; n--) {
		struct pollfd p = {fd, POLLIN, 0};
		if (poll(&p, 1, 0) == 1 && read(fd, &v, 8) < 0)
			break;
	}
}

/* ---------------------------------------------------------------- devices */

EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
	if (num)
		*num = 0;
	if (init_once()) {
		errno = ENOSYS;
		return NULL;
	}
	struct ibv_device **l = calloc(MAXDEV + 1, sizeof *l);
	for (int i = 0; i < C.ndev; i++)
		l[i] = &devs[i];
	if (num)
		*num = C.ndev;
	return l;
}

EXPORT void ibv_free_device_list(struct ibv_device **l) { free(l); }
EXPORT const char *ibv_get_device_name(struct ibv_device *d) { return d->name; }
EXPORT int ibv_get_device_index(struct ibv_device *d) { return (int)(d - devs); }
EXPORT __be64 ibv_get_device_guid(struct ibv_device *d)
{
	return htobe64(0x0200ff0000000000ull | (C.ip + (uint32_t)(d - devs)));
}
EXPORT int ibv_fork_init(void) { return 0; }
EXPORT enum ibv_fork_status ibv_is_fork_initialized(void) { return IBV_FORK_UNNEEDED; }

static _Atomic int n_open;
static void report(void);
static int sv_poll(struct ibv_cq *, int, struct ibv_wc *);
static int sv_notify(struct ibv_cq *, int);
static int sv_send(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static int sv_recv(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);
static void *engine(void *);

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	if (init_once())
		return NULL;
	struct sctx *x = calloc(1, sizeof *x);
	x->dev = (int)(d - devs);
	x->c.device = d;
	x->c.ops.poll_cq = sv_poll;
	x->c.ops.req_notify_cq = sv_notify;
	x->c.ops.post_send = sv_send;
	x->c.ops.post_recv = sv_recv;
	x->c.cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	x->c.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	x->c.num_comp_vectors = 4;
	x->down = port_down(x->dev);
	x->c.abi_compat = NULL; /* not a verbs_context: only the classic calls */
	pthread_mutex_init(&x->c.mutex, NULL);
	pthread_mutex_init(&x->mu, NULL);
	pthread_condattr_t ca;
	pthread_condattr_init(&ca);
	pthread_condattr_setclock(&ca, CLOCK_MONOTONIC);
	pthread_cond_init(&x->work, &ca);
	pthread_cond_init(&x->idle, NULL);
	evq_init(&x->async);
	atomic_fetch_add(&n_open, 1);
	dbg("open %s", d->name);
	return &x->c;
}

EXPORT int ibv_close_device(struct ibv_context *c)
{
	struct sctx *x = (struct sctx *)c;
	pthread_mutex_lock(&x->mu);
	if (x->qps) {
		pthread_mutex_unlock(&x->mu);
		return EBUSY;
	}
	x->stop = true;
	pthread_cond_broadcast(&x->work);
	pthread_mutex_unlock(&x->mu);
	if (x->running)
		pthread_join(x->thread, NULL);
	close(c->cmd_fd);
	close(c->async_fd);
	free(x);
	if (atomic_fetch_sub(&n_open, 1) == 1)
		report();
	return 0;
}

EXPORT int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	memset(a, 0, sizeof *a);
	strcpy(a->fw_ver, "softverbs 1");
	a->node_guid = a->sys_image_guid = ibv_get_device_guid(c->device);
	a->max_mr_size = C.max_mr;
	a->page_size_cap = ~0xfffull;
	a->max_qp = NQ;
	a->max_qp_wr = 16384;
	a->max_sge = a->max_sge_rd = MAXSGE;
	a->max_cq = 65536;
	a->max_cqe = 1 << 20;
	a->max_mr = NM;
	a->max_pd = 65536;
	a->max_qp_rd_atom = a->max_qp_init_rd_atom = 16;
	a->max_res_rd_atom = 16 * NQ;
	a->atomic_cap = IBV_ATOMIC_NONE;
	a->max_pkeys = 1;
	a->local_ca_ack_delay = 15;
	a->phys_port_cnt = 1;
	return 0;
}

/* The classic entry point ends before port_cap_flags2; do not write past it. */
EXPORT int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *out)
{
	struct ibv_port_attr *a = (struct ibv_port_attr *)out;
	if (port != 1)
		return EINVAL;
	bool down = port_down(((struct sctx *)c)->dev);
	a->state = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	a->max_mtu = a->active_mtu = PORTMTU;
	a->gid_tbl_len = NGID;
	a->port_cap_flags = 0;
	a->max_msg_sz = 1u << 31;
	a->bad_pkey_cntr = a->qkey_viol_cntr = 0;
	a->pkey_tbl_len = 1;
	a->lid = a->sm_lid = 0;
	a->lmc = 0;
	a->max_vl_num = 1;
	a->sm_sl = a->subnet_timeout = a->init_type_reply = 0;
	a->active_width = 2; /* 4x */
	a->active_speed = 32; /* EDR lanes */
	a->phys_state = down ? 3 : 5;
	a->link_layer = IBV_LINK_LAYER_ETHERNET;
	a->flags = 0;
	return 0;
}

EXPORT int ibv_query_gid(struct ibv_context *c, uint8_t port, int idx, union ibv_gid *g)
{
	if (port != 1 || idx < 0 || idx >= NGID) {
		errno = EINVAL;
		return -1;
	}
	gid_of(C.ip + ((struct sctx *)c)->dev, idx, g);
	return 0;
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t idx, struct ibv_gid_entry *e,
			     uint32_t flags, size_t size)
{
	struct ibv_gid_entry r = {.gid_index = idx, .port_num = port, .ndev_ifindex = 1};
	if (flags || port != 1 || idx >= NGID)
		return EINVAL;
	r.gid_type = idx & 1 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
	ibv_query_gid(c, 1, idx, &r.gid);
	memcpy(e, &r, size < sizeof r ? size : sizeof r);
	return 0;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *c, struct ibv_gid_entry *e, size_t max, uint32_t flags,
				    size_t size)
{
	if (flags || size < sizeof *e)
		return -EINVAL;
	size_t i;
	for (i = 0; i < NGID && i < max; i++)
		_ibv_query_gid_ex(c, 1, i, (struct ibv_gid_entry *)((char *)e + i * size), 0, size);
	return (ssize_t)i;
}

EXPORT int ibv_query_pkey(struct ibv_context *c, uint8_t port, int idx, __be16 *pkey)
{
	(void)c;
	if (port != 1 || idx)
		return -1;
	*pkey = htobe16(0xffff);
	return 0;
}

EXPORT int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *out)
{
	struct ev *e = evq_pop(&((struct sctx *)c)->async, c->async_fd);
	if (!e)
		return -1;
	*out = e->a;
	free(e);
	return 0;
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *e) { (void)e; }

/* ------------------------------------------- protection domains and memory */

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
	struct spd *p = calloc(1, sizeof *p);
	p->p.context = c;
	reg_lock();
	p->id = R->pdnext++;
	reg_unlock();
	p->p.handle = p->id;
	return &p->p;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	if (atomic_load(&((struct spd *)pd)->refs))
		return EBUSY;
	free(pd);
	return 0;
}

static bool mapped(const void *addr, size_t len) /* would pinning succeed? */
{
	uintptr_t a = (uintptr_t)addr & ~4095ul, end = ((uintptr_t)addr + len + 4095) & ~4095ul;
	if ((uintptr_t)addr + len < (uintptr_t)addr)
		return false;
	unsigned char vec[16384];
	while (a < end) {
		size_t n = end - a < sizeof vec * 4096 ? end - a : sizeof vec * 4096;
		if (mincore((void *)a, n, vec))
			return false;
		a += n;
	}
	return true;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned acc)
{
	struct spd *p = (struct spd *)pd;
	bool remote_w = acc & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	if (!len || len > C.max_mr || (remote_w && !(acc & IBV_ACCESS_LOCAL_WRITE))) {
		errno = EINVAL;
		return NULL;
	}
	if (!mapped(addr, len)) {
		errno = EFAULT;
		return NULL;
	}
	struct smr *m = calloc(1, sizeof *m);
	reg_lock();
	for (int pass = 0; pass < 2 && !m->s; pass++) {
		for (uint32_t k = 0; k < NM; k++) {
			struct mslot *s = &R->m[(R->mhint + k) % NM];
			if (atomic_load(&s->key))
				continue;
			uint32_t i = s - R->m;
			R->mhint = i + 1;
			if (i >= R->mhigh)
				R->mhigh = i + 1;
			s->gen = (s->gen + 1) & 0xff;
			s->pid = me;
			s->start = mystart;
			s->pd = p->id;
			s->addr = (uintptr_t)addr;
			s->len = len;
			s->iova = iova;
			s->access = acc;
			atomic_store(&s->key, (i + 1) << 8 | s->gen);
			m->s = s;
			break;
		}
		if (!m->s)
			sweep();
	}
	reg_unlock();
	if (!m->s) {
		free(m);
		errno = ENOMEM;
		return NULL;
	}
	m->m.context = pd->context;
	m->m.pd = pd;
	m->m.addr = addr;
	m->m.length = len;
	m->m.lkey = m->m.rkey = m->s->key;
	m->m.handle = m->s - R->m;
	atomic_fetch_add(&p->refs, 1);
	atomic_fetch_add(&n_mr, 1);
	dbg("reg_mr %p+%zu access %#x key %#x", addr, len, acc, m->m.rkey);
	return &m->m;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int acc)
{
	return ibv_reg_mr_iova2(pd, addr, len, (uintptr_t)addr, acc);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int acc)
{
	return ibv_reg_mr_iova2(pd, addr, len, iova, acc);
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t off, size_t len, uint64_t iova, int fd, int acc)
{
	(void)pd, (void)off, (void)len, (void)iova, (void)fd, (void)acc;
	errno = EOPNOTSUPP;
	return NULL;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct smr *m = (struct smr *)mr;
	atomic_store(&m->s->key, 0);
	atomic_fetch_sub(&((struct spd *)mr->pd)->refs, 1);
	free(m);
	return 0;
}

/* ------------------------------------------------------ completion queues */

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
	struct schan *h = calloc(1, sizeof *h);
	h->c.context = c;
	h->c.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	evq_init(&h->q);
	return &h->c;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *h)
{
	if (h->refcnt)
		return EBUSY;
	close(h->fd);
	free(h);
	return 0;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *c, int cqe, void *uctx, struct ibv_comp_channel *h, int vec)
{
	if (cqe < 1 || cqe > 1 << 20 || vec < 0 || vec >= c->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	struct scq *q = calloc(1, sizeof *q);
	q->c.context = c;
	q->c.channel = h;
	q->c.cq_context = uctx;
	q->c.cqe = cqe;
	q->ring = calloc(cqe, sizeof *q->ring);
	dbg("create_cq %d entries%s", cqe, h ? " with a channel" : "");
	pthread_mutex_init(&q->mu, NULL);
	pthread_cond_init(&q->acked, NULL);
	if (h)
		h->refcnt++;
	return &q->c;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *c)
{
	struct scq *q = (struct scq *)c;
	if (atomic_load(&q->refs))
		return EBUSY;
	if (c->channel) {
		evq_forget(&((struct schan *)c->channel)->q, c->channel->fd, c);
		pthread_mutex_lock(&q->mu);
		while (q->acks != q->delivered) /* as documented: waits for the acks */
			pthread_cond_wait(&q->acked, &q->mu);
		pthread_mutex_unlock(&q->mu);
		c->channel->refcnt--;
	}
	evq_forget(&((struct sctx *)c->context)->async, c->context->async_fd, c);
	free(q->ring);
	free(q);
	return 0;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *h, struct ibv_cq **cq, void **uctx)
{
	struct ev *e = evq_pop(&((struct schan *)h)->q, h->fd);
	if (!e)
		return -1;
	struct scq *q = e->cq;
	free(e);
	pthread_mutex_lock(&q->mu);
	q->delivered++;
	pthread_mutex_unlock(&q->mu);
	*cq = &q->c;
	*uctx = q->c.cq_context;
	return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *c, unsigned n)
{
	struct scq *q = (struct scq *)c;
	pthread_mutex_lock(&q->mu);
	q->acks += n;
	pthread_cond_broadcast(&q->acked);
	pthread_mutex_unlock(&q->mu);
}

static int sv_notify(struct ibv_cq *c, int solicited)
{
	struct scq *q = (struct scq *)c;
	pthread_mutex_lock(&q->mu);
	q->armed = solicited ? (q->armed == 1 ? 1 : 2) : 1;
	pthread_mutex_unlock(&q->mu);
	return 0;
}

static void cq_push(struct scq *q, const struct ibv_wc *wc, struct sqp *qp, int slots)
{
	pthread_mutex_lock(&q->mu);
	if (q->n == q->c.cqe) {
		struct ibv_async_event a = {.event_type = IBV_EVENT_CQ_ERR};
		a.element.cq = &q->c;
		pthread_mutex_unlock(&q->mu);
		fprintf(stderr, "softverbs[%d]: completion queue overrun (%d entries), completion lost\n",
			(int)me, q->c.cqe);
		evq_push(&((struct sctx *)q->c.context)->async, q->c.context->async_fd, &q->c, &a);
		return;
	}
	q->ring[(q->head + q->n) % q->c.cqe] = (struct cqe){*wc, qp, slots};
	q->n++;
	atomic_fetch_add(&n_cqe, 1);
	bool fire = q->c.channel && (q->armed == 1 || (q->armed == 2 && wc->status != IBV_WC_SUCCESS));
	if (fire)
		q->armed = 0;
	pthread_mutex_unlock(&q->mu);
	if (fire) {
		atomic_fetch_add(&n_ev, 1);
		evq_push(&((struct schan *)q->c.channel)->q, q->c.channel->fd, &q->c, NULL);
	}
}

static int sv_poll(struct ibv_cq *c, int n, struct ibv_wc *wc)
{
	struct scq *q = (struct scq *)c;
	int k = 0;
	if (!atomic_load(&q->n))
		return 0;
	pthread_mutex_lock(&q->mu);
	while (k < n && q->n) {
		struct cqe *e = &q->ring[q->head];
		wc[k++] = e->wc;
		if (e->wc.opcode & IBV_WC_RECV)
			__atomic_fetch_sub(&e->qp->rdepth, e->slots, __ATOMIC_SEQ_CST);
		else
			__atomic_fetch_sub(&e->qp->depth, e->slots, __ATOMIC_SEQ_CST);
		q->head = (q->head + 1) % q->c.cqe;
		q->n--;
	}
	pthread_mutex_unlock(&q->mu);
	return k;
}

static void cq_purge(struct scq *q, struct sqp *qp)
{
	pthread_mutex_lock(&q->mu);
	int keep = 0;
	for (int i = 0; i < q->n; i++) {
		struct cqe e = q->ring[(q->head + i) % q->c.cqe];
		if (e.qp != qp)
			q->ring[(q->head + keep++) % q->c.cqe] = e;
	}
	q->n = keep;
	pthread_mutex_unlock(&q->mu);
}

/* ------------------------------------------------------------ queue pairs */

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *ia)
{
	struct spd *p = (struct spd *)pd;
	struct sctx *x = (struct sctx *)pd->context;
	if (ia->qp_type != IBV_QPT_RC || ia->srq) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!ia->send_cq || !ia->recv_cq || ia->cap.max_send_wr > 16384 || ia->cap.max_recv_wr > 16384 ||
	    ia->cap.max_send_sge > MAXSGE || ia->cap.max_recv_sge > MAXSGE || ia->cap.max_inline_data > MAXINLINE) {
		errno = EINVAL;
		return NULL;
	}
	struct sqp *q = calloc(1, sizeof *q);
	reg_lock();
	for (int pass = 0; pass < 2 && !q->s; pass++) {
		for (uint32_t k = 0; k < NQ; k++) {
			struct qslot *s = &R->q[(R->qhint + k) % NQ];
			if (atomic_load(&s->qpn))
				continue;
			uint32_t i = s - R->q;
			R->qhint = i + 1;
			if (i >= R->qhigh)
				R->qhigh = i + 1;
			uint32_t gen = (s->gen + 1) & 0xff;
			memset(s, 0, sizeof *s);
			s->gen = gen;
			s->pid = me;
			s->start = mystart;
			s->pd = p->id;
			s->ip = C.ip + x->dev;
			atomic_store(&s->down, x->down);
			atomic_store(&s->state, IBV_QPS_RESET);
			atomic_store(&s->qpn, (i + 1) << 8 | gen); /* 24 bits, as on the wire */
			q->s = s;
			break;
		}
		if (!q->s)
			sweep();
	}
	reg_unlock();
	if (!q->s) {
		free(q);
		errno = ENOMEM;
		return NULL;
	}
	q->q.context = pd->context;
	q->q.qp_context = ia->qp_context;
	q->q.pd = pd;
	q->q.send_cq = ia->send_cq;
	q->q.recv_cq = ia->recv_cq;
	q->q.qp_num = q->s->qpn;
	q->q.handle = q->s - R->q;
	q->q.qp_type = IBV_QPT_RC;
	q->q.state = IBV_QPS_RESET;
	q->cap = ia->cap;
	q->sig_all = ia->sq_sig_all;
	q->pidfd = -1;
	atomic_fetch_add(&p->refs, 1);
	atomic_fetch_add(&((struct scq *)ia->send_cq)->refs, 1);
	atomic_fetch_add(&((struct scq *)ia->recv_cq)->refs, 1);
	atomic_fetch_add(&n_qp, 1);
	pthread_mutex_lock(&x->mu);
	if (!x->running) {
		sigset_t all, old; /* the host program's signals are not ours */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		x->running = pthread_create(&x->thread, NULL, engine, x) == 0;
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	q->next = x->qps;
	x->qps = q;
	pthread_mutex_unlock(&x->mu);
	dbg("create_qp %u send %u recv %u sge %u/%u inline %u sig_all %d", q->q.qp_num, q->cap.max_send_wr,
	    q->cap.max_recv_wr, q->cap.max_send_sge, q->cap.max_recv_sge, q->cap.max_inline_data, q->sig_all);
	return &q->q;
}

static void drop_work(struct sctx *x, struct sqp *q) /* x->mu held */
{
	while (q->busy)
		pthread_cond_wait(&x->idle, &x->mu);
	struct wri *w;
	while ((w = q->head)) {
		q->head = w->next;
		free(w);
	}
	q->tail = NULL;
	while ((w = q->rhead)) {
		q->rhead = w->next;
		free(w);
	}
	cq_purge((struct scq *)q->q.send_cq, q);
	cq_purge((struct scq *)q->q.recv_cq, q);
	q->depth = q->rdepth = q->unsig = 0;
	q->not_before = 0;
	if (q->pidfd >= 0)
		close(q->pidfd);
	q->pidfd = -1;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct sqp *q = (struct sqp *)qp;
	struct sctx *x = (struct sctx *)qp->context;
	pthread_mutex_lock(&x->mu);
	atomic_store(&q->s->state, IBV_QPS_ERR);
	struct sqp **pp = &x->qps;
	while (*pp != q)
		pp = &(*pp)->next;
	*pp = q->next;
	drop_work(x, q);
	pthread_mutex_unlock(&x->mu);
	atomic_store(&q->s->qpn, 0);
	atomic_fetch_sub(&((struct spd *)qp->pd)->refs, 1);
	atomic_fetch_sub(&((struct scq *)qp->send_cq)->refs, 1);
	atomic_fetch_sub(&((struct scq *)qp->recv_cq)->refs, 1);
	free(q);
	return 0;
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	struct sqp *q = (struct sqp *)qp;
	struct sctx *x = (struct sctx *)qp->context;
	struct qslot *s = q->s;
	int ret = EINVAL;
	pthread_mutex_lock(&x->mu);
	int cur = atomic_load(&s->state), to = mask & IBV_QP_STATE ? (int)a->qp_state : cur, need = 0;
	if (to == IBV_QPS_INIT && cur == IBV_QPS_RESET)
		need = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	else if (to == IBV_QPS_RTR && cur == IBV_QPS_INIT)
		need = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		       IBV_QP_MIN_RNR_TIMER;
	else if (to == IBV_QPS_RTS && cur == IBV_QPS_RTR)
		need = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
	else if (to != IBV_QPS_RESET && to != IBV_QPS_ERR &&
		 !(to == cur && (cur == IBV_QPS_INIT || cur == IBV_QPS_RTS)))
		goto out;
	if ((mask & need) != need)
		goto out;
	if ((mask & IBV_QP_PORT && a->port_num != 1) || (mask & IBV_QP_PKEY_INDEX && a->pkey_index))
		goto out;
	if (mask & IBV_QP_AV && (!a->ah_attr.is_global || a->ah_attr.grh.sgid_index >= NGID || a->ah_attr.port_num != 1))
		goto out;
	if (mask & IBV_QP_PATH_MTU && (a->path_mtu < IBV_MTU_256 || a->path_mtu > PORTMTU))
		goto out;
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC && a->max_rd_atomic > 16) ||
	    (mask & IBV_QP_MAX_DEST_RD_ATOMIC && a->max_dest_rd_atomic > 16))
		goto out;
	if (to == IBV_QPS_RESET) {
		atomic_store(&s->state, IBV_QPS_RESET);
		drop_work(x, q);
		memset(&q->attr, 0, sizeof q->attr);
		s->dest = s->access = 0;
	}
	if (mask & IBV_QP_PKEY_INDEX) q->attr.pkey_index = a->pkey_index;
	if (mask & IBV_QP_PORT) q->attr.port_num = a->port_num;
	if (mask & IBV_QP_ACCESS_FLAGS) s->access = q->attr.qp_access_flags = a->qp_access_flags;
	if (mask & IBV_QP_AV) q->attr.ah_attr = a->ah_attr;
	if (mask & IBV_QP_PATH_MTU) s->mtu = q->attr.path_mtu = a->path_mtu;
	if (mask & IBV_QP_DEST_QPN) s->dest = q->attr.dest_qp_num = a->dest_qp_num;
	if (mask & IBV_QP_RQ_PSN) s->rq_psn = q->attr.rq_psn = a->rq_psn;
	if (mask & IBV_QP_SQ_PSN) s->sq_psn = q->attr.sq_psn = a->sq_psn;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) q->attr.max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC) q->attr.max_rd_atomic = a->max_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER) q->attr.min_rnr_timer = a->min_rnr_timer;
	if (mask & IBV_QP_TIMEOUT) q->attr.timeout = a->timeout;
	if (mask & IBV_QP_RETRY_CNT) q->attr.retry_cnt = a->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY) q->attr.rnr_retry = a->rnr_retry;
	atomic_store(&s->state, to);
	q->q.state = to;
	q->not_before = 0;
	pthread_cond_broadcast(&x->work);
	ret = 0;
	dbg("modify_qp %u %d -> %d mask %#x access %#x mtu %d dest %u rq_psn %u sq_psn %u rd %d/%d rnr timer %d "
	    "timeout %d retry %d rnr retry %d sgid %d hop %d tclass %d sl %d dlid %d global %d",
	    qp->qp_num, cur, to, mask, s->access, s->mtu, s->dest, s->rq_psn, s->sq_psn, q->attr.max_rd_atomic,
	    q->attr.max_dest_rd_atomic, q->attr.min_rnr_timer, q->attr.timeout, q->attr.retry_cnt, q->attr.rnr_retry,
	    q->attr.ah_attr.grh.sgid_index, q->attr.ah_attr.grh.hop_limit, q->attr.ah_attr.grh.traffic_class,
	    q->attr.ah_attr.sl, q->attr.ah_attr.dlid, q->attr.ah_attr.is_global);
out:
	if (ret)
		dbg("modify_qp %u %d -> %d refused, mask %#x need %#x", qp->qp_num, cur, to, mask, need);
	pthread_mutex_unlock(&x->mu);
	return ret;
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *ia)
{
	struct sqp *q = (struct sqp *)qp;
	(void)mask;
	*a = q->attr;
	a->qp_state = a->cur_qp_state = qp->state = atomic_load(&q->s->state);
	a->cap = q->cap;
	if (ia)
		*ia = (struct ibv_qp_init_attr){.qp_context = qp->qp_context, .send_cq = qp->send_cq,
			.recv_cq = qp->recv_cq, .cap = q->cap, .qp_type = IBV_QPT_RC, .sq_sig_all = q->sig_all};
	return 0;
}

/* ------------------------------------------------------------- work queues */

static int sv_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct sqp *q = (struct sqp *)qp;
	struct sctx *x = (struct sctx *)qp->context;
	int ret = 0;
	pthread_mutex_lock(&x->mu);
	for (; wr; wr = wr->next) {
		int st = atomic_load(&q->s->state);
		if (st != IBV_QPS_RTS && st != IBV_QPS_ERR) {
			ret = EINVAL;
			break;
		}
		if (wr->opcode != IBV_WR_RDMA_WRITE && wr->opcode != IBV_WR_RDMA_READ) {
			ret = EOPNOTSUPP;
			break;
		}
		bool inl = wr->send_flags & IBV_SEND_INLINE;
		uint64_t len = 0;
		for (int i = 0; i < wr->num_sge; i++)
			len += wr->sg_list[i].length;
		if (wr->num_sge < 0 || (uint32_t)wr->num_sge > q->cap.max_send_sge || len > 1u << 31 ||
		    (inl && (wr->opcode == IBV_WR_RDMA_READ || len > q->cap.max_inline_data))) {
			ret = EINVAL;
			break;
		}
		if ((uint32_t)__atomic_load_n(&q->depth, __ATOMIC_SEQ_CST) >= q->cap.max_send_wr) {
			ret = ENOMEM;
			break;
		}
		struct wri *w = calloc(1, sizeof *w + (inl ? len : 0));
		w->wr_id = wr->wr_id;
		w->raddr = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
		w->op = wr->opcode;
		w->flags = wr->send_flags;
		w->nsge = wr->num_sge;
		w->len = (uint32_t)len;
		if (C.delay_us)
			w->ready = now_us() + C.delay_us;
		if (inl) {
			uint8_t *o = w->inl;
			for (int i = 0; i < wr->num_sge; i++) {
				memcpy(o, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
				o += wr->sg_list[i].length;
			}
		} else {
			memcpy(w->sge, wr->sg_list, wr->num_sge * sizeof *wr->sg_list);
		}
		if (q->head)
			q->tail->next = w;
		else
			q->head = w;
		q->tail = w;
		__atomic_fetch_add(&q->depth, 1, __ATOMIC_SEQ_CST);
	}
	if (ret && bad)
		*bad = wr;
	pthread_cond_signal(&x->work);
	pthread_mutex_unlock(&x->mu);
	return ret;
}

/* Receives are accepted so that they can be flushed; nothing ever fills them. */
static int sv_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sqp *q = (struct sqp *)qp;
	struct sctx *x = (struct sctx *)qp->context;
	int ret = 0;
	pthread_mutex_lock(&x->mu);
	for (; wr; wr = wr->next) {
		if (atomic_load(&q->s->state) == IBV_QPS_RESET)
			ret = EINVAL;
		else if ((uint32_t)q->rdepth >= q->cap.max_recv_wr)
			ret = ENOMEM;
		if (ret)
			break;
		struct wri *w = calloc(1, sizeof *w), **pp = &q->rhead;
		w->wr_id = wr->wr_id;
		while (*pp)
			pp = &(*pp)->next;
		*pp = w;
		__atomic_fetch_add(&q->rdepth, 1, __ATOMIC_SEQ_CST);
	}
	if (ret && bad)
		*bad = wr;
	pthread_cond_signal(&x->work);
	pthread_mutex_unlock(&x->mu);
	return ret;
}

/* Looks a key up; NULL unless it covers [addr, addr+len) for its owner. */
static struct mslot *find_mr(uint32_t key, int32_t pid, uint64_t start, uint32_t pd, uint64_t addr, uint64_t len,
			     uint32_t acc)
{
	uint32_t i = (key >> 8) - 1;
	if (i >= NM)
		return NULL;
	struct mslot *s = &R->m[i];
	if (atomic_load(&s->key) != key || s->pid != pid || s->start != start || s->pd != pd)
		return NULL;
	if ((s->access & acc) != acc || addr < s->iova || len > s->len || addr - s->iova > s->len - len)
		return NULL;
	return s;
}

enum { DONE, AGAIN };

static bool gid_is(const union ibv_gid *g, uint32_t ip)
{
	for (int i = 0; i < NGID; i++) {
		union ibv_gid t;
		gid_of(ip, i, &t);
		if (!memcmp(&t, g, sizeof t))
			return true;
	}
	return false;
}

/* Would a packet of this queue pair be answered?  If not the requester retries. */
static struct qslot *peer_of(struct sqp *q)
{
	uint32_t i = (q->s->dest >> 8) - 1;
	if (i >= NQ)
		return NULL;
	struct qslot *r = &R->q[i];
	uint32_t st = atomic_load(&r->state);
	if (atomic_load(&q->s->down) || atomic_load(&r->down))
		return NULL;
	if (atomic_load(&r->qpn) != q->s->dest || (st != IBV_QPS_RTR && st != IBV_QPS_RTS))
		return NULL;
	if (r->dest != q->q.qp_num || r->rq_psn != q->s->sq_psn || !gid_is(&q->attr.ah_attr.grh.dgid, r->ip))
		return NULL;
	if (q->pidfd < 0) {
		int fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
		if (fd >= 0 && !alive(r->pid, r->start)) {
			close(fd);
			fd = -1;
		}
		if ((q->pidfd = fd) < 0)
			return NULL;
	}
	struct pollfd p = {q->pidfd, POLLIN, 0};
	return poll(&p, 1, 0) == 0 ? r : NULL;
}

static int execute(struct sqp *q, struct wri *w, enum ibv_wc_status *st)
{
	bool rd = w->op == IBV_WR_RDMA_READ;
	struct iovec loc[MAXSGE], rem;
	int n = 0;
	if (atomic_load(&q->s->state) == IBV_QPS_ERR) {
		*st = IBV_WC_WR_FLUSH_ERR;
		return DONE;
	}
	if (w->flags & IBV_SEND_INLINE) {
		loc[n++] = (struct iovec){w->inl, w->len};
	} else {
		for (int i = 0; i < w->nsge; i++) {
			struct ibv_sge *g = &w->sge[i];
			if (!g->length)
				continue;
			struct mslot *m = find_mr(g->lkey, me, mystart, q->s->pd, g->addr, g->length,
						  rd ? IBV_ACCESS_LOCAL_WRITE : 0);
			if (!m) {
				*st = IBV_WC_LOC_PROT_ERR;
				return DONE;
			}
			loc[n++] = (struct iovec){(void *)(m->addr + (g->addr - m->iova)), g->length};
		}
	}
	struct qslot *r = peer_of(q);
	if (!r)
		goto silent;
	uint32_t acc = rd ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	if (!(r->access & acc) || (q->s->mtu > r->mtu && w->len > 128u << r->mtu)) {
		*st = IBV_WC_REM_INV_REQ_ERR;
		atomic_store(&r->state, IBV_QPS_ERR);
		return DONE;
	}
	if (w->len) {
		struct mslot *m = find_mr(w->rkey, r->pid, r->start, r->pd, w->raddr, w->len, acc);
		if (!m) {
			*st = IBV_WC_REM_ACCESS_ERR;
			atomic_store(&r->state, IBV_QPS_ERR); /* the responder's side fails too */
			return DONE;
		}
		rem = (struct iovec){(void *)(m->addr + (w->raddr - m->iova)), w->len};
		struct iovec *l = loc;
		while (rem.iov_len) {
			ssize_t k = rd ? process_vm_readv(r->pid, l, n, &rem, 1, 0)
				       : process_vm_writev(r->pid, l, n, &rem, 1, 0);
			if (k <= 0) {
				if (k < 0 && errno == ESRCH)
					goto silent;
				fprintf(stderr, "softverbs[%d]: copy %s process %d: %s\n", (int)me,
					rd ? "from" : "to", r->pid, k ? strerror(errno) : "nothing moved");
				*st = IBV_WC_REM_OP_ERR;
				return DONE;
			}
			rem.iov_base = (char *)rem.iov_base + k;
			rem.iov_len -= k;
			while (n && (size_t)k >= l->iov_len) {
				k -= l->iov_len;
				l++, n--;
			}
			if (n) {
				l->iov_base = (char *)l->iov_base + k;
				l->iov_len -= k;
			}
		}
	}
	atomic_fetch_add(rd ? &n_rd : &n_wr, 1);
	atomic_fetch_add(rd ? &b_rd : &b_wr, w->len);
	*st = IBV_WC_SUCCESS;
	return DONE;
silent:
	if (!w->deadline) { /* 4.096 us * 2^timeout, retry_cnt more tries; 0 means for ever */
		uint64_t us = q->attr.timeout ? (4096ull << q->attr.timeout) / 1000 * (q->attr.retry_cnt + 1) : ~0ull >> 2;
		if (C.retry_ms >= 0)
			us = C.retry_ms * 1000;
		w->deadline = now_us() + us;
	}
	if (now_us() < w->deadline)
		return AGAIN;
	*st = IBV_WC_RETRY_EXC_ERR;
	return DONE;
}

static void flush_recv(struct sqp *q)
{
	struct wri *w;
	while ((w = q->rhead)) {
		struct ibv_wc wc = {.wr_id = w->wr_id, .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV,
				    .qp_num = q->q.qp_num};
		q->rhead = w->next;
		cq_push((struct scq *)q->q.recv_cq, &wc, q, 1);
		free(w);
	}
}

/* Notices a port going down or up; x->mu held */
static void check_port(struct sctx *x)
{
	bool d = port_down(x->dev);
	if (d == x->down)
		return;
	x->down = d;
	for (struct sqp *q = x->qps; q; q = q->next)
		atomic_store(&q->s->down, d);
	struct ibv_async_event a = {.event_type = d ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE};
	a.element.port_num = 1;
	dbg("port of %s %s", devs[x->dev].name, d ? "down" : "up");
	evq_push(&x->async, x->c.async_fd, NULL, &a);
}

/* One thread per opened device plays the adapter: work is never done inside
 * ibv_post_send, so buffers really are in use until the completion. */
static void *engine(void *arg)
{
	struct sctx *x = arg;
	pthread_setname_np(pthread_self(), "softverbs");
	/* Users poll in tight loops; an adapter does not wait for a time slice. */
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -15);
	pthread_mutex_lock(&x->mu);
	while (!x->stop) {
		uint64_t now = now_us(), wake = ~0ull;
		struct sqp *q;
		bool did = false;
		if (now - x->checked >= 50000) {
			x->checked = now;
			check_port(x);
		}
		for (q = x->qps; q; q = q->next) {
			bool err = atomic_load(&q->s->state) == IBV_QPS_ERR;
			if (err && q->rhead)
				flush_recv(q);
			if (!q->head)
				continue;
			uint64_t t = q->head->ready > q->not_before ? q->head->ready : q->not_before;
			if (!err && t > now) {
				wake = t < wake ? t : wake;
				continue;
			}
			break;
		}
		if (q) {
			struct wri *w = q->head;
			enum ibv_wc_status st = IBV_WC_SUCCESS;
			q->head = w->next;
			if (!q->head)
				q->tail = NULL;
			q->busy = true;
			pthread_mutex_unlock(&x->mu);
			int r = execute(q, w, &st);
			pthread_mutex_lock(&x->mu);
			if (r == AGAIN) {
				w->next = q->head;
				q->head = w;
				if (!q->tail)
					q->tail = w;
				q->not_before = now_us() + 5000;
			} else {
				bool ok = st == IBV_WC_SUCCESS;
				if (!ok) {
					atomic_fetch_add(st == IBV_WC_WR_FLUSH_ERR ? &n_flush : &n_err, 1);
					if (st != IBV_WC_WR_FLUSH_ERR)
						dbg("qp %u op %d raddr %#lx len %u rkey %#x: %s", q->q.qp_num, w->op,
						    w->raddr, w->len, w->rkey, ibv_wc_status_str(st));
					atomic_store(&q->s->state, IBV_QPS_ERR);
				}
				q->unsig++;
				if (!ok || q->sig_all || w->flags & IBV_SEND_SIGNALED) {
					struct ibv_wc wc = {.wr_id = w->wr_id, .status = st, .byte_len = w->len,
							    .opcode = w->op == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ
												: IBV_WC_RDMA_WRITE,
							    .qp_num = q->q.qp_num};
					cq_push((struct scq *)q->q.send_cq, &wc, q, q->unsig);
					q->unsig = 0;
				}
				free(w);
			}
			q->busy = false;
			pthread_cond_broadcast(&x->idle);
			/* round robin: the served queue pair goes to the end */
			struct sqp **pp = &x->qps;
			while (*pp && *pp != q)
				pp = &(*pp)->next;
			if (*pp) {
				*pp = q->next;
				while (*pp)
					pp = &(*pp)->next;
				*pp = q;
				q->next = NULL;
			}
			did = true;
		}
		if (!did) {
			/* wake now and then: a peer may have put a queue pair in error, a port may change */
			uint64_t t = now + 50000;
			t = wake < t ? wake : t;
			struct timespec ts = {t / 1000000, t % 1000000 * 1000};
			pthread_cond_timedwait(&x->work, &x->mu, &ts);
		}
	}
	pthread_mutex_unlock(&x->mu);
	return NULL;
}

/* ---------------------------------------------------------------- strings */

EXPORT const char *ibv_wc_status_str(enum ibv_wc_status s)
{
	static const char *t[] = {
		"success", "local length error", "local QP operation error", "local EE context operation error",
		"local protection error", "work request flushed", "memory window bind error", "bad response",
		"local access error", "remote invalid request", "remote access error", "remote operation error",
		"transport retry counter exceeded", "RNR retry counter exceeded"};
	return (unsigned)s < sizeof t / sizeof *t ? t[s] : "other error";
}

EXPORT const char *ibv_event_type_str(enum ibv_event_type e)
{
	static const char *t[] = {"CQ error", "QP fatal error", "QP request error", "QP access error",
		"communication established", "send queue drained", "path migrated", "path migration error",
		"device fatal error", "port active", "port error", "LID change", "P_Key change", "SM change",
		"SRQ error", "SRQ limit", "last WQE reached", "client reregister", "GID change"};
	return (unsigned)e < sizeof t / sizeof *t ? t[e] : "unknown event";
}

EXPORT const char *ibv_node_type_str(enum ibv_node_type n) { return n == IBV_NODE_CA ? "InfiniBand channel adapter" : "unknown"; }
EXPORT const char *ibv_port_state_str(enum ibv_port_state s)
{
	return s == IBV_PORT_ACTIVE ? "active" : s == IBV_PORT_DOWN ? "down" : "unknown";
}

/* --------------------------------------------- path redirection (preload) */

/* Programs that look below /sys/class/infiniband or probe /dev/infiniband with
 * libc calls are shown the tree under $SOFTVERBS_DIR.  It works where this
 * library precedes libc in symbol lookup: LD_PRELOAD, or a direct link. */
static const char *redirect(const char *p, char *buf, size_t n)
{
	static const char sys[] = "/sys/class/infiniband/", dev[] = "/dev/infiniband/uverbs";
	if (!p || p[0] != '/')
		return p;
	if (!strncmp(p, sys, sizeof sys - 1)) {
		snprintf(buf, n, "%s%s", C.dir, p);
		return buf;
	}
	return strncmp(p, dev, sizeof dev - 1) ? p : "/dev/null";
}
#define REDIRECT(p) char rbuf_[PATH_MAX]; p = redirect(p, rbuf_, sizeof rbuf_)

EXPORT int stat(const char *restrict p, struct stat *restrict b) { REDIRECT(p); return fstatat(AT_FDCWD, p, b, 0); }
EXPORT int __xstat(int v, const char *p, struct stat *b) { (void)v; REDIRECT(p); return fstatat(AT_FDCWD, p, b, 0); }
EXPORT int access(const char *p, int m) { REDIRECT(p); return faccessat(AT_FDCWD, p, m, 0); }

EXPORT char *realpath(const char *restrict p, char *restrict out)
{
	static char *(*real)(const char *, char *);
	if (!real)
		real = (char *(*)(const char *, char *))dlsym(RTLD_NEXT, "realpath");
	REDIRECT(p);
	return real(p, out);
}

EXPORT FILE *fopen(const char *restrict p, const char *restrict m)
{
	static FILE *(*real)(const char *, const char *);
	if (!real)
		real = (FILE *(*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen");
	REDIRECT(p);
	return real(p, m);
}

EXPORT FILE *fopen64(const char *restrict p, const char *restrict m)
{
	static FILE *(*real)(const char *, const char *);
	if (!real)
		real = (FILE *(*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen64");
	REDIRECT(p);
	return real(p, m);
}

/* ------------------------------------------------------------- start, end */

__attribute__((constructor)) static void begin(void) { load_config(); }

/* Totals so far, at exit and whenever the last device is closed (a Go program
 * does not run destructors); nothing if no queue pair was ever made. */
static void report(void)
{
	static uint64_t last;
	uint64_t sum = n_qp + n_mr + n_cqe;
	if (!C.stats || !*C.stats || !n_qp || sum == last)
		return;
	last = sum;
	char line[512];
	int n = snprintf(line, sizeof line,
		"softverbs pid=%d qps=%lu mrs=%lu writes=%lu write_bytes=%lu reads=%lu read_bytes=%lu "
		"completions=%lu cq_events=%lu errors=%lu flushed=%lu\n",
		(int)me, n_qp, n_mr, n_wr, b_wr, n_rd, b_rd, n_cqe, n_ev, n_err, n_flush);
	int fd = C.stats[0] == '/' ? open(C.stats, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : 2;
	if (fd < 0 || write(fd, line, n) < 0)
		return;
	if (fd != 2)
		close(fd);
}

__attribute__((destructor)) static void end(void) { report(); }

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	(void)pd;
	(void)attr;
	errno = EOPNOTSUPP;
	return NULL;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	return EOPNOTSUPP;
}
