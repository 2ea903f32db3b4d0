package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func (v *values) get() *cobra.Command {
	return &cobra.Command{
		Use:   "get KEY [FILE]",
		Short: "Write the value of a key to a file, or to standard output",
		Long: `Write the value of a key to standard output where no FILE is named or it is -. A FILE is replaced
only when the whole value has arrived.`,
		Example: "  mooncakectl get page-1 page.bin --tenant tenant-a",
		Args:    takes(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, key := cmd.Context(), args[0]
			toFile := len(args) == 2 && args[1] != "-" && args[1] != "/dev/stdout"
			if v.t.json && !toFile {
				return misused("--output=json: the value itself goes to standard output").hinting("mooncakectl get %s FILE -o json says how it went", key)
			}
			c, err := v.dial(ctx)
			if err != nil {
				return err
			}
			defer c.Close()
			shown := v.t.flow("get "+key, 0)
			defer shown.end()
			fetch := func(to io.Writer) (uint64, error) {
				n, err := c.GetTo(ctx, key, io.MultiWriter(to, shown))
				shown.end()
				return n, v.about(ctx, key, err)
			}
			if !toFile {
				out := v.t.stdout
				if len(args) == 1 && v.t.terminals[0] {
					out = &readable{Writer: out}
				}
				_, err := fetch(out)
				return err
			}
			n, err := replaceFile(args[1], fetch)
			if err != nil {
				return err
			}
			if v.t.json {
				return v.t.printJSON(struct {
					stored
					File string `json:"file"`
				}{stored{v.tenant, key, n}, args[1]})
			}
			v.t.note("%s of %s of tenant %s are in %s", size(n), printable(key), printable(v.tenant), args[1])
			return nil
		},
	}
}

// replaceFile puts what fill writes in the place of a file, whole or not at all.
func replaceFile(name string, fill func(io.Writer) (uint64, error)) (n uint64, err error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return 0, failed("%s: it is a folder", name)
	} else if err == nil && !info.Mode().IsRegular() { // a device or a pipe can't be replaced
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return 0, failed("%v", err)
		}
		n, err = fill(f)
		return n, errors.Join(err, f.Close())
	}
	if to, err := filepath.EvalSymlinks(name); err == nil { // a link stays, what it leads to is replaced
		name = to
	}
	part := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%08x.part", filepath.Base(name), rand.Uint32()))
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return 0, failed("%v", err)
	}
	n, err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(part, name)
	}
	if err != nil {
		os.Remove(part)
	}
	return n, err
}

// readable is a terminal, which is given text only.
type readable struct {
	io.Writer
	cut []byte // the beginning of a character whose end comes with the next piece
}

// Write writes text; it fails for what is none.
func (r *readable) Write(b []byte) (int, error) {
	rest := append(r.cut, b...)
	for len(rest) > 0 && utf8.FullRune(rest) {
		c, n := utf8.DecodeRune(rest)
		if c == utf8.RuneError && n == 1 || !unicode.IsPrint(c) && !unicode.IsSpace(c) {
			return 0, failed("the value is no text, and standard output is a terminal").hinting("name a FILE, or - to have it here all the same")
		}
		rest = rest[n:]
	}
	r.cut = rest
	return r.Writer.Write(b)
}
