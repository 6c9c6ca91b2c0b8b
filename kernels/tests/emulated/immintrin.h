// Found before the compiler's own <immintrin.h>: the same intrinsics in portable code.
//
// SIMDe has AVX-512 and VNNI. It lacks AMX, VNNI's other names and a few conversions, which are written out here after
// Intel's intrinsics guide, as plainly as possible.

#ifndef TREEFILL_EMULATED_IMMINTRIN_H_
#define TREEFILL_EMULATED_IMMINTRIN_H_

#define SIMDE_NO_NATIVE  // SIMDe would ask for the header that this one stands in for
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <math.h>
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <stdint.h>
#include <string.h>

using __mmask8 = uint8_t;
using __mmask16 = uint16_t;

inline __m512i _mm512_cvtepi16_epi32(__m256i from) {
  int16_t in[16];
  int32_t out[16];
  memcpy(in, &from, sizeof in);
  for (int i = 0; i < 16; ++i) out[i] = in[i];
  return _mm512_loadu_si512(out);
}

inline __m512 _mm512_cvtepi32_ps(__m512i from) {
  int32_t in[16];
  float out[16];
  memcpy(in, &from, sizeof in);
  for (int i = 0; i < 16; ++i) out[i] = static_cast<float>(in[i]);
  return _mm512_loadu_ps(out);
}

inline __m512i _mm512_cvtps_epi32(__m512 from) {
  float in[16];
  int32_t out[16];
  memcpy(in, &from, sizeof in);
  for (int i = 0; i < 16; ++i) out[i] = static_cast<int32_t>(nearbyintf(in[i]));
  return _mm512_loadu_si512(out);
}

inline __m512d _mm512_cvtps_pd(__m256 from) {
  float in[8];
  double out[8];
  memcpy(in, &from, sizeof in);
  for (int i = 0; i < 8; ++i) out[i] = in[i];
  return _mm512_loadu_pd(out);
}

inline __m512 _mm512_cvtph_ps(__m256i halves) {
  float out[16];
  const __m128i low = _mm256_extracti128_si256(halves, 0), high = _mm256_extracti128_si256(halves, 1);
  const __m256 low_floats = _mm256_cvtph_ps(low), high_floats = _mm256_cvtph_ps(high);
  memcpy(out, &low_floats, 32);
  memcpy(out + 8, &high_floats, 32);
  return _mm512_loadu_ps(out);
}

// VNNI's 256-bit form with the encoding that AVX-512 does not need: the same arithmetic.
inline __m256i _mm256_dpbusd_avx_epi32(__m256i sum, __m256i a, __m256i b) { return _mm256_dpbusd_epi32(sum, a, b); }

// SIMDe's own multiply and then add, with two roundings.
#undef _mm256_fmadd_ps
inline __m256 _mm256_fmadd_ps(__m256 a, __m256 b, __m256 c) {
  float x[8], y[8], z[8];
  memcpy(x, &a, sizeof x);
  memcpy(y, &b, sizeof y);
  memcpy(z, &c, sizeof z);
  for (int i = 0; i < 8; ++i) z[i] = fmaf(x[i], y[i], z[i]);
  return _mm256_loadu_ps(z);
}

#undef _mm512_fmadd_ps
inline __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) {
  float x[16], y[16], z[16];
  memcpy(x, &a, sizeof x);
  memcpy(y, &b, sizeof y);
  memcpy(z, &c, sizeof z);
  for (int i = 0; i < 16; ++i) z[i] = fmaf(x[i], y[i], z[i]);
  return _mm512_loadu_ps(z);
}

inline __m512 _mm512_maskz_loadu_ps(__mmask16 mask, const void* from) {
  float out[16] = {};
  for (int i = 0; i < 16; ++i)
    if (mask >> i & 1) memcpy(out + i, static_cast<const float*>(from) + i, sizeof(float));
  return _mm512_loadu_ps(out);
}

inline void _mm512_mask_storeu_ps(void* to, __mmask16 mask, __m512 from) {
  float in[16];
  memcpy(in, &from, sizeof in);
  for (int i = 0; i < 16; ++i)
    if (mask >> i & 1) memcpy(static_cast<float*>(to) + i, in + i, sizeof(float));
}

struct EmulatedTile {
  uint8_t bytes[16][64];
};

struct EmulatedTileConfig {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes_per_row[16];
  uint8_t rows[16];
};

inline EmulatedTile emulated_tiles[8];
inline EmulatedTileConfig emulated_config;

inline void _tile_loadconfig(const void* config) {
  memcpy(&emulated_config, config, sizeof emulated_config);
  memset(emulated_tiles, 0, sizeof emulated_tiles);
}

inline void _tile_release() { memset(&emulated_config, 0, sizeof emulated_config); }

inline void _tile_zero(int tile) { memset(&emulated_tiles[tile], 0, sizeof(EmulatedTile)); }

inline void _tile_loadd(int tile, const void* base, int64_t stride) {
  _tile_zero(tile);
  for (int row = 0; row < emulated_config.rows[tile]; ++row)
    memcpy(emulated_tiles[tile].bytes[row], static_cast<const uint8_t*>(base) + row * stride,
           emulated_config.bytes_per_row[tile]);
}

inline void _tile_stored(int tile, void* base, int64_t stride) {
  for (int row = 0; row < emulated_config.rows[tile]; ++row)
    memcpy(static_cast<uint8_t*>(base) + row * stride, emulated_tiles[tile].bytes[row],
           emulated_config.bytes_per_row[tile]);
}

inline void _tile_dpbssd(int c, int a, int b) {
  for (int m = 0; m < emulated_config.rows[c]; ++m)
    for (int n = 0; n < emulated_config.bytes_per_row[c] / 4; ++n) {
      int32_t acc;
      memcpy(&acc, emulated_tiles[c].bytes[m] + 4 * n, 4);
      for (int k = 0; k < emulated_config.bytes_per_row[a]; ++k)
        acc += static_cast<int8_t>(emulated_tiles[a].bytes[m][k]) *
               static_cast<int8_t>(emulated_tiles[b].bytes[k / 4][4 * n + k % 4]);
      memcpy(emulated_tiles[c].bytes[m] + 4 * n, &acc, 4);
    }
}

#endif  // TREEFILL_EMULATED_IMMINTRIN_H_
