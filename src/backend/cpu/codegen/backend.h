// The CPU as a back end: programs whose kernels are compiled in this process, run by a pool of
// threads.
#pragma once

#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/device/thread_pool.h"

namespace ricci::cpu {

class Backend final : public device::Backend {
 public:
  /// `threads` as for ThreadPool.
  explicit Backend(int threads) : pool_(threads) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "cpu"; }
  [[nodiscard]] const schedule::Target& target() const noexcept override;
  [[nodiscard]] device::Memory& memory() const noexcept override;
  [[nodiscard]] int threads() const noexcept override { return pool_.threads(); }
  void warm_up() const override;
  [[nodiscard]] std::unique_ptr<device::Executable> compile(
      std::shared_ptr<const Program> program,
      const device::CompileSettings& settings) const override;
  /// Forms: `llvm` and `asm`.
  [[nodiscard]] std::string code_text(const Program& program, std::string_view form,
                                      const std::string& machine) const override;
  [[nodiscard]] device::Machine machine(const std::string& name) const override;
  [[nodiscard]] std::vector<std::byte> object_code(const Program& program,
                                                   const device::ObjectParts& parts,
                                                   const device::Machine& machine) const override;

  [[nodiscard]] ThreadPool& pool() const noexcept { return pool_; }

 private:
  mutable ThreadPool pool_;  // runs are const: a pool serves any number of threads
};

/// What backends.cpp opens; it can be used anywhere.
[[nodiscard]] std::shared_ptr<const device::Backend> make_backend(int threads);
[[nodiscard]] std::shared_ptr<const device::Compiler> make_compiler();
[[nodiscard]] std::string why_not();

}  // namespace ricci::cpu
