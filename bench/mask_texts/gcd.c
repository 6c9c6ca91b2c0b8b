int gcd(int a, int b) {
    while (b != 0) {
        int rest = a - (a / b) * b;
        a = b;
        b = rest;
    }
    return a;
}

int lcm(int a, int b) {
    int divisor = gcd(a, b);
    if (divisor == 0) {
        return 0;
    }
    return a / divisor * b;
}
