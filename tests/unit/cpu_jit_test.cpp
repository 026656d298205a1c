// Compiling, linking and keeping machine code.
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "ricci/support/error.h"

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/kernels/cpu_features.h"

namespace ricci::cpu::cpu_jit_test {
namespace {

// out[i] = x[i]·2.5 + x[i], eight at a time; n is a multiple of eight.
constexpr const char* ScaleText = R"(
define void @scale(ptr noalias %x, ptr noalias %out, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %x, i64 %i
  %v = load <8 x float>, ptr %from, align 4
  %scaled = fmul <8 x float> %v, splat (float 2.5)
  %sum = fadd <8 x float> %scaled, %v
  %to = getelementptr float, ptr %out, i64 %i
  store <8 x float> %sum, ptr %to, align 4
  %next = add i64 %i, 8
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
)";

void expect_scales(const JitCode& code) {
  std::vector<float> x(32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.75F;
  std::vector<float> out(32, -1);
  code.function<void(const float*, float*, std::int64_t)>("scale")(x.data(), out.data(), 32);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(out[i], x[i] * 2.5F + x[i]) << i;
}

TEST(CpuJit, RunsAKernelAtEveryLevelAndTarget) {
  for (const JitLevel level : {JitLevel::None, JitLevel::Short, JitLevel::Full}) {
    for (const char* target : {"host", "portable", "avx2", "avx512"}) {
      if (!runs_here(target_named(target))) continue;
      expect_scales(
          *jit_compile_text(ScaleText, {.level = level, .target = &target_named(target)}));
    }
  }
}

TEST(CpuJit, ObjectsUseOnlyInstructionsThatAreChecked) {
  constexpr std::string_view Everywhere = "64bit cmov cx8 evex512 fxsr mmx sse sse2 x87";
  const TargetInfo host = target_for_objects("host");
  EXPECT_EQ(host.cpu, host_target().cpu);
  std::istringstream flags(host.features);
  std::vector<std::string> used;
  for (std::string flag; std::getline(flags, flag, ',');) {
    const std::string feature = flag.substr(1);
    if (flag[0] != '+' || Everywhere.find(feature) != std::string_view::npos) continue;
    EXPECT_TRUE(can_check_feature(feature)) << feature;
    EXPECT_TRUE(cpu_has(feature)) << feature;
    used.push_back(feature);
  }
  EXPECT_EQ(required_features(host), used);
  for (const char* feature : {"avx512fp16", "vaes", "vpclmulqdq"}) {
    EXPECT_TRUE(can_check_feature(feature)) << feature;
  }
}

TEST(CpuJit, KeepsWhatIsAskedFor) {
  const auto code = jit_compile_text(ScaleText, {.target = &target_named("avx2"),
                                                 .keep_object = true,
                                                 .keep_llvm = true,
                                                 .keep_assembly = true});
  EXPECT_NE(code->kept().llvm_text.find("define void @scale"), std::string::npos);
  EXPECT_NE(code->kept().assembly_text.find("vmulps"), std::string::npos);
  // Contraction would change the sum.
  EXPECT_EQ(code->kept().assembly_text.find("vfmadd"), std::string::npos);
  EXPECT_TRUE(undefined_symbols(code->kept().object).empty());
  if (runs_here(target_named("avx2"))) expect_scales(*jit_load(code->kept().object));
  EXPECT_TRUE(jit_compile_text(ScaleText)->kept().object.empty());
}

TEST(CpuJit, CompilesFromSeveralThreads) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 8; ++i) expect_scales(*jit_compile_text(ScaleText));
    });
  }
}

TEST(CpuJit, CallsOnlyTheSymbolsItIsGiven) {
  constexpr const char* text = R"(
declare double @half(double)
define double @twice_half(double %x) {
  %h = call double @half(double %x)
  %r = call double @half(double %h)
  ret double %r
}
)";
  double (*const half)(double) = [](double x) { return x / 2; };
  const auto code = jit_compile_text(text, {.symbols = {{"half", reinterpret_cast<void*>(half)}}});
  EXPECT_EQ(code->function<double(double)>("twice_half")(12), 3);
  EXPECT_THROW((void)jit_compile_text(text), InternalError);
}

TEST(CpuJit, ReportsFaultsAsErrors) {
  EXPECT_THROW((void)jit_compile_text("define void @f( {"), InternalError);
  EXPECT_THROW((void)jit_load(std::vector<char>(64, 'x')), InternalError);
  const auto code = jit_compile_text(ScaleText);
  EXPECT_EQ(code->find("absent"), nullptr);
  EXPECT_THROW((void)code->function<void()>("absent"), InternalError);
  EXPECT_THROW((void)target_named("pentium"), UserError);
}

}  // namespace
}  // namespace ricci::cpu::cpu_jit_test
