//go:build rdma && cgo

#include "shim.h"

#include <errno.h>
#include <string.h>

static int failed(void) { return errno ? errno : EIO; }

int mv_close(struct mv_device *d)
{
	int e = 0, r;
	if (d->cq && (r = ibv_destroy_cq(d->cq)))
		e = r;
	if (d->channel && (r = ibv_destroy_comp_channel(d->channel)))
		e = r;
	if (d->pd && (r = ibv_dealloc_pd(d->pd)))
		e = r;
	if (d->context && (r = ibv_close_device(d->context)))
		e = r;
	memset(d, 0, sizeof *d);
	return e;
}

int mv_open(struct mv_device *d, struct ibv_device *device, int completions)
{
	struct ibv_device_attr a;
	memset(d, 0, sizeof *d);
	errno = 0;
	if (!(d->context = ibv_open_device(device)))
		return failed();
	if (!ibv_query_device(d->context, &a) && a.max_cqe > 0 && completions > a.max_cqe)
		completions = a.max_cqe;
	errno = 0;
	if (!(d->pd = ibv_alloc_pd(d->context)) ||
	    !(d->channel = ibv_create_comp_channel(d->context)) ||
	    !(d->cq = ibv_create_cq(d->context, completions, NULL, d->channel, 0))) {
		int e = failed();
		mv_close(d);
		return e;
	}
	return 0;
}

int mv_limits(struct mv_device *d, struct mv_limits *l)
{
	struct ibv_device_attr a;
	int e = ibv_query_device(d->context, &a);
	if (e)
		return e;
	*l = (struct mv_limits){a.max_mr_size, a.max_qp, a.max_qp_wr, a.max_cqe, a.max_qp_rd_atom,
				a.max_qp_init_rd_atom, a.phys_port_cnt};
	return 0;
}

int mv_port(struct mv_device *d, int number, struct mv_port *p)
{
	struct ibv_port_attr a;
	memset(&a, 0, sizeof a);
	int e = ibv_query_port(d->context, number, &a);
	if (e)
		return e;
	*p = (struct mv_port){a.state, a.active_mtu ? 128 << a.active_mtu : 0, a.link_layer == IBV_LINK_LAYER_INFINIBAND,
			      a.max_msg_sz, a.lid};
	return 0;
}

int mv_gids(struct mv_device *d, int port, struct mv_gid *g, int max)
{
	struct ibv_gid_entry e[256];
	ssize_t n = ibv_query_gid_table(d->context, e, sizeof e / sizeof *e, 0);
	int k = 0;
	if (n < 0)
		return (int)n;
	for (ssize_t i = 0; i < n && k < max; i++) {
		if (e[i].port_num != (uint32_t)port)
			continue;
		memcpy(g[k].raw, e[i].gid.raw, 16);
		g[k].index = e[i].gid_index;
		g[k].type = e[i].gid_type;
		g[k].interface = e[i].ndev_ifindex;
		k++;
	}
	return k;
}

int mv_register(struct mv_device *d, void *at, uint64_t length, int access, struct ibv_mr **mr)
{
	errno = 0;
	*mr = ibv_reg_mr(d->pd, at, length, access);
	return *mr ? 0 : failed();
}

int mv_queue_pair(struct mv_device *d, int send, int receive, int elements, int inl, struct ibv_qp **qp)
{
	struct ibv_qp_init_attr a = {.send_cq = d->cq, .recv_cq = d->cq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = send, .max_recv_wr = receive, .max_send_sge = elements, .max_recv_sge = elements,
			.max_inline_data = inl}};
	errno = 0;
	*qp = ibv_create_qp(d->pd, &a);
	return *qp ? 0 : failed();
}

int mv_init(struct ibv_qp *qp, int port)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = port,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_ATOMIC};
	return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static enum ibv_mtu mtu_of(int bytes)
{
	enum ibv_mtu m = IBV_MTU_256;
	while (m < IBV_MTU_4096 && 256 << m <= bytes)
		m++;
	return m;
}

int mv_connect(struct ibv_qp *qp, const struct mv_path *p)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR, .path_mtu = mtu_of(p->mtu), .dest_qp_num = p->number,
		.max_dest_rd_atomic = p->reads, .min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .dlid = p->lid, .sl = p->service_level, .port_num = p->port,
			.grh = {.sgid_index = p->gid_index, .hop_limit = p->hop_limit, .traffic_class = p->traffic_class}}};
	memcpy(a.ah_attr.grh.dgid.raw, p->gid, 16);
	int e = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
	if (e)
		return e;
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = p->timeout, .retry_cnt = p->retries, .rnr_retry = 7,
		.max_rd_atomic = p->reads};
	return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		IBV_QP_MAX_QP_RD_ATOMIC);
}

int mv_fail(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
	return ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

enum { CHAIN = 64 };

int mv_post(struct ibv_qp *qp, const struct mv_work *w, int n, int *posted)
{
	struct ibv_send_wr wr[CHAIN], *bad;
	struct ibv_sge sge[CHAIN];
	*posted = 0;
	while (n > 0) {
		int k = n < CHAIN ? n : CHAIN;
		memset(wr, 0, k * sizeof *wr);
		for (int i = 0; i < k; i++) {
			sge[i] = (struct ibv_sge){w[i].local, w[i].length, w[i].lkey};
			wr[i].wr_id = w[i].id;
			wr[i].next = i + 1 < k ? &wr[i + 1] : NULL;
			wr[i].sg_list = w[i].length ? &sge[i] : NULL;
			wr[i].num_sge = w[i].length ? 1 : 0;
			wr[i].opcode = w[i].opcode;
			wr[i].send_flags = IBV_SEND_SIGNALED;
			wr[i].wr.rdma.remote_addr = w[i].remote;
			wr[i].wr.rdma.rkey = w[i].rkey;
		}
		int e = ibv_post_send(qp, wr, &bad);
		if (e) {
			*posted += bad - wr;
			return e;
		}
		*posted += k;
		w += k;
		n -= k;
	}
	return 0;
}

int mv_poll(struct mv_device *d, struct mv_completion *c, int max)
{
	struct ibv_wc wc[CHAIN];
	int n = ibv_poll_cq(d->cq, max < CHAIN ? max : CHAIN, wc);
	for (int i = 0; i < n; i++)
		c[i] = (struct mv_completion){wc[i].wr_id, wc[i].status, wc[i].qp_num};
	return n;
}

int mv_next(struct mv_device *d, int woken, struct mv_completion *c, int max)
{
	if (woken) {
		struct ibv_cq *cq;
		void *of;
		int events = 0;
		while (!ibv_get_cq_event(d->channel, &cq, &of)) // the descriptor doesn't block
			events++;
		if (events)
			ibv_ack_cq_events(d->cq, events);
	}
	int n = mv_poll(d, c, max);
	if (n)
		return n;
	if (ibv_req_notify_cq(d->cq, 0))
		return -1;
	return mv_poll(d, c, max);
}

int mv_event(struct mv_device *d, struct mv_event *e)
{
	struct ibv_async_event a;
	errno = 0;
	if (ibv_get_async_event(d->context, &a))
		return failed();
	*e = (struct mv_event){.type = a.event_type, .name = ibv_event_type_str(a.event_type)};
	switch (a.event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_PATH_MIG_ERR:
		e->queue = a.element.qp->qp_num;
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_GID_CHANGE:
		e->port = a.element.port_num;
		break;
	default:
		break;
	}
	ibv_ack_async_event(&a);
	return 0;
}
