#include "backend/cuda/run/compiler.h"

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "backend/cuda/codegen/program_text.h"
#include "backend/cuda/load/nvrtc.h"
#include "backend/cuda/run/planned_program.h"
#include "backend/cuda/run/target.h"

namespace ricci::cuda {
namespace {

// Calls `f(text, what it is)` with every kernel, or with those that serve calls alone.
template <class F>
void for_each_text(const Program& program, bool calls_alone, const F& f) {
  for (std::size_t k = 0; k < program.kernels.size() && !calls_alone; ++k) {
    f(print_kernel(program.kernels[k], fmt::format("kernel{}", k)), program.kernels[k].name);
  }
  for (const Step& step : program.steps) {
    if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
      if (!calls_alone) f(print_loop(loop->loop, "loop"), step.label);
    } else if (const auto* call = std::get_if<CallStep>(&step.what)) {
      const auto plan = plan_call(program, *call);
      if (!plan) continue;
      for (const auto& part : plan->parts) {
        if (const auto* launch = std::get_if<CallLaunch>(&part)) f(launch->text, step.label);
      }
    } else if (const auto* control = std::get_if<ControlStep>(&step.what)) {
      for (const auto& [role, body] : control->bodies) for_each_text(*body, calls_alone, f);
    }
  }
}

// 90 of `sm_90` and `sm_90a`; 0 for what is no architecture.
int capability_of(const std::string& architecture) {
  constexpr std::string_view Prefix = "sm_";
  if (!architecture.starts_with(Prefix)) return 0;
  const std::string_view digits = std::string_view(architecture).substr(Prefix.size());
  int number = 0;
  std::size_t count = 0;
  while (count < digits.size() && count < 3 && digits[count] >= '0' && digits[count] <= '9') {
    number = 10 * number + (digits[count++] - '0');
  }
  const std::string_view rest = digits.substr(count);
  return count >= 2 && (rest.empty() || rest == "a" || rest == "f") ? number : 0;
}

std::string names_of(std::span<const int> capabilities) {
  std::vector<std::string> names;
  for (const int c : capabilities) {
    if (c >= OldestCapability) names.push_back(fmt::format("sm_{}", c));
  }
  return join(names, ", ");
}

}  // namespace

std::string architecture_named(const std::string& machine) {
  if (machine == "host") {
    const std::string fault = why_not();
    if (fault.empty()) return Gpu::get().architecture();
    throw UserError(ErrorCode::UnsupportedOnBackend,
                    fmt::format("there is no GPU here to make code for: {}", fault),
                    "name an architecture: --target sm_90");
  }
  const int capability = capability_of(machine);
  if (capability == 0) {
    throw UserError(ErrorCode::UnsupportedOnBackend,
                    fmt::format("'{}' is no architecture of NVIDIA's GPUs", machine),
                    "those are sm_80, sm_90, ...; host is that of this machine");
  }
  if (capability < OldestCapability) {
    throw UserError(ErrorCode::UnsupportedOnBackend,
                    fmt::format("kernels need sm_{} or newer, not {}", OldestCapability, machine));
  }
  const std::span<const int> known = compiler_architectures();
  if (!known.empty() && std::ranges::find(known, capability) == known.end()) {
    throw UserError(ErrorCode::UnsupportedOnBackend,
                    fmt::format("NVRTC {} makes no code for {}", compiler_version(), machine),
                    "it does for " + names_of(known));
  }
  return machine;
}

const schedule::Target& Compiler::target() const noexcept { return cuda::target(); }

std::unique_ptr<device::Outline> Compiler::outline(std::shared_ptr<const Program> program,
                                                   const device::CompileSettings& settings) const {
  const Means means{.library = true, .tf32 = settings.tf32_products};
  return std::make_unique<PlannedProgram>(std::move(program), means);
}

std::string code_text(const Program& program, std::string_view form, const std::string& machine) {
  const bool cuda = form == "cuda";
  if (!cuda && !why_no_compiler().empty()) {
    throw UserError(ErrorCode::UnsupportedOnBackend, why_no_compiler(),
                    "RICCI_CUDA_LIBRARIES can name the folder it is in; it needs no GPU");
  }
  const std::string architecture = cuda ? std::string() : architecture_named(machine);
  std::string out = cuda ? program_text(program) : std::string();
  for_each_text(program, cuda, [&](const KernelText& kernel, const std::string& what) {
    if (!out.empty()) out += "\n\n";
    out += fmt::format("// {}\n// {} blocks of {} threads\n", what, kernel.blocks, kernel.threads);
    if (cuda) {
      out += kernel.text;
      return;
    }
    const std::vector<char> code = compile_source(kernel.text, architecture, CodeForm::Ptx);
    out.append(code.data(), code.size() - 1);  // it ends with a zero
  });
  return out;
}

std::string Compiler::code_text(const Program& program, std::string_view form,
                                const std::string& machine) const {
  if (form == "cuda" || form == "ptx") return cuda::code_text(program, form, machine);
  return device::Compiler::code_text(program, form, machine);
}

std::shared_ptr<const device::Compiler> make_compiler() { return std::make_shared<Compiler>(); }

}  // namespace ricci::cuda
