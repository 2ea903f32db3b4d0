package weight

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"strconv"
	"strings"
)

// Identity names one revision of one weight resource. A revision that is imported again has
// another generation.
type Identity struct {
	TenantID         string
	Namespace        string
	ResourceID       string
	Revision         string
	WeightGeneration uint64
}

// clone returns an identity of its own memory.
func (id *Identity) clone() Identity {
	return Identity{strings.Clone(id.TenantID), strings.Clone(id.Namespace), strings.Clone(id.ResourceID), strings.Clone(id.Revision), id.WeightGeneration}
}

// compare orders identities by their fields, in the order declared.
func (id *Identity) compare(b *Identity) int {
	for _, pair := range [...][2]string{{id.TenantID, b.TenantID}, {id.Namespace, b.Namespace}, {id.ResourceID, b.ResourceID}, {id.Revision, b.Revision}} {
		if c := strings.Compare(pair[0], pair[1]); c != 0 {
			return c
		}
	}
	switch {
	case id.WeightGeneration < b.WeightGeneration:
		return -1
	case id.WeightGeneration > b.WeightGeneration:
		return 1
	}
	return 0
}

// PayloadGroup returns the id of the group that the objects of a revision are written with.
func (id *Identity) PayloadGroup() string {
	h := sha256.New()
	for _, part := range [...]string{id.TenantID, id.Namespace, id.ResourceID, id.Revision, strconv.FormatUint(id.WeightGeneration, 10)} {
		measured(h, part)
	}
	return "weight:" + hex.EncodeToString(h.Sum(nil))
}

// ManifestKey returns the key of the object that describes a revision.
func (id *Identity) ManifestKey() string {
	return "weights/" + segment(id.Namespace) + "/" + segment(id.ResourceID) + "/" + segment(id.Revision) + "/" +
		strconv.FormatUint(id.WeightGeneration, 10) + "/manifest"
}

// KeysDigest returns the digest of the keys of a revision's payload, in any order.
func KeysDigest(keys []string) string {
	keys = slices.Clone(keys)
	slices.Sort(keys)
	h := sha256.New()
	for _, k := range keys {
		measured(h, k)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// measured adds a text with its length to a digest, so that no two lists of texts look the same.
func measured(h hash.Hash, s string) {
	_, _ = h.Write([]byte(strconv.Itoa(len(s)) + ":" + s + "\n")) // a digest takes everything
}

// segment writes a name as one segment of a path.
func segment(s string) string {
	const upper = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.~", c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', upper[c>>4], upper[c&15]})
		}
	}
	return b.String()
}

// component reports whether a text may be a part of an identity, or the holder of a lease: 1 to
// 1024 bytes without control characters.
func component(s string) bool {
	if s == "" || len(s) > 1024 {
		return false
	}
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// digest reports whether a text is a SHA-256 in lower-case hexadecimal.
func digest(s string) bool {
	if len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}
