// Kernels that have nothing to do with each other as one: the updates of an optimiser are many
// small kernels, and each launch of its own would cost more than its work.
#include <algorithm>
#include <map>

#include "ricci/support/text.h"

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/codegen/kernel_printer.h"
#include "backend/cuda/codegen/prelude.h"

namespace ricci::cuda {
namespace {

// What a kernel's parameters begin with, so that those of all parts have names of their own.
std::string parameters_of(const loop::Kernel& kernel, std::size_t part) {
  std::string list;
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
    const loop::Argument& g = kernel.arguments[a];
    if (g.role == loop::ArgumentRole::Local) continue;
    list += fmt::format("{}{}* p{}_a{}, ", g.role == loop::ArgumentRole::In ? "const " : "",
                        stored_type(g.dtype), part, a);
  }
  return list;
}

std::string arguments_of(const loop::Kernel& kernel, std::size_t part) {
  std::string list;
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
    if (kernel.arguments[a].role == loop::ArgumentRole::Local) continue;
    list += fmt::format("p{}_a{}, ", part, a);
  }
  return list;
}

}  // namespace

bool can_run_together(const KernelText& text) {
  return text.shared_bytes == 0 && text.scratch_bytes == 0 && text.blocks > 0;
}

KernelText print_together(std::span<const loop::Kernel* const> kernels, const std::string& name) {
  std::map<std::string, std::string> names;  // of the functions, by what is in them
  std::string functions;
  std::string parameters;
  std::string calls;
  KernelText out{.name = name, .blocks = 0};
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const KernelText part = KernelPrinter(*kernels[k], PartName).run_as_part();
    const auto [known, is_new] = names.try_emplace(part.text, fmt::format("part{}", names.size()));
    if (is_new) {
      std::string text = part.text;
      text.replace(text.find(PartName), std::string_view(PartName).size(), known->second);
      functions += text;
    }
    parameters += parameters_of(*kernels[k], k);
    const std::int64_t first = out.blocks;
    out.blocks += part.blocks;
    calls += fmt::format("  {}if (blockIdx.x < {}u) {{\n    {}({}scratch, fault, origin, "
                         "blockIdx.x - {}u);\n  }}",
                         k == 0 ? "" : "else ", out.blocks, known->second,
                         arguments_of(*kernels[k], k), first);
    calls += '\n';
    out.threads = part.threads;
    out.static_bytes += part.static_bytes;
    out.pointers += part.pointers;
  }
  out.text = with_prelude(fmt::format(
      "{}\nextern \"C\" __global__ void __launch_bounds__({})\n{}({}void* scratch, ricci_fault* "
      "fault, unsigned origin) {{\n{}}}\n",
      functions, out.threads, name, parameters, calls));
  return out;
}

}  // namespace ricci::cuda
