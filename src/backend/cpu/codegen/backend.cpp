#include "backend/cpu/codegen/backend.h"

#include <atomic>
#include <mutex>

#include "backend/cpu/codegen/code_cache.h"
#include "backend/cpu/codegen/object_code.h"
#include "backend/cpu/codegen/warm_up.h"
#include "backend/cpu/run/executable.h"
#include "backend/cpu/run/library_parts.h"
#include "backend/cpu/run/target.h"
#include "support/fork.h"

namespace ricci::cpu {

const schedule::Target& Backend::target() const noexcept { return cpu::target(); }
device::Memory& Backend::memory() const noexcept { return device::host_memory(); }

void Backend::warm_up() const {
  static std::atomic<bool> is_warm = false;
  // Not what runs once: a child of fork would wait for a thread of its parent that was about it.
  static ForkSharedMutex warming;
  if (is_warm) return;
  const std::lock_guard lock(warming);
  if (is_warm) return;
  cpu::warm_up(pool_);
  is_warm = true;
}

std::unique_ptr<device::Executable> Backend::compile(
    std::shared_ptr<const Program> program, const device::CompileSettings& settings) const {
  return std::make_unique<Executable>(
      std::move(program), JitSource(pool_, {settings.code_cache, settings.code_cache_limit}),
      pool_);
}

std::string Backend::code_text(const Program& program, std::string_view form,
                               const std::string& machine) const {
  if (form != "llvm" && form != "asm") return Compiler::code_text(program, form, machine);
  EmittedCode code = emit_program(program, {.target = &target_named(machine),
                                            .keep_llvm = form == "llvm",
                                            .keep_assembly = form == "asm"});
  return std::move(form == "llvm" ? code.llvm_text : code.assembly_text);
}

device::Machine Backend::machine(const std::string& name) const {
  const TargetInfo target = target_for_objects(name);
  return {target.name, required_features(target)};
}

std::vector<std::byte> Backend::object_code(const Program& program,
                                            const device::ObjectParts& parts,
                                            const device::Machine& machine) const {
  return emit_object(program, parts, target_for_objects(machine.name));
}

std::shared_ptr<const device::Backend> make_backend(int threads) {
  // What compiles any program can run any: naming the parts links them.
  (void)ricci_cpu_linear_algebra();
  (void)ricci_cpu_convolution();
  return std::make_shared<Backend>(threads);
}

std::shared_ptr<const device::Compiler> make_compiler() { return make_backend(1); }
std::string why_not() { return {}; }

}  // namespace ricci::cpu
