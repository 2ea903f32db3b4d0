// Package pattern searches object keys with regular expressions in the dialect of the C++
// standard library: the ECMAScript grammar of std::regex as libstdc++ implements it, on single
// bytes, in the C locale of x86-64, unanchored. Clients of the store have patterns that rely on
// that dialect, its refusals and its oddities included.
//
// A pattern goes through three steps. parse.go reads it by the rules of the dialect and refuses
// what the dialect refuses; translate.go writes the parsed tree as an expression for the
// regexp2 engine, spelled so that every construct means the same there; pattern.go runs it under
// a time limit. The engine never sees the caller's text, so none of its own syntax leaks through.
//
// Invariants: Compile takes time and memory linear in the pattern, whatever its repeats say;
// neither Compile nor Match panics; Match ends soon after its limit.
//
// Where results differ from the original on purpose:
//   - Patterns longer than MaxLength, nested deeper than maxDepth or translated to more than
//     maxTranslated bytes are refused. The original has no such bounds and exhausts its stack.
//   - A search has a time limit; the original has none. Some patterns that take the original
//     exponential time, (a+)+$ for one, are simplified by the engine and answered at once.
//   - A lookahead whose match is given up again also gives up what it captured. In the original
//     such captures stay behind, so that a later back reference may succeed: (?:(?=(a))b|a)\1
//     finds "aa" there, but not here.
//   - A number that does not fit 31 bits, in a repeat or a back reference, is refused. Older
//     builds of the original wrap it around.
//
// There are no locks: a Pattern belongs to one goroutine at a time.
package pattern
