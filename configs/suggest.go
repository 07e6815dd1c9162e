package configs

// nearest returns the known name that name was probably meant to be, or "".
func nearest(name string, known []string) string {
	best, limit := "", max(2, len(name)/4)+1
	for _, k := range known {
		if d := distance(name, k); d < limit {
			best, limit = k, d
		}
	}
	return best
}

// distance counts the insertions, deletions and replacements between two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
