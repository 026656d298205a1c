// The processors code is generated for.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

#include "ricci/support/error.h"

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/kernels/cpu_features.h"

namespace ricci::cpu {
namespace {

bool has_avx512(const llvm::StringMap<bool>& f) {
  return f.lookup("avx512f") && f.lookup("avx512vl") && f.lookup("avx512dq") &&
         f.lookup("avx512bw");
}

TargetInfo find_host() {
  TargetInfo t{.name = "host", .cpu = llvm::sys::getHostCPUName().str()};
  const llvm::StringMap<bool> found = llvm::sys::getHostCPUFeatures();
  std::vector<std::string> flags;
  for (const auto& f : found) {
    flags.push_back((f.second ? "+" : "-") + f.first().str());
  }
  // A map has no order; the string is part of cache keys.
  std::sort(flags.begin(), flags.end());
  t.features = fmt::format("{}", fmt::join(flags, ","));
  t.sse41 = found.lookup("sse4.1");
  t.fma = found.lookup("fma");
  t.avx2 = found.lookup("avx2") && t.fma;
  t.avx512 = has_avx512(found) && t.avx2;
  t.f16c = found.lookup("f16c");
  t.vector_bits = t.avx512 ? 512 : t.avx2 ? 256 : 128;
  return t;
}

const std::array<TargetInfo, 3>& fixed_targets() {
  static const std::array<TargetInfo, 3> targets{
      TargetInfo{.name = "portable", .cpu = "x86-64"},
      TargetInfo{.name = "avx2",
                 .cpu = "x86-64-v3",
                 .vector_bits = 256,
                 .sse41 = true,
                 .fma = true,
                 .avx2 = true,
                 .f16c = true},
      // The level's own tuning prefers half registers; ours are chosen by the code generator.
      TargetInfo{.name = "avx512",
                 .cpu = "x86-64-v4",
                 .features = "-prefer-256-bit",
                 .vector_bits = 512,
                 .sse41 = true,
                 .fma = true,
                 .avx2 = true,
                 .avx512 = true,
                 .f16c = true}};
  return targets;
}

std::vector<std::string_view> flags_of(std::string_view features) {
  std::vector<std::string_view> out;
  while (!features.empty()) {
    const std::size_t end = std::min(features.find(','), features.size());
    out.push_back(features.substr(0, end));
    features.remove_prefix(std::min(end + 1, features.size()));
  }
  return out;
}

// What every x86-64 has; and evex512, which is not an instruction set of its own but says that
// those of AVX-512 have registers of 512 bits.
bool needs_no_check(std::string_view feature) {
  constexpr auto Always = std::to_array<std::string_view>(
      {"64bit", "cmov", "cx8", "evex512", "fxsr", "mmx", "sse", "sse2", "x87"});
  return std::ranges::find(Always, feature) != Always.end();
}

}  // namespace

const TargetInfo& host_target() {
  static const TargetInfo host = find_host();
  return host;
}

const TargetInfo& target_named(std::string_view name) {
  if (name == "host") return host_target();
  for (const TargetInfo& t : fixed_targets()) {
    if (t.name == name) return t;
  }
  throw UserError(ErrorCode::Name, fmt::format("no CPU target is called '{}'", name),
                  "use host, portable, avx2 or avx512");
}

TargetInfo target_for_objects(std::string_view name) {
  TargetInfo target = target_named(name);
  if (target.name != "host") return target;
  std::vector<std::string> flags;
  for (const std::string_view flag : flags_of(target.features)) {
    const std::string_view feature = flag.substr(1);
    const bool kept = can_check_feature(feature) || needs_no_check(feature);
    flags.push_back(fmt::format("{}{}", kept ? flag.front() : '-', feature));
  }
  target.features = fmt::format("{}", fmt::join(flags, ","));
  return target;
}

std::vector<std::string> required_features(const TargetInfo& target) {
  std::vector<std::string> out;
  const auto add = [&](std::initializer_list<const char*> names) {
    out.insert(out.end(), names.begin(), names.end());
  };
  if (target.name == "host") {
    for (const std::string_view flag : flags_of(target.features)) {
      if (flag.starts_with('+') && can_check_feature(flag.substr(1)))
        out.emplace_back(flag.substr(1));
    }
  }
  // The levels x86-64-v3 and x86-64-v4.
  if (target.name == "avx2" || target.name == "avx512") {
    add({"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi", "bmi2",
         "lzcnt", "movbe"});
  }
  if (target.name == "avx512") {
    add({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
  }
  return out;
}

bool runs_here(const TargetInfo& target) {
  const TargetInfo& host = host_target();
  const auto within = [](bool needs, bool has) { return has || !needs; };
  return within(target.sse41, host.sse41) && within(target.fma, host.fma) &&
         within(target.avx2, host.avx2) && within(target.avx512, host.avx512) &&
         within(target.f16c, host.f16c);
}

}  // namespace ricci::cpu
