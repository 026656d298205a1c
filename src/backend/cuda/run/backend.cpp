#include "backend/cuda/run/backend.h"

#include "backend/cuda/run/compiler.h"
#include "backend/cuda/run/executable.h"
#include "backend/cuda/run/target.h"

namespace ricci::cuda {

Backend::Backend(int threads) : gpu_(Gpu::get()), memory_(gpu_), pool_(threads) {}

const schedule::Target& Backend::target() const noexcept { return cuda::target(); }

std::unique_ptr<device::Executable> Backend::compile(
    std::shared_ptr<const Program> program, const device::CompileSettings& settings) const {
  const CodeFolder folder{settings.code_cache, settings.code_cache_limit};
  return std::make_unique<Executable>(
      std::move(program),
      Means{.gpu = &gpu_, .tf32 = settings.tf32_products, .memory = &memory_, .folder = &folder},
      [&](const Gpu& gpu, std::span<const KernelText* const> texts) {
        return compile_all(gpu, texts, pool_, folder);
      });
}

std::string Backend::code_text(const Program& program, std::string_view form,
                               const std::string& machine) const {
  return cuda::Compiler().code_text(program, form, machine);
}

std::shared_ptr<const device::Backend> make_backend(int threads) {
  return std::make_shared<Backend>(threads);
}

}  // namespace ricci::cuda
