// x86-64 with AMX int8 tiles (Sapphire Rapids onward), once the kernel has given its permission (detect.cc asks).
//
// A block of 16 outputs × 64 inputs is one B tile as it lies in memory, 16 rows of activations are one A tile, and one
// tdpbssd gives a group's 16 × 16 dot products. Fewer than kTileRowsMin rows leave most of a tile empty: VNNI does
// them.

#include <immintrin.h>

#include "isa/kernel.h"

namespace treefill {
namespace {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileRowsMin = 5;

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};
};

void configure_tiles(int64_t n_rows) {
  TileConfig config;
  for (int tile = 0; tile < 3; ++tile) config.bytes_per_row[tile] = 64;
  config.rows[0] = static_cast<uint8_t>(n_rows);  // C: rows × 16 dot products
  config.rows[1] = static_cast<uint8_t>(n_rows);  // A: rows × 64 activations
  config.rows[2] = 16;                            // B: 16 quads of inputs × 16 outputs
  _tile_loadconfig(&config);
}

void block_rows(const LinearPiece& p, int64_t block, int64_t row, int64_t n_rows) {
  const int8_t* q = p.q + block * p.n_groups * kBlockBytes;
  const uint16_t* scale = p.scale + block * p.n_groups * kBlock;
  __m512 acc[kTileRows];
  for (int64_t r = 0; r < kTileRows; ++r) acc[r] = _mm512_setzero_ps();
  alignas(64) int32_t dot[kTileRows * kBlock];
  for (int64_t group = 0; group < p.n_groups; ++group, q += kBlockBytes, scale += kBlock) {
    _tile_zero(0);
    _tile_loadd(1, p.x + (row * p.n_groups + group) * kGroup, p.n_groups * kGroup);
    _tile_loadd(2, q, 64);
    _tile_dpbssd(0, 1, 2);
    _tile_stored(0, dot, 64);
    const __m512 w_scale = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(scale)));
    for (int64_t r = 0; r < n_rows; ++r) {
      const __m512 both = _mm512_mul_ps(w_scale, _mm512_set1_ps(p.x_scale[(row + r) * p.n_groups + group]));
      acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(dot + r * kBlock)), both, acc[r]);
    }
  }
  const int64_t n = block * kBlock;
  const int64_t n_left = p.n_outputs - n;
  const __mmask16 mask = n_left >= kBlock ? __mmask16{0xffff} : static_cast<__mmask16>((1u << n_left) - 1);
  for (int64_t r = 0; r < n_rows; ++r) {
    const __m512 out = p.bias ? _mm512_add_ps(acc[r], _mm512_maskz_loadu_ps(mask, p.bias + n)) : acc[r];
    float* y = p.y + (row + r) * p.n_outputs + n;
    _mm512_mask_storeu_ps(y, mask, p.add ? _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y), out) : out);
  }
}

LinearPiece rows_of(const LinearPiece& p, int64_t row, int64_t n_rows) {
  LinearPiece part = p;
  part.x += row * p.n_groups * kGroup;
  part.x_scale += row * p.n_groups;
  part.y += row * p.n_outputs;
  part.n_rows = n_rows;
  return part;
}

void tiles(const LinearPiece& p, int64_t row, int64_t end, int64_t rows_each) {
  configure_tiles(rows_each);
  for (int64_t block = p.block_begin; block < p.block_end; ++block)
    for (int64_t r = row; r + rows_each <= end; r += rows_each) block_rows(p, block, r, rows_each);
  _tile_release();
}

}  // namespace

void linear_amx(const LinearPiece& p) {
  const int64_t whole = p.n_rows / kTileRows * kTileRows;
  const int64_t rest = p.n_rows - whole;
  if (whole > 0) tiles(p, 0, whole, kTileRows);
  if (rest >= kTileRowsMin)
    tiles(p, whole, p.n_rows, rest);
  else if (rest > 0)
    linear_avx512vnni(rows_of(p, whole, rest));
}

}  // namespace treefill
