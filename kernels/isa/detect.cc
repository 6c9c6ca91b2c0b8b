#include "isa/detect.h"

#include <atomic>
#include <cstdlib>
#include <stdexcept>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__APPLE__) && defined(__aarch64__)
#include <sys/sysctl.h>
#endif

namespace treefill {
namespace {

#if defined(__x86_64__)

bool cpu_has_amx_int8() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  const bool tile = edx & (1u << 24);
  const bool int8 = edx & (1u << 25);
  return tile && int8;
}

// Linux keeps the 8 KiB of tile state off until a process asks; touching a tile before is an illegal instruction.
bool system_allows_amx() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

// Its registers are AVX2's, so the system keeps them where it keeps those.
bool cpu_has_avxvnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  const bool has_subleaf = eax >= 1;
  if (!has_subleaf || !__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) return false;
  return eax & (1u << 4);
}

bool has_avx512vnni() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}

#elif defined(__aarch64__)

// The rest of what neon.cc uses is in every AArch64 processor.
bool has_dot_product() {
#if defined(__linux__)
  constexpr unsigned long kAsimdDp = 1ul << 20;  // HWCAP_ASIMDDP
  return getauxval(AT_HWCAP) & kAsimdDp;
#elif defined(__APPLE__)
  int has = 0;
  size_t size = sizeof has;
  return sysctlbyname("hw.optional.arm.FEAT_DotProd", &has, &size, nullptr, 0) == 0 && has != 0;
#else
  return false;
#endif
}

#endif

#if defined(__x86_64__)
constexpr MaskedKernels kMaskedAvx512{masked_argmax_avx512, masked_above_avx512, masked_sum_exp_avx512};
constexpr MaskedKernels kMaskedAvx2{masked_argmax_avx2, masked_above_avx2, masked_sum_exp_avx2};
#elif defined(__aarch64__)
constexpr MaskedKernels kMaskedNeon{masked_argmax_neon, masked_above_neon, masked_sum_exp_neon};
#endif
constexpr MaskedKernels kMaskedScalar{masked_argmax_scalar, masked_above_scalar, masked_sum_exp_scalar};

std::vector<InstructionSet> detect() {
  std::vector<InstructionSet> found;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const auto add = [&](const char* name, LinearFn linear, const MaskedKernels& masked) {
    found.push_back({name, linear, quantise_avx2, weigh_avx2, softmax_avx2, swiglu_avx2, masked});
  };
  if (has_avx512vnni()) {
    if (cpu_has_amx_int8() && system_allows_amx()) add("amx", linear_amx, kMaskedAvx512);
    add("avx512vnni", linear_avx512vnni, kMaskedAvx512);
  }
  if (has_avx2()) {
    if (cpu_has_avxvnni()) add("avxvnni", linear_avxvnni, kMaskedAvx2);
    add("avx2", linear_avx2, kMaskedAvx2);
  }
#elif defined(__aarch64__)
  if (has_dot_product())
    found.push_back({"neon", linear_neon, quantise_neon, weigh_neon, softmax_neon, swiglu_neon, kMaskedNeon});
#endif
  found.push_back(
      {"scalar", linear_scalar, quantise_scalar, weigh_scalar, softmax_scalar, swiglu_scalar, kMaskedScalar});
  return found;
}

const InstructionSet& named(const std::string& name) {
  std::string all;
  for (const InstructionSet& set : instruction_sets()) {
    if (name == set.name) return set;
    all += (all.empty() ? "" : ", ") + std::string(set.name);
  }
  throw std::invalid_argument("instruction set '" + name + "' is not available here; this machine runs: " + all);
}

const InstructionSet& default_set() {
  const char* forced = std::getenv("TREEFILL_ISA");
  return forced && *forced ? named(forced) : instruction_sets().front();
}

std::atomic<const InstructionSet*> active{nullptr};

}  // namespace

const std::vector<InstructionSet>& instruction_sets() {
  static const std::vector<InstructionSet> sets = detect();
  return sets;
}

const InstructionSet& active_instruction_set() {
  const InstructionSet* set = active.load(std::memory_order_acquire);
  if (set) return *set;
  const InstructionSet& chosen = default_set();
  active.store(&chosen, std::memory_order_release);
  return chosen;
}

void use_instruction_set(const std::string& name) {
  active.store(name.empty() ? &default_set() : &named(name), std::memory_order_release);
}

}  // namespace treefill
