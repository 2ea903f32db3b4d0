package connector

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Names of flags, for messages.
const (
	flagType   = "--tenant_quota_connector_type"
	flagURI    = "--tenant_quota_connector_uri"
	flagDir    = "--tenant_quota_connector_dir"
	flagSHA256 = "--tenant_quota_connector_sha256"
	flagMemory = "--tenant_quota_connector_memory_limit"
	flagStart  = "--tenant_quota_connector_start_timeout"
)

// program is an executable found and checked, for one launch.
type program struct {
	path string // resolved
	args []string
	file *os.File // set when what was hashed has to be what is executed
	own  bool     // it is the master's own executable
}

// command makes what starts the program; close must come after the start.
func (p *program) command() *exec.Cmd {
	cmd := exec.Command(p.path, p.args...)
	if p.file != nil {
		// The child sees our descriptors until it is another program; this one is then closed.
		cmd.Path = fmt.Sprintf("/proc/self/fd/%d", p.file.Fd())
	}
	return cmd
}

func (p *program) close() {
	if p != nil && p.file != nil {
		_ = p.file.Close() // only read
	}
}

// shown is how messages call the program: nothing for the master's own.
func (p *program) shown() string {
	if p == nil || p.own {
		return ""
	}
	return " " + p.path
}

// findError is why there is no program; it names the flag.
type findError struct{ text string }

func (e *findError) Error() string { return e.text }

func notFound(flag, value, format string, args ...any) error {
	return &findError{flag + "=" + value + ": " + fmt.Sprintf(format, args...)}
}

