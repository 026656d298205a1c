// What a back end implements, and all that the rest of the library knows of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ricci/compiler/device/executable.h"
#include "ricci/compiler/device/memory.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"

namespace ricci::device {

/// How a program is compiled.
struct CompileSettings {
  std::string code_cache = {};  ///< a folder for machine code; none when empty
  std::int64_t code_cache_limit = std::int64_t{1} << 30;  ///< about how many bytes it may take
  bool tf32_products = false;                             ///< see `CompileOptions::tf32_products`
};

/// What goes into the object of a program compiled ahead of time.
struct ObjectParts {
  std::string name;                            ///< what its C functions begin with
  std::span<const std::byte> interface_bytes;  ///< see device/packaged_interface.h
  std::span<const std::byte> program_bytes;    ///< see schedule/program_bytes.h
};

/// A kind of machine that code is made for ahead of time.
struct Machine {
  std::string name;
  std::vector<std::string> features;  ///< what it must have to run the code
};

/// What makes code for a device, which need not be here.
class Compiler {
 public:
  virtual ~Compiler() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  [[nodiscard]] virtual const schedule::Target& target() const noexcept = 0;
  /// How the device would serve a program.
  [[nodiscard]] virtual std::unique_ptr<Outline> outline(
      std::shared_ptr<const Program> program, const CompileSettings& settings = {}) const = 0;
  /// Code of a program as text. `form` is one the back end has (`llvm`, `asm`), `machine` names
  /// whose instructions are used. UserError(unsupported_on_backend) for forms it does not have.
  [[nodiscard]] virtual std::string code_text(const Program& program, std::string_view form,
                                              const std::string& machine) const;
  /// Whose instructions objects are made of: a machine by name, `host` for this one. UserError when
  /// there is no such.
  [[nodiscard]] virtual Machine machine(const std::string& name) const;
  /// An object for the linker; UserError(unsupported_on_backend) where there is no such thing.
  [[nodiscard]] virtual std::vector<std::byte> object_code(const Program& program,
                                                           const ObjectParts& parts,
                                                           const Machine& machine) const;
};

/// A device that is here.
class Backend : public Compiler {
 public:
  [[nodiscard]] virtual Memory& memory() const noexcept = 0;
  /// Threads of the host its programs use, the caller's included.
  [[nodiscard]] virtual int threads() const noexcept { return 1; }
  /// Loads what the first compile would wait for.
  virtual void warm_up() const {}
  [[nodiscard]] virtual std::unique_ptr<Executable> compile(
      std::shared_ptr<const Program> program, const CompileSettings& settings = {}) const = 0;
  [[nodiscard]] std::unique_ptr<Outline> outline(
      std::shared_ptr<const Program> program, const CompileSettings& settings = {}) const override {
    return compile(std::move(program), settings);
  }
};

/// A back end of this build by name, and why it cannot be used here, if it cannot.
struct Listed {
  std::string name;
  std::string why_not = {};  ///< empty: it can be used
};

}  // namespace ricci::device
