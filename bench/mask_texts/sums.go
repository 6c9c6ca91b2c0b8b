package sums

func Max(a int, b int) int {
	if a > b {
		return a
	}
	return b
}

func Sum(values []int) int {
	total := 0
	for i := 0; i < len(values); i++ {
		total += values[i]
	}
	return total
}
