// The exponential function, one number at a time (isa/exp.h).
//
// In an unnamed namespace, as its neighbours are: each file that includes it has a copy of its own, so none with other
// instructions can take its place.

#ifndef TREEFILL_ISA_EXP_SCALAR_H_
#define TREEFILL_ISA_EXP_SCALAR_H_

#include <stdint.h>

#include "isa/exp.h"

namespace treefill {
namespace {

inline float exponential(float x) {
  x = x > kExpMin ? x : kExpMin;  // what is not a number, too: it must not be cast to an integer
  x = x < kExpMax ? x : kExpMax;
  const float n = __builtin_nearbyintf(x * kLog2E);
  float r = __builtin_fmaf(n, -kLn2High, x);
  r = __builtin_fmaf(n, -kLn2Low, r);
  float y = kExp0;
  y = __builtin_fmaf(y, r, kExp1);
  y = __builtin_fmaf(y, r, kExp2);
  y = __builtin_fmaf(y, r, kExp3);
  y = __builtin_fmaf(y, r, kExp4);
  y = __builtin_fmaf(y, r, kExp5);
  y = __builtin_fmaf(y, r * r, r) + 1.0f;
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float power;
  __builtin_memcpy(&power, &bits, sizeof power);
  return y * power;
}

}  // namespace
}  // namespace treefill

#endif  // TREEFILL_ISA_EXP_SCALAR_H_
