// Compiled kernels and loops, shared by all programs of this process: the same code is compiled
// once, as long as there is room.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ricci/compiler/device/thread_pool.h"

#include "backend/cpu/codegen/kernel_code.h"

namespace ricci::cpu {

/// Where machine code is kept between processes.
struct CodeFolder {
  std::string path = {};  ///< empty: nowhere
  std::int64_t max_bytes = std::int64_t{1} << 30;
};

/// One per kernel, in order. What is not there yet is compiled on the pool's threads. With a
/// folder, code is looked for there first and kept there; UserError(file.folder) when others own
/// the folder or may write to it.
[[nodiscard]] std::vector<KernelCode> compile_all(std::span<const loop::Kernel> kernels,
                                                  ThreadPool& pool, const CodeFolder& folder = {});

/// Code compiled when it is asked for, on the pool's threads.
class JitSource final : public CodeSource {
 public:
  explicit JitSource(ThreadPool& pool, CodeFolder folder = {})
      : pool_(pool), folder_(std::move(folder)) {}
  [[nodiscard]] std::vector<KernelCode> kernels(std::span<const loop::Kernel> kernels) override;
  [[nodiscard]] LoopCode loop(const loop::WrittenLoop& loop) override;

 private:
  ThreadPool& pool_;
  CodeFolder folder_;
};

/// How much of the code of this process came from where; for tests and reports.
struct CodeStatistics {
  std::int64_t compiled = 0;
  std::int64_t loaded = 0;
};
[[nodiscard]] CodeStatistics code_statistics();
/// Forgets the code that was compiled; programs that use it keep it.
void forget_code();

}  // namespace ricci::cpu
