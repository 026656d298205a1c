// Compiled kernels, shared by all programs of this process: the same text is compiled once, as long
// as there is room. With a folder, code is looked for there first and kept there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ricci/compiler/device/thread_pool.h"

#include "backend/cuda/codegen/kernel_text.h"
#include "backend/cuda/run/gpu.h"

namespace ricci::cuda {

/// Where machine code is kept between processes.
struct CodeFolder {
  std::string path = {};  ///< empty: nowhere
  std::int64_t max_bytes = std::int64_t{1} << 30;
};

/// Machine code on the GPU, of one kernel or several; unloaded with it.
class LoadedCode {
 public:
  LoadedCode(const Gpu& gpu, std::span<const char> cubin);
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
  ~LoadedCode();

  [[nodiscard]] const Gpu& gpu() const noexcept { return gpu_; }
  [[nodiscard]] Module module() const noexcept { return module_; }

 private:
  const Gpu& gpu_;
  Module module_ = nullptr;
};

/// A kernel on the GPU.
class LoadedKernel {
 public:
  /// `name`: what it is called in the code.
  LoadedKernel(std::shared_ptr<const LoadedCode> code, const std::string& name,
               const KernelText& text);
  [[nodiscard]] Function function() const noexcept { return function_; }

 private:
  std::shared_ptr<const LoadedCode> code_;
  Function function_ = nullptr;
};

/// One per text, in order. What is not there yet is compiled on the pool's threads. DeviceError
/// with the compiler's words when it refuses one; UserError(file.folder) when others own the folder
/// or may write to it.
[[nodiscard]] std::vector<std::shared_ptr<const LoadedKernel>> compile_all(
    const Gpu& gpu, std::span<const KernelText* const> texts, ThreadPool& pool,
    const CodeFolder& folder);

/// How much of the code of this process came from where.
struct CodeStatistics {
  std::int64_t compiled = 0;
  std::int64_t loaded = 0;
};
[[nodiscard]] CodeStatistics code_statistics();
/// Forgets the code that was compiled; programs that use it keep it.
void forget_code();

}  // namespace ricci::cuda
