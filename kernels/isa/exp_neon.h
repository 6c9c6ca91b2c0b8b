// The exponential function of four numbers, on AArch64 (isa/exp.h). A copy in each file, as exp_scalar.h says.

#ifndef TREEFILL_ISA_EXP_NEON_H_
#define TREEFILL_ISA_EXP_NEON_H_

#include <arm_neon.h>

#include "isa/exp.h"

namespace treefill {
namespace {

inline float32x4_t exponential(float32x4_t x) {
  x = vmaxnmq_f32(x, vdupq_n_f32(kExpMin));  // the bound, where x is not a number
  x = vminnmq_f32(x, vdupq_n_f32(kExpMax));
  const float32x4_t n = vrndnq_f32(vmulq_f32(x, vdupq_n_f32(kLog2E)));
  float32x4_t r = vfmaq_f32(x, n, vdupq_n_f32(-kLn2High));
  r = vfmaq_f32(r, n, vdupq_n_f32(-kLn2Low));
  float32x4_t y = vdupq_n_f32(kExp0);
  y = vfmaq_f32(vdupq_n_f32(kExp1), y, r);
  y = vfmaq_f32(vdupq_n_f32(kExp2), y, r);
  y = vfmaq_f32(vdupq_n_f32(kExp3), y, r);
  y = vfmaq_f32(vdupq_n_f32(kExp4), y, r);
  y = vfmaq_f32(vdupq_n_f32(kExp5), y, r);
  y = vaddq_f32(vfmaq_f32(r, y, vmulq_f32(r, r)), vdupq_n_f32(1.0f));
  const int32x4_t bits = vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23);
  return vmulq_f32(y, vreinterpretq_f32_s32(bits));
}

}  // namespace
}  // namespace treefill

#endif  // TREEFILL_ISA_EXP_NEON_H_