// find looks for the executable of the type, as it is now, and checks it. The errors are
// *findError.
func (s Spec) find(self []string) (*program, error) {
	for _, stock := range s.Stock {
		if stock != s.Type {
			continue
		}
		if self == nil {
			own, err := ownExecutable()
			if err != nil {
				return nil, notFound(flagType, s.Type, "the master's own executable is not found: %v", err)
			}
			self = []string{own}
		}
		args := append(append([]string{}, self[1:]...), "connector", "serve", s.Type)
		p := &program{path: self[0], args: args, own: true}
		if s.SHA256 == "" {
			return p, nil
		}
		return p, s.pin(p)
	}
	p, err := s.findInDir()
	if err != nil {
		return nil, err
	}
	if s.SHA256 != "" {
		if err := s.pin(p); err != nil {
			return nil, err
		}
	}
	if p.file == nil { // it is executed by its path, which nobody may change meanwhile
		if err := s.checkFolders(filepath.Dir(p.path)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// findInDir finds mooncake-connector-<type> in the folder, links resolved.
func (s Spec) findInDir() (*program, error) {
	if s.Type == "" || filepath.Base(s.Type) != s.Type || s.Type[0] == '.' {
		return nil, notFound(flagType, s.Type, "unsupported tenant quota connector type '%s': not a plain name", s.Type)
	}
	if s.Dir == "" {
		return nil, notFound(flagType, s.Type, "unsupported tenant quota connector type '%s': the master serves %v itself; for others set %s to the folder of mooncake-connector-%s",
			s.Type, s.Stock, flagDir, s.Type)
	}
	bad := func(format string, args ...any) error {
		return notFound(flagDir, s.Dir, "unsupported tenant quota connector type '%s': "+format, append([]any{s.Type}, args...)...)
	}
	folder, err := filepath.Abs(s.Dir)
	if err == nil {
		folder, err = filepath.EvalSymlinks(folder)
	}
	if err != nil {
		return nil, bad("%v", err)
	}
	name := filepath.Join(folder, "mooncake-connector-"+s.Type)
	path, err := filepath.EvalSymlinks(name)
	switch _, none := os.Lstat(name); {
	case errors.Is(none, fs.ErrNotExist):
		return nil, bad("there is no %s; %s", name, offered(folder))
	case errors.Is(err, fs.ErrNotExist):
		return nil, bad("%s is a link to something that is not there", name)
	case err != nil:
		return nil, bad("%s: %v", name, err)
	}
	if !strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/") {
		return nil, bad("%s is a link to %s, which is outside the folder; put the executable itself there", name, path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, bad("%v", err)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return nil, bad("%s is not an executable file", path)
	}
	if why := tooOpen(info); why != "" {
		return nil, bad("%s %s", path, why)
	}
	return &program{path: path}, nil
}

// offered names the types that a folder has executables for.
func offered(folder string) string {
	found, _ := filepath.Glob(filepath.Join(folder, "mooncake-connector-*"))
	if len(found) == 0 {
		return "the folder holds no mooncake-connector-TYPE at all"
	}
	for i, path := range found {
		found[i] = strings.TrimPrefix(filepath.Base(path), "mooncake-connector-")
	}
	const most = 10
	if more := len(found) - most; more > 0 {
		found = append(found[:most], fmt.Sprintf("%d more", more))
	}
	return "the folder has " + strings.Join(found, ", ")
}

// checkFolders refuses folders, from the executable's upwards, in which somebody else could
// put another file in its place.
func (s Spec) checkFolders(folder string) error {
	for {
		info, err := os.Stat(folder)
		if err != nil {
			return notFound(flagDir, s.Dir, "%v", err)
		}
		why := tooOpen(info)
		if why != "" && info.Mode()&fs.ModeSticky != 0 && strings.Contains(why, "written") {
			why = "" // entries of others can't be replaced in such a folder
		}
		if why != "" {
			return notFound(flagDir, s.Dir, "the folder %s %s", folder, why)
		}
		up := filepath.Dir(folder)
		if up == folder {
			return nil
		}
		folder = up
	}
}

// tooOpen says why others than root and we could change a file, "" if they can't.
func tooOpen(info fs.FileInfo) string {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok && sys.Uid != 0 && int(sys.Uid) != os.Geteuid() {
		return fmt.Sprintf("belongs to user %d, it must belong to root or to the user the master runs as (%d)", sys.Uid, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Sprintf("may be written by others than its owner (mode %04o), which would let them run code as the master: chmod go-w", mode)
	}
	return ""
}

// pin checks the hash of a program and, unless it is a script, keeps the file open so that
// what was read is what is executed. A script's interpreter opens the path again.
func (s Spec) pin(p *program) error {
	want, err := hex.DecodeString(s.SHA256)
	if err != nil || len(want) != sha256.Size {
		return notFound(flagSHA256, s.SHA256, "want %d hexadecimal digits, got %d characters; compute them with: sha256sum %s", 2*sha256.Size, len(s.SHA256), p.path)
	}
	f, err := os.Open(p.path)
	if err != nil {
		return notFound(flagSHA256, s.SHA256, "%v", err)
	}
	p.file = f
	fail := func(format string, args ...any) error {
		p.close()
		p.file = nil
		return notFound(flagSHA256, s.SHA256, format, args...)
	}
	if info, err := f.Stat(); err != nil || !p.own && tooOpen(info) != "" {
		return fail("%s was changed while it was looked at", p.path)
	}
	var begin [2]byte
	n, err := io.ReadFull(f, begin[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fail("%v", err)
	}
	sum := sha256.New()
	sum.Write(begin[:n])
	if _, err := io.Copy(sum, f); err != nil {
		return fail("%v", err)
	}
	if is := sum.Sum(nil); string(is) != string(want) {
		return fail("%s has another SHA-256: expected %x, found %x; it was replaced or damaged, or the flag is for another version (compute it with: sha256sum %s)", p.path, want, is, p.path)
	}
	if string(begin[:]) == "#!" || !executesDescriptors() {
		p.close()
		p.file = nil
	}
	return nil
}

// executesDescriptors reports whether a program can be started by a descriptor.
func executesDescriptors() bool {
	_, err := os.Stat("/proc/self/fd")
	return err == nil
}

// OwnCommand is the running program with other arguments, nil if its executable is not found.
func OwnCommand(args ...string) []string {
	own, err := ownExecutable()
	if err != nil {
		return nil
	}
	return append([]string{own}, args...)
}

// ownExecutable is the way to the running program. Linux has one that leads to the very same
// file even when another version was installed over it since.
func ownExecutable() (string, error) {
	const same = "/proc/self/exe"
	if _, err := os.Stat(same); err == nil {
		return same, nil
	}
	return os.Executable()
}
