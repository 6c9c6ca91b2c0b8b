int is_prime(int n) {
    if (n < 2) {
        return 0;
    }
    for (int i = 2; i * i <= n; i = i + 1) {
        int rest = n - (n / i) * i;
        if (rest == 0) {
            return 0;
        }
    }
    return 1;
}

int count_primes(int limit) {
    int count = 0;
    for (int n = 2; n < limit; n = n + 1) {
        count = count + is_prime(n);
    }
    return count;
}

void main() {
    print_number(count_primes(100));
}
