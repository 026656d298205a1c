#include "backend/cuda/run/backend.h"

#include <fmt/format.h>

#include "backend/cuda/codegen/program_text.h"
#include "backend/cuda/load/nvrtc.h"
#include "backend/cuda/run/executable.h"
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
      const auto plan = plan_call(program, *call, nullptr);
      if (!plan) continue;
      for (const auto& part : plan->parts) {
        if (const auto* launch = std::get_if<CallLaunch>(&part)) f(launch->text, step.label);
      }
    } else if (const auto* control = std::get_if<ControlStep>(&step.what)) {
      for (const auto& [role, body] : control->bodies) for_each_text(*body, calls_alone, f);
    }
  }
}

}  // namespace

Backend::Backend(int threads) : gpu_(Gpu::get()), memory_(gpu_), pool_(threads) {}

const schedule::Target& Backend::target() const noexcept { return cuda::target(); }

std::unique_ptr<device::Executable> Backend::compile(
    std::shared_ptr<const Program> program, const device::CompileSettings& settings) const {
  return std::make_unique<Executable>(std::move(program), gpu_, memory_, pool_,
                                      CodeFolder{settings.code_cache, settings.code_cache_limit});
}

std::string Backend::code_text(const Program& program, std::string_view form,
                               const std::string& machine) const {
  if (form != "cuda" && form != "ptx") return device::Backend::code_text(program, form, machine);
  const bool cuda = form == "cuda";
  std::string out = cuda ? program_text(program) : std::string();
  for_each_text(program, cuda, [&](const KernelText& kernel, const std::string& what) {
    if (!out.empty()) out += "\n\n";
    out += fmt::format("// {}\n// {} blocks of {} threads\n", what, kernel.blocks, kernel.threads);
    if (cuda) {
      out += kernel.text;
      return;
    }
    const std::string architecture = machine == "host" ? gpu_.architecture() : machine;
    const std::vector<char> code = compile_source(kernel.text, architecture, CodeForm::Ptx);
    out.append(code.data(), code.size() - 1);  // it ends with a zero
  });
  return out;
}

std::shared_ptr<const device::Backend> make_backend(int threads) {
  return std::make_shared<Backend>(threads);
}

}  // namespace ricci::cuda
