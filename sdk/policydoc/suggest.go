package policydoc

// suggest returns the known key nearest to a mistyped one, or "" when none is near.
func suggest(key string, known []string) string {
	best, at := "", 3
	for _, k := range known {
		if d := distance(key, k); d < at && d < len(k)-1 {
			best, at = k, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of neighbours between two
// short words. Long words are not worth comparing.
func distance(a, b string) int {
	if len(a) > 24 {
		return len(a)
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	next := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if lower(a[i-1]) == lower(b[j-1]) {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && lower(a[i-1]) == lower(b[j-2]) && lower(a[i-2]) == lower(b[j-1]) {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
