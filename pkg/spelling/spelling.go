// SPDX-License-Identifier: Apache-2.0

// Package spelling owns the answer to "did you mean": which of some known words somebody has most probably meant by
// one that is not among them.
//
// It must not know what the words are for; whoever asks has them, and says what follows.
//
// It stands beside the walks: flags, commands, keys of topologies and of parameters, and names of drivers are told of when they are wrong.
package spelling

import "strings"

// mostChanges is how many letters may differ, and one in so many of the word at most.
const mostChanges, oneIn = 3, 3

// Nearest is the candidate that takes the fewest changes of letters, empty when all take too many: a hint that
// is wrong is worse than none.
func Nearest(word string, candidates []string) string {
	word = plain(word)
	best, fewest := "", min(mostChanges, len(word)/oneIn)+1
	for _, candidate := range candidates {
		if d := distance(word, plain(candidate)); d < fewest {
			best, fewest = candidate, d
		}
	}
	return best
}

// plain drops what people mix up without noticing.
func plain(word string) string { return strings.ToLower(strings.ReplaceAll(word, "_", "-")) }

// distance counts the letters to insert, drop, replace or swap with their neighbour, to get from one word to another.
func distance(from, to string) int {
	a, b := []rune(from), []rune(to)
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
