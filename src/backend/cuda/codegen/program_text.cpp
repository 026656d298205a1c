#include "backend/cuda/codegen/program_text.h"

#include <set>

#include <fmt/format.h>

#include "backend/cuda/codegen/kernel_text.h"

namespace ricci::cuda {
namespace {

class ProgramPrinter {
 public:
  std::string run(const Program& program) {
    print(program);
    return std::move(text_);
  }

 private:
  void print(const Program& program) {
    std::set<std::size_t> printed;
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
      const Step& step = program.steps[s];
      const auto launch = [&](const Launch& l) {
        if (!printed.insert(l.kernel).second) return;
        const loop::Kernel& kernel = program.kernels[l.kernel];
        add(l.from.nodes.empty() ? step : l.from,
            print_kernel(kernel, fmt::format("{}kernel{}", prefix_, l.kernel)));
      };
      if (const auto* kernels = std::get_if<KernelStep>(&step.what)) {
        for (const Launch& l : kernels->launches) launch(l);
      } else if (const auto* call = std::get_if<CallStep>(&step.what)) {
        if (call->before) launch(*call->before);
        if (call->after) launch(*call->after);
      } else if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
        add(step, print_loop(loop->loop, fmt::format("{}loop{}", prefix_, s)));
      } else if (const auto* control = std::get_if<ControlStep>(&step.what)) {
        for (const auto& [name, body] : control->bodies) {
          const std::string outside = prefix_;
          prefix_ += fmt::format("{}{}_", name, s);
          print(*body);
          prefix_ = outside;
        }
      }
    }
  }

  void add(const Origin& from, const KernelText& kernel) {
    if (!text_.empty()) text_ += "\n\n";
    text_ += fmt::format("// {}", from.label);
    if (from.where.known()) text_ += fmt::format(" ({})", from.where.to_string());
    text_ += fmt::format("\n// {} blocks of {} threads", kernel.blocks, kernel.threads);
    if (kernel.shared_bytes > 0) text_ += fmt::format(", {} bytes shared", kernel.shared_bytes);
    if (kernel.scratch_bytes > 0)
      text_ += fmt::format(", {} bytes of scratch", kernel.scratch_bytes);
    text_ += '\n';
    text_ += kernel.text;
  }

  std::string text_;
  std::string prefix_;
};

}  // namespace

std::string program_text(const Program& program) { return ProgramPrinter().run(program); }

}  // namespace ricci::cuda
