// Package structpack speaks struct_pack, the serialization of the Mooncake Store protocol.
//
// A body is a type hash, an optional metainfo byte, an optional total length, an optional
// type literal, the ordinary payload and, for types that have compatible fields, the
// compatible part. Literal and hash are computed from the Go type, so that a type that is
// declared wrongly is refused by every peer and by one test, and never half understood.
//
// For each Go type a plan is compiled once, by reflection; after that a value is read or
// written by walking the plan over its memory. In steady state that allocates nothing:
// slices are reused, and decoded strings alias the body. The price is a rule of ownership:
// what Decode stores in a value belongs to the body and to the value, and is good only until
// either is used again. Who keeps a string, a slice or the target of a pointer clones it.
//
// How Go types stand for wire types:
//
//   - bool, sized integers, floats, string, []T and nested structs stand for themselves;
//     struct{} is void;
//   - *T is optional<T>;
//   - a struct whose first field is _ struct{} with the tag pack:"expected", followed by Code
//     and Value, is expected<Value, Code>, and holds a value exactly when Code is zero (an
//     error of number zero, which nobody means, is read as a number that is no code);
//   - with pack:"variant", followed by Index uint8 and the alternatives (T or *T), it is a
//     variant;
//   - with pack:"map", followed by Entries, a slice of struct{Key K; Value V}, it is a map
//     whose order is kept;
//   - with pack:"trivial" it is an aggregate of scalars copied as memory, padding included;
//   - a pointer field tagged pack:"compat=N" is a compatible field of version N; nil is
//     absent.
//
// Plans are immutable and cached; everything here may be used by any number of goroutines at
// once, as long as no two of them touch the same value. The only lock guards the cache.
package structpack
