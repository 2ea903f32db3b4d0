package pattern

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// MaxLength is the longest pattern that Compile accepts, in bytes.
const MaxLength = 64 << 10

// maxTranslated is the longest expression handed to the engine, in bytes. Only a pattern close to
// MaxLength that is full of ^, \b or \B in lookaheads comes to more.
const maxTranslated = 1 << 20

// clockPeriod is how often the engine's clock advances, and so how much later than its limit a
// search may end. The engine's default of 100 ms is too coarse for limits of about a second.
const clockPeriod = 10 * time.Millisecond

// maxLimit keeps limits clear of the engine's value for "no limit".
const maxLimit = time.Hour

// highRunes is added to bytes from 0x80 on before the engine sees them. It moves them to a
// private area of Unicode, where no rune is a letter, digit or space to the engine, as no such
// byte is one in the C locale.
const highRunes = 0xe000

// timeoutText begins the only message with which the engine says that the time was up; it has
// no typed error for that.
const timeoutText = "match timeout"

// ErrTimeout is returned by Match when the search needs longer than its limit.
var ErrTimeout = errors.New("search with a regular expression exceeded its time limit")

// The period is a plain variable of the engine, read by its clock goroutine: it has to be set
// before the first search starts that goroutine.
func init() {
	regexp2.SetTimeoutCheckPeriod(clockPeriod)
}

// Pattern is a compiled regular expression. It keeps scratch memory between searches and must
// not be used by two goroutines at once.
type Pattern struct {
	engine *regexp2.Regexp
	runes  []rune
}

// Compile prepares a pattern for searches. A pattern that the dialect does not allow, or that is
// too long or too deeply nested, yields a *SyntaxError.
func Compile(pattern string) (p *Pattern, err error) {
	if len(pattern) > MaxLength {
		return nil, &SyntaxError{
			Offset: MaxLength,
			Reason: fmt.Sprintf("pattern of %d bytes, at most %d are allowed", len(pattern), MaxLength),
		}
	}
	tree, err := parse(pattern)
	if err != nil {
		return nil, err
	}
	text := translate(tree)
	if len(text) > maxTranslated {
		return nil, &SyntaxError{
			Offset: len(pattern),
			Reason: fmt.Sprintf("pattern takes %d bytes for the engine, at most %d are allowed", len(text), maxTranslated),
		}
	}
	// The text comes from a client: a defect of the engine must cost that one call, not the
	// process.
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("regular expression engine failed to compile the pattern: %v", r)
		}
	}()
	engine, err := regexp2.Compile(text, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("regular expression engine refused the translated pattern: %w", err)
	}
	return &Pattern{engine: engine}, nil
}

// Match reports whether the pattern is found anywhere in the key. A search that takes longer than
// limit ends with ErrTimeout, a few tens of milliseconds late at most for keys of ordinary length;
// a limit of zero or less yields ErrTimeout at once, and one beyond an hour counts as an hour.
//
// The engine measures limits with one background goroutine for the process, which ends by itself
// about a second after the last limit; see StopClock.
func (p *Pattern) Match(key string, limit time.Duration) (found bool, err error) {
	if limit <= 0 {
		return false, ErrTimeout
	}
	defer func() {
		if r := recover(); r != nil {
			found, err = false, fmt.Errorf("regular expression engine failed on a key of %d bytes: %v", len(key), r)
		}
	}()
	p.runes = p.runes[:0]
	for i := range len(key) {
		p.runes = append(p.runes, runeOf(key[i]))
	}
	p.engine.MatchTimeout = min(limit, maxLimit)
	found, err = p.engine.MatchRunes(p.runes)
	if err == nil {
		return found, nil
	}
	// The engine's message quotes the whole key, so it is not passed on.
	if strings.HasPrefix(err.Error(), timeoutText) {
		return false, ErrTimeout
	}
	return false, fmt.Errorf("regular expression engine gave up on a key of %d bytes", len(key))
}

// StopClock ends the goroutine that measures the limits of all Patterns and waits for it. It is
// for the shutdown of a process and for tests that look for leaked goroutines, and must not run
// while a Match does. The next Match starts the goroutine again.
func StopClock() {
	regexp2.StopTimeoutClock()
}

// runeOf returns the rune that stands for a byte in the engine.
func runeOf(b byte) rune {
	if b < 0x80 {
		return rune(b)
	}
	return highRunes + rune(b)
}
