package core

import (
	"encoding/binary"
	"fmt"
	"path"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// SharedFolder is the folder of the file system that all clients share in which objects are kept, or ""
// if there is none.
func (m *Master) SharedFolder() string {
	if m.tier.shared == nil || m.cfg.Disk.ClusterID == "" {
		return ""
	}
	return m.cfg.Disk.Root + "/" + m.cfg.Disk.ClusterID
}

// filePath returns what says where in that folder a tenant's objects lie: in one of 16 folders in one
// of 16, as the released masters have it. They give the same key of two tenants the same file; here those of tenants
// other than the default one have names of their own.
func (m *Master) filePath(tenantName string) func(key string) string {
	return func(key string) string {
		file, hash := fileName(key), stringHash(key)
		if tenantName != tenant.Default {
			hash = stringHash(tenantName + "\x00" + key)
			file = fmt.Sprintf("%s@%s@%016x", fileName(tenantName), file, hash)
		}
		return path.Join(m.cfg.Disk.Root, m.cfg.Disk.ClusterID, letter(hash), letter(hash>>4), file)
	}
}

func letter(hash uint64) string { return string(rune('a' + hash&15)) }

// fileName is a key without what file systems forbid.
func fileName(key string) string {
	if key == "." || key == ".." {
		return strings.Repeat("_", len(key))
	}
	name := []byte(key)
	for i, c := range name {
		if strings.IndexByte("\x00/\\:*?\"<>|", c) >= 0 {
			name[i] = '_'
		}
	}
	return string(name)
}

// stringHash is the hash by which the released masters, and clients, find the folder of a key: the 64-bit
// MurmurHash2, as the GNU C++ library seeds it.
func stringHash(s string) uint64 {
	const mul, seed = 0xc6a4a7935bd1e995, 0xc70f6907
	hash := uint64(seed) ^ uint64(len(s))*mul
	for ; len(s) >= 8; s = s[8:] {
		v := binary.LittleEndian.Uint64([]byte(s[:8])) * mul
		hash = (hash ^ (v^v>>47)*mul) * mul
	}
	if len(s) > 0 {
		var rest [8]byte
		copy(rest[:], s)
		hash = (hash ^ binary.LittleEndian.Uint64(rest[:])) * mul
	}
	hash = (hash ^ hash>>47) * mul
	return hash ^ hash>>47
}
