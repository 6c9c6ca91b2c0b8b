float clamp(float value, float low, float high) {
    if (value < low) {
        return low;
    } else {
        if (value > high) {
            return high;
        }
    }
    return value;
}

float settle(float start, float target, int steps) {
    float heat = start;
    int step = 0;
    while (step < steps) {
        float change = (target - heat) / 4;
        heat = clamp(heat + change, -40, 120);
        report(step, heat);
        step = step + 1;
    }
    return heat;
}
