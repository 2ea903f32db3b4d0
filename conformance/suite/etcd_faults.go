package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcdSource is an etcd, of one member or several, that holds the policy of a master.
type etcdSource struct {
	*faults
	members cluster
	client  *clientv3.Client
}

var etcdFaults = []fault[*etcdSource]{
	{"etcd killed", func(_ context.Context, s *etcdSource) error {
		return s.members.killed(s.lasting)
	}, late},
	{"etcd stopped and continued", func(_ context.Context, s *etcdSource) error {
		return stopped(s.lasting, s.members.pids()...)
	}, usual},
	{"compacted and defragmented", func(ctx context.Context, s *etcdSource) error {
		var last int64
		for range 20 {
			r, err := s.client.Put(ctx, etcdKey, s.next())
			if err != nil {
				return err
			}
			last = r.Header.Revision
		}
		if _, err := s.client.Compact(ctx, last, clientv3.WithCompactPhysical()); err != nil {
			return err
		}
		for _, m := range s.members {
			if _, err := s.client.Defragment(ctx, m.client); err != nil {
				return err
			}
		}
		return nil
	}, usual},
	{"compacted while the connector is stopped", func(ctx context.Context, s *etcdSource) error {
		return s.stopConnector(func() error {
			for range 20 {
				r, err := s.client.Put(ctx, etcdKey, s.next())
				if err == nil {
					_, err = s.client.Compact(ctx, r.Header.Revision)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}, usual},
	{"key deleted", func(ctx context.Context, s *etcdSource) error {
		err := again(func() error { _, err := s.client.Delete(ctx, etcdKey); return err })
		s.pause()
		return err
	}, usual},
	{"garbage", func(ctx context.Context, s *etcdSource) error {
		err := again(func() error { _, err := s.client.Put(ctx, etcdKey, garbage()); return err })
		s.pause()
		return err
	}, usual},
	{"empty value", func(ctx context.Context, s *etcdSource) error {
		err := again(func() error { _, err := s.client.Put(ctx, etcdKey, ""); return err })
		s.pause()
		return err
	}, usual},
	{"connector killed", func(_ context.Context, s *etcdSource) error { return s.killConnector() }, deadly},
	{"connector stopped and continued", func(_ context.Context, s *etcdSource) error {
		return s.stopConnector(s.lasting)
	}, usual},
}

// clusterFaults are what can happen to a part of a cluster besides. With a majority left the
// source is not gone: what is written meanwhile has to be in force as soon as ever.
var clusterFaults = []fault[*etcdSource]{
	{"a member killed", func(ctx context.Context, s *etcdSource) error {
		return s.members[rand.IntN(len(s.members)):][:1].killed(func() error { return s.goesOn(ctx) })
	}, late},
	{"the leader killed", func(ctx context.Context, s *etcdSource) error {
		leader, err := s.leader(ctx)
		if err != nil {
			return err
		}
		return cluster{leader}.killed(func() error { return s.goesOn(ctx) })
	}, late},
	{"a member stopped and continued", func(ctx context.Context, s *etcdSource) error {
		return stopped(func() error { return s.goesOn(ctx) }, s.members[rand.IntN(len(s.members))].cmd.Process.Pid)
	}, usual},
	{"the leader stopped and continued", func(ctx context.Context, s *etcdSource) error {
		leader, err := s.leader(ctx)
		if err != nil {
			return err
		}
		return stopped(func() error { return s.goesOn(ctx) }, leader.cmd.Process.Pid)
	}, usual},
	{"the majority killed, then back", func(_ context.Context, s *etcdSource) error {
		some := s.members.shuffled()
		return some[:len(some)/2+1].killed(s.lasting)
	}, late},
	{"the majority stopped and continued", func(_ context.Context, s *etcdSource) error {
		some := s.members.shuffled()
		return stopped(s.lasting, some[:len(some)/2+1].pids()...)
	}, late},
	{"a member after the other killed", func(_ context.Context, s *etcdSource) error {
		for _, m := range s.members {
			if err := (cluster{m}).killed(s.lasting); err != nil {
				return err
			}
		}
		return nil
	}, late},
}

// goesOn writes a document to what is left of a cluster and waits until it is in force.
func (s *etcdSource) goesOn(ctx context.Context) error {
	if err := writeOver(ctx, s.client, s.next()); err != nil {
		return fmt.Errorf("the rest of the cluster does not take a document: %w", err)
	}
	stored := time.Now()
	if err := s.settled(converge); err != nil {
		return fmt.Errorf("with one member gone: %w", err)
	}
	s.during = max(s.during, time.Since(stored))
	return nil
}

// leader is the member that leads.
func (s *etcdSource) leader(ctx context.Context) (*member, error) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, m := range s.members {
			limited, cancel := context.WithTimeout(ctx, time.Second)
			status, err := s.client.Status(limited, m.client)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				return m, nil
			}
		}
	}
	return nil, errors.New("the cluster has no leader for 10 s")
}

// again repeats what a cluster on a busy machine may refuse for a while: its leader changes, or
// its disk is slow. What is repeated must come to the same whether it was done once or twice.
func again(f func() error) error {
	var err error
	for range 5 {
		if err = f(); err == nil {
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	return err
}

// garbage is no policy.
func garbage() string {
	texts := []string{"\x00\xff\xfe", "version: 1\ntenants:\n  - name: tenant-a\n    quota: -1\n", "version: 7\n", "[", "version: 1\ntenants:\n  - name: tenant-a\n"}
	return texts[rand.IntN(len(texts))]
}

// etcdFaultRounds makes one thing after the other go wrong with an etcd or its connector.
func etcdFaultRounds(ctx context.Context, e *environment, args []string) error {
	flags, set := newFaultFlags("etcd-faults")
	members := flags.Int("members", 1, "members of the etcd cluster; with several, some of them are hit too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, c, err := e.etcds(ctx, *members)
	if err != nil {
		return err
	}
	defer all.kill()
	defer c.Close()
	s := &etcdSource{faults: &faults{seen: map[int]bool{}}, members: all, client: c}
	if err := write(ctx, c, s.next()); err != nil {
		return err
	}
	if s.master, err = e.startOn(ctx, all); err != nil {
		return err
	}
	defer s.master.kill()
	list := etcdFaults
	if *members > 1 {
		list = append(list[:len(list):len(list)], clusterFaults...)
	}
	return suffer(ctx, s.faults, s, list, set, func(ctx context.Context, text string) error { return writeOver(ctx, c, text) })
}
