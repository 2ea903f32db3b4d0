package rdma

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment/verbs"
)

func gid(t *testing.T, text string) (g verbs.GID) {
	t.Helper()
	ip := net.ParseIP(text).To16()
	if ip == nil {
		t.Fatal(text)
	}
	copy(g[:], ip)
	return g
}

func TestChoosingAGID(t *testing.T) {
	const rdma1, rdma2, ib = verbs.GIDRoCE1, verbs.GIDRoCE2, verbs.GIDInfiniBand
	type entry struct {
		text  string
		kind  verbs.GIDType
		iface int
	}
	two := 2
	for name, c := range map[string]struct {
		table []entry
		index *int
		want  int // -1: none
	}{
		"a usual RoCE card":                  {[]entry{{"fe80::1", rdma1, 1}, {"fe80::1", rdma2, 1}, {"127.0.0.1", rdma1, 1}, {"127.0.0.1", rdma2, 1}}, nil, 3},
		"the first of equals":                {[]entry{{"::", rdma2, 0}, {"192.0.2.1", rdma2, 1}, {"192.0.2.2", rdma2, 1}}, nil, 1},
		"with a network device":              {[]entry{{"192.0.2.1", rdma2, 0}, {"192.0.2.2", rdma2, 1}}, nil, 1},
		"public without before private":      {[]entry{{"10.0.0.1", rdma2, 1}, {"192.0.2.2", rdma2, 0}}, nil, 1},
		"private before link-local":          {[]entry{{"169.254.1.1", rdma2, 1}, {"fe80::1", rdma2, 1}, {"172.16.0.9", rdma2, 1}}, nil, 2},
		"link-local with before without":     {[]entry{{"10.0.0.1", rdma2, 0}, {"fe80::1", rdma2, 1}}, nil, 1},
		"private before link-local, without": {[]entry{{"fe80::1", rdma2, 0}, {"100.64.0.1", rdma2, 0}}, nil, 1},
		"not on an overlay":                  {[]entry{{"192.0.2.1", rdma2, 7}, {"10.0.0.1", rdma2, 1}}, nil, 1},
		"InfiniBand":                         {[]entry{{"fe80::1", ib, 0}}, nil, 0},
		"RoCE v1 for want of better":         {[]entry{{"::", rdma1, 0}, {"192.0.2.1", rdma1, 1}, {"192.0.2.2", rdma1, 1}}, nil, 1},
		"what was asked for":                 {[]entry{{"192.0.2.1", rdma2, 1}, {"fe80::1", rdma2, 1}, {"fe80::1", rdma1, 1}}, &two, 2},
		"what isn't there":                   {[]entry{{"192.0.2.1", rdma2, 1}}, &two, -1},
		"nothing":                            {[]entry{{"::", rdma2, 1}}, nil, -1},
	} {
		var table []verbs.GIDEntry
		for i, e := range c.table {
			table = append(table, verbs.GIDEntry{Index: i, GID: gid(t, e.text), Type: e.kind, Interface: e.iface})
		}
		got, err := chooseGID(table, c.index, func(i int) string { return map[int]string{1: "eth0", 7: "docker0"}[i] })
		if c.want < 0 && err == nil || c.want >= 0 && (err != nil || got.Index != c.want) {
			t.Errorf("%s: %d, %v, want %d", name, got.Index, err, c.want)
		}
	}
}

