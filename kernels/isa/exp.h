// The exponential function's constants, shared by the instruction sets so that all give the same bits.
//
// exp(x) = 2^n · exp(r) with n = round(x / ln 2) and r = x - n ln 2 in two parts (Cody and Waite), |r| <= ln 2 / 2;
// exp(r) by Cephes' polynomial of degree 5 on r², as its single-precision expf has it. Within 2 units in the last
// place.

#ifndef TREEFILL_ISA_EXP_H_
#define TREEFILL_ISA_EXP_H_

namespace treefill {

constexpr float kExpMin = -87.0f;  // below it the result is not a normal number
constexpr float kExpMax = 88.0f;
constexpr float kLog2E = 1.44269504088896341f;
constexpr float kLn2High = 0.693359375f;
constexpr float kLn2Low = -2.12194440e-4f;
constexpr float kExp0 = 1.9875691500e-4f;
constexpr float kExp1 = 1.3981999507e-3f;
constexpr float kExp2 = 8.3334519073e-3f;
constexpr float kExp3 = 4.1665795894e-2f;
constexpr float kExp4 = 1.6666665459e-1f;
constexpr float kExp5 = 5.0000001201e-1f;

}  // namespace treefill

#endif  // TREEFILL_ISA_EXP_H_
