package policy

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Store keeps the last good policy across restarts.
type Store interface {
	// Load returns what was saved last, nil when there is nothing of this source. An error
	// says why what is there can't be used.
	Load() (*Stored, error)
	// Save replaces it, durably and as a whole.
	Save(Stored) error
}

// Stored is a policy that was in force.
type Stored struct {
	Document
	// Time is when the source was last known to hold it.
	Time time.Time
}

// FileStore is a Store in one file of a folder. A policy of another source is not used.
type FileStore struct {
	// Dir is the folder; it must exist.
	Dir string
	// Type, URI and ClusterID name the source.
	Type, URI, ClusterID string
}

const (
	// StoreName is the name of the file.
	StoreName  = "tenant_quota_policy"
	storeMagic = "mooncake tenant quota policy, format 1, sha256 of all below: "
)

// storeHeader is the second line of the file; the document follows. The first holds the hash.
type storeHeader struct {
	Type      string    `json:"type"`
	URI       string    `json:"uri"`
	ClusterID string    `json:"cluster_id"`
	Revision  string    `json:"revision"`
	Time      time.Time `json:"time"`
}

// Load implements Store.
func (f *FileStore) Load() (*Stored, error) {
	path := filepath.Join(f.Dir, StoreName)
	unfinished, _ := filepath.Glob(filepath.Join(f.Dir, "."+StoreName+"-*"))
	for _, left := range unfinished { // by a process that was killed while it saved
		_ = os.Remove(left) // it does no harm
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	sum := sha256.Sum256(rest)
	if string(first) != storeMagic+hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%s: not a stored policy, or damaged", path)
	}
	line, document, _ := bytes.Cut(rest, []byte("\n"))
	var h storeHeader
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("%s: line 2: %w", path, err)
	}
	var other []string
	for _, x := range []struct{ what, is, want string }{{"type", h.Type, f.Type}, {"uri", h.URI, f.URI}, {"cluster id", h.ClusterID, f.ClusterID}} {
		if x.is != x.want {
			other = append(other, fmt.Sprintf("%s %q, not %q", x.what, x.is, x.want))
		}
	}
	if other != nil {
		return nil, fmt.Errorf("%s: the policy of another source (%s)", path, strings.Join(other, "; "))
	}
	return &Stored{Document: Document{Content: document, Revision: h.Revision}, Time: h.Time}, nil
}

// Save implements Store: whoever reads the file sees the old policy or the new one.
func (f *FileStore) Save(s Stored) (err error) {
	header, err := json.Marshal(storeHeader{Type: f.Type, URI: f.URI, ClusterID: f.ClusterID, Revision: s.Revision, Time: s.Time.UTC()})
	if err != nil {
		return err
	}
	header = append(header, '\n')
	sum := sha256.New()
	sum.Write(header)
	sum.Write(s.Content)
	file, err := os.CreateTemp(f.Dir, "."+StoreName+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	w := bufio.NewWriter(file)
	_, _ = fmt.Fprintf(w, "%s%x\n", storeMagic, sum.Sum(nil)) // errors stay with w until it is flushed
	_, _ = w.Write(header)
	_, _ = w.Write(s.Content)
	if err := errors.Join(w.Flush(), file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), filepath.Join(f.Dir, StoreName)); err != nil {
		return err
	}
	dir, err := os.Open(f.Dir)
	if err != nil {
		return nil // it is in place; only its durability is not certain
	}
	_ = dir.Sync()
	return dir.Close()
}
