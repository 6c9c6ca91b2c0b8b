package main

import "fmt"

var limit = 20

func fib(n int) int {
	a, b := 0, 1
	for n > 0 {
		a, b = b, a+b
		n--
	}
	return a
}

func main() {
	for i := 0; i < limit; i++ {
		fmt.Println("fib", i, fib(i))
	}
}
