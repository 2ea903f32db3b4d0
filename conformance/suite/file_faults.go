package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// fileSource is a policy file, by the path the master was given. Its folder is one of its own.
type fileSource struct {
	*faults
	path  string
	saves int // how often it was saved, in turn in each of the styles
}

// save writes a document in the next of the ways in which people save.
func (s *fileSource) save(text string) error {
	s.saves++
	return editStyles[s.saves%len(editStyles)].save(s.path, text, s.saves)
}

// aside takes the file out of its place while something is done, and removes what was put there.
func (s *fileSource) aside(do func() error) error {
	if err := os.Rename(s.path, s.path+".aside"); err != nil {
		return err
	}
	return errors.Join(do(), os.RemoveAll(s.path), os.Rename(s.path+".aside", s.path))
}

// pieces writes a document through f piece by piece, each after a pause. Beginnings of it are
// valid documents that nobody meant.
func pieces(f *os.File, text string, pause time.Duration) error {
	for len(text) > 0 {
		n := min(len(text), 5+rand.IntN(20))
		if _, err := f.WriteString(text[:n]); err != nil {
			return errors.Join(err, f.Close())
		}
		text = text[n:]
		if text != "" {
			time.Sleep(pause)
		}
	}
	return f.Close()
}

var fileFaults = []fault[*fileSource]{
	{"connector killed", func(_ context.Context, s *fileSource) error { return s.killConnector() }, deadly},
	{"connector stopped and continued", func(_ context.Context, s *fileSource) error {
		return s.stopConnector(s.lasting)
	}, usual},
	{"saved while the connector is stopped", func(_ context.Context, s *fileSource) error {
		return s.stopConnector(func() error {
			for range 20 {
				if err := s.save(s.next()); err != nil {
					return err
				}
			}
			return nil
		})
	}, usual},
	{"connector killed while the file is gone", func(_ context.Context, s *fileSource) error {
		return s.aside(func() error { s.pause(); return s.killConnector() })
	}, deadly},
	{"file gone and put back", func(_ context.Context, s *fileSource) error { return s.aside(s.lasting) }, usual},
	{"folder moved away and back", func(_ context.Context, s *fileSource) error {
		folder := filepath.Dir(s.path)
		if err := os.Rename(folder, folder+".away"); err != nil {
			return err
		}
		s.pause()
		return os.Rename(folder+".away", folder)
	}, usual},
	{"another folder under the same name", func(_ context.Context, s *fileSource) error {
		folder := filepath.Dir(s.path)
		if err := os.Rename(folder, folder+".away"); err != nil {
			return err
		}
		s.pause()
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
		return errors.Join(save(s.path, s.next()), os.RemoveAll(folder+".away"))
	}, usual},
	{"garbage", func(_ context.Context, s *fileSource) error {
		err := s.save(garbage())
		s.pause()
		return err
	}, usual},
	{"no bytes", func(_ context.Context, s *fileSource) error {
		err := s.save("")
		s.pause()
		return err
	}, usual},
	{"half of it, the rest later", func(_ context.Context, s *fileSource) error {
		text := s.next()
		// At least the dash: what ends before it is a whole document, of one tenant less.
		cut := strings.Index(text, "  - name: tenant-b") + len("  -") + rand.IntN(len(" name: tenant-b\n"))
		if err := os.WriteFile(s.path, []byte(text[:cut]), 0o644); err != nil {
			return err
		}
		s.pause()
		f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text[cut:])
		return errors.Join(err, f.Close())
	}, usual},
	{"slow disk: written anew in pieces", func(_ context.Context, s *fileSource) error {
		f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		return pieces(f, s.next(), rand.N(300*time.Millisecond))
	}, usual},
	{"slow disk: written over in pieces", func(_ context.Context, s *fileSource) error {
		f, err := os.OpenFile(s.path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		text := s.next()
		return errors.Join(pieces(f, text, rand.N(300*time.Millisecond)), os.Truncate(s.path, int64(len(text))))
	}, usual},
	{"no room: cut off, then complete", func(_ context.Context, s *fileSource) error {
		// What a writer leaves who truncates and then finds the disk full.
		err := os.Truncate(s.path, 0)
		s.pause()
		return err
	}, usual},
	{"a folder in its place", func(_ context.Context, s *fileSource) error {
		return s.aside(func() error { defer s.pause(); return os.MkdirAll(filepath.Join(s.path, "within"), 0o755) })
	}, usual},
	{"may not be read", func(_ context.Context, s *fileSource) error {
		// Root may all the same; see the next one.
		err := os.Chmod(s.path, 0)
		s.pause()
		return errors.Join(err, os.Chmod(s.path, 0o644))
	}, usual},
	{"every read fails", func(_ context.Context, s *fileSource) error {
		// A regular file by its mode, at whose beginning there is nothing: EIO.
		return s.aside(func() error { defer s.pause(); return os.Symlink("/proc/self/mem", s.path) })
	}, usual},
	{"a link to itself", func(_ context.Context, s *fileSource) error {
		return s.aside(func() error { defer s.pause(); return os.Symlink(filepath.Base(s.path), s.path) })
	}, usual},
	{"a pipe in its place", func(_ context.Context, s *fileSource) error {
		return s.aside(func() error { defer s.pause(); return syscall.Mkfifo(s.path, 0o644) })
	}, usual},
	{"a link that is swapped", func(_ context.Context, s *fileSource) error {
		// As a ConfigMap is published: the file by way of a link to a folder, which is replaced.
		folder := filepath.Dir(s.path)
		data := filepath.Join(folder, "..data")
		publish := func(version string) error {
			if err := os.Mkdir(filepath.Join(folder, version), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, version, "tenants.yaml"), []byte(s.next()), 0o644); err != nil {
				return err
			}
			return errors.Join(os.Symlink(version, data+".new"), os.Rename(data+".new", data))
		}
		if err := publish("..1"); err != nil {
			return err
		}
		if err := errors.Join(os.Symlink("..data/tenants.yaml", s.path+".link"), os.Rename(s.path+".link", s.path)); err != nil {
			return err
		}
		s.pause()
		if err := publish("..2"); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(folder, "..1")); err != nil {
			return err
		}
		s.pause()
		// A plain file again.
		err := save(s.path, s.next())
		return errors.Join(err, os.RemoveAll(data), os.RemoveAll(filepath.Join(folder, "..2")))
	}, usual},
	{"an editor's backup and a new file", func(_ context.Context, s *fileSource) error {
		if err := os.Rename(s.path, s.path+"~"); err != nil {
			return err
		}
		s.pause()
		return errors.Join(os.WriteFile(s.path, []byte(s.next()), 0o644), os.Remove(s.path+"~"))
	}, usual},
	{"a storm of saves", func(_ context.Context, s *fileSource) error {
		for range 100 {
			if err := s.save(s.next()); err != nil {
				return err
			}
		}
		return nil
	}, usual},
}

// fileFaultRounds makes one thing after the other go wrong with a policy file or its connector.
func fileFaultRounds(ctx context.Context, e *environment, args []string) error {
	flags, set := newFaultFlags("file-faults")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder := filepath.Join(e.dir, "policies")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	s := &fileSource{faults: &faults{seen: map[int]bool{}}, path: filepath.Join(folder, "tenants.yaml")}
	if err := save(s.path, s.next()); err != nil {
		return err
	}
	var err error
	if s.master, err = e.start(ctx, "--enable_multi_tenants=true", "--tenant_quota_connector_type=file", "--tenant_quota_connector_uri="+s.path); err != nil {
		return err
	}
	defer s.master.kill()
	err = suffer(ctx, s.faults, s, fileFaults, set, func(_ context.Context, text string) error { return s.save(text) })
	if err != nil {
		return err
	}
	return leftovers(folder)
}

// leftovers says which files a connector has left in the folder of a policy.
func leftovers(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".mooncake-") {
			errs = append(errs, fmt.Errorf("%s is left in %s", entry.Name(), folder))
		}
	}
	return errors.Join(errs...)
}
