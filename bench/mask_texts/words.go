package words

import "strings"

func Count(text string) map[string]int {
	counts := map[string]int{}
	for _, word := range strings.Fields(text) {
		if len(word) > 3 {
			counts[strings.ToLower(word)]++
		}
	}
	return counts
}
