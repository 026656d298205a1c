// Programs run by an interpreter, as slow as it is plain: what a program means, whatever device it
// was made for. It needs neither a code generator nor threads, and its memory is not the host's, so
// that what holds for other devices can be tried on it.
#pragma once

#include "ricci/compiler/device/backend.h"

#include "backend/lir/executable.h"
#include "backend/lir/memory.h"

namespace ricci::lir {

class Backend final : public device::Backend {
 public:
  explicit Backend(Placement placement = Placement::AsPlanned) : placement_(placement) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "lir"; }
  /// Claims no op: what can be expanded is.
  [[nodiscard]] const schedule::Target& target() const noexcept override;
  [[nodiscard]] Memory& memory() const noexcept override { return memory_; }
  [[nodiscard]] std::unique_ptr<device::Executable> compile(
      std::shared_ptr<const Program> program,
      const device::CompileSettings& settings = {}) const override;

 private:
  Placement placement_;
  mutable Memory memory_;  // compiling is const: a memory serves any number of threads
};

/// What backends.cpp opens; it can be used anywhere.
[[nodiscard]] std::shared_ptr<const device::Backend> make_backend(int threads);
[[nodiscard]] std::shared_ptr<const device::Compiler> make_compiler();
[[nodiscard]] std::string why_not();

}  // namespace ricci::lir