func TestTheMatrixOfAMachine(t *testing.T) {
	sys := t.TempDir()
	for name, text := range map[string]string{
		"class/infiniband/a/device/numa_node": "0\n", "class/infiniband/b/device/numa_node": "1\n", "class/infiniband/c/device/numa_node": "-1\n",
		"devices/system/node/node0/x": "", "devices/system/node/node1/x": "", "devices/system/node/node10/x": "",
	} {
		if err := os.MkdirAll(filepath.Join(sys, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sys, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	m := arrange(nodes(sys), []string{"b", "a", "c", "nowhere"}, func(d string) int { return nodeOf(sys, d) })
	want := matrix{
		"cpu:0":  {{"a", "c", "nowhere"}, {"b"}},
		"cpu:1":  {{"b", "c", "nowhere"}, {"a"}},
		"cpu:10": {{"c", "nowhere"}, {"b", "a"}},
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%v, want %v", m, want)
	}
	if got, want := m.order(), []string{"a", "c", "nowhere", "b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("devices are counted %v, want %v", got, want)
	}
	less := m.only(func(d string) bool { return d == "b" })
	if text, _ := json.Marshal(less); string(text) != `{"cpu:0":[[],["b"]],"cpu:1":[["b"],[]],"cpu:10":[[],["b"]]}` {
		t.Errorf("with one device: %s", text)
	}
	for place, want := range map[string]struct {
		names []string
		level []int
	}{
		"cpu:1": {[]string{"b", "c", "nowhere", "a"}, []int{0, 0, 0, 1}},
		"*":     {[]string{"a", "c", "nowhere", "b"}, []int{0, 0, 0, 0}},
		"gpu:3": {[]string{"a", "c", "nowhere", "b"}, []int{0, 0, 0, 0}},
	} {
		if names, level := m.choices(place); !reflect.DeepEqual(names, want.names) || !reflect.DeepEqual(level, want.level) {
			t.Errorf("%s: %v %v, want %v", place, names, level, want)
		}
	}
	if got := nodes(t.TempDir()); !reflect.DeepEqual(got, []int{0}) {
		t.Errorf("a machine that shows no nodes has %v", got)
	}
}

func TestOptions(t *testing.T) {
	var o Options
	topology := filepath.Join(t.TempDir(), "topology.json")
	if err := os.WriteFile(topology, []byte(`{"cpu:0":[["a"],[]]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"MC_CUSTOM_TOPO_JSON": topology,
		"MC_GID_INDEX":        "0", "MC_IB_PORT": "2", "MC_MTU": "1024", "MC_NUM_QP_PER_EP": "4", "MC_SLICE_SIZE": "65536", "MC_RETRY_CNT": "3",
		"MC_IB_TC": "96", "MC_IB_SL": "3", "MC_MAX_WR": "128", "MC_MAX_CQE_PER_CTX": "1000", "MC_MAX_EP_PER_CTX": "7", "MC_RDMA_RAIL_PAUSE_SECONDS": "2",
	}
	if err := o.Environment(func(name string) string { return env[name] }); err != nil {
		t.Fatal(err)
	}
	zero := 0
	want := Options{
		GIDIndex: &zero, Port: 2, MTU: 1024, QueuePairs: 4, SliceSize: 65536, Tries: 3, TrafficClass: 96, ServiceLevel: 3,
		Matrix: map[string][][]string{"cpu:0": {{"a"}, {}}}, QueueDepth: 128, Completions: 1000, Endpoints: 7, RailPause: 2 * time.Second,
	}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("%+v, want %+v", o, want)
	}
	env = map[string]string{"MC_CUSTOM_TOPO_JSON": topology + "x"}
	if err := o.Environment(func(name string) string { return env[name] }); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "MC_CUSTOM_TOPO_JSON") {
		t.Errorf("%v", err)
	}
	if err := o.Environment(func(string) string { return "many" }); err == nil || !strings.Contains(err.Error(), `="many": it must be a number`) {
		t.Errorf("%v", err)
	}
	for name, o := range map[string]Options{
		"MC_IB_PORT": {Port: 256}, "MC_MTU": {MTU: 100}, "MC_NUM_QP_PER_EP": {QueuePairs: -1}, "MC_SLICE_SIZE": {SliceSize: 1}, "MC_GID_INDEX": {GIDIndex: new(int)},
	} {
		if o.GIDIndex != nil {
			*o.GIDIndex = -1
		}
		if err := o.complete(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var usual Options
	if err := usual.complete(); err != nil || usual.QueuePairs != 2 || usual.Tries != 9 || usual.Completions != 4096 || usual.QueueDepth != 256 || usual.Sysfs != "/sys" {
		t.Errorf("%+v, %v", usual, err)
	}
}
