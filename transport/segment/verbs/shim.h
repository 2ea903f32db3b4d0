// What Go calls: few calls, each doing much.
#pragma once
#include <infiniband/verbs.h>
#include <stdint.h>

struct mv_device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
};

struct mv_limits {
	uint64_t region;
	int qps, work, completions, reads, reads_master, ports;
};

struct mv_port {
	int state, mtu, infiniband;
	uint32_t message;
	uint16_t lid;
};

struct mv_gid {
	uint8_t raw[16];
	uint32_t index, type, interface;
};

struct mv_path {
	uint8_t gid[16];
	uint32_t number;
	uint16_t lid;
	int port, gid_index, mtu, hop_limit, traffic_class, service_level, reads, timeout, retries;
};

struct mv_work { // verbs.Work
	uint64_t id, local, remote;
	uint32_t length, lkey, rkey, opcode;
};

struct mv_completion { // verbs.Completion
	uint64_t id;
	uint32_t status, queue;
};

struct mv_event {
	int type, port;
	uint32_t queue;
	const char *name;
};

// All return 0, or an error number, unless they say otherwise.
int mv_open(struct mv_device *d, struct ibv_device *device, int completions);
int mv_close(struct mv_device *d);
int mv_limits(struct mv_device *d, struct mv_limits *l);
int mv_port(struct mv_device *d, int number, struct mv_port *p);
// The number of entries, or a negative error number.
int mv_gids(struct mv_device *d, int port, struct mv_gid *g, int max);
int mv_register(struct mv_device *d, void *at, uint64_t length, int access, struct ibv_mr **mr);
int mv_queue_pair(struct mv_device *d, int send, int receive, int elements, int inl, struct ibv_qp **qp);
int mv_init(struct ibv_qp *qp, int port);
int mv_connect(struct ibv_qp *qp, const struct mv_path *p);
int mv_fail(struct ibv_qp *qp);
// Posts in order, as much as is taken; *posted says how much that is.
int mv_post(struct ibv_qp *qp, const struct mv_work *w, int n, int *posted);
// Polls; negative on failure.
int mv_poll(struct mv_device *d, struct mv_completion *c, int max);
// Takes the events of the channel if woken, polls, and if there is nothing arms the channel and polls again.
int mv_next(struct mv_device *d, int woken, struct mv_completion *c, int max);
// Takes one event without waiting: EAGAIN if there is none.
int mv_event(struct mv_device *d, struct mv_event *e);
