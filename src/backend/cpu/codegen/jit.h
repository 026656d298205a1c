// From LLVM IR to machine code in this process. The one door to LLVM's code generator: nothing
// here leaks its headers, so callers that only run code need not see them.
//
//   auto code = jit_compile(std::move(module), std::move(context), {});
//   auto* add = code->function<void(const float*, float*, std::int64_t)>("add");
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace ricci::cpu {

/// What code is generated for.
struct TargetInfo {
  std::string name;       ///< host, portable, avx2 or avx512
  std::string cpu;        ///< LLVM's name of the processor
  std::string features;   ///< LLVM's feature string, e.g. "+avx2,+fma"
  int vector_bits = 128;  ///< width of the registers to fill
  bool sse41 = false;     ///< floor, ceil and the like are one instruction
  bool fma = false;       ///< without it llvm.fma would become a call of the C library
  bool avx2 = false;
  bool avx512 = false;  ///< F, VL, DQ and BW together
  bool f16c = false;    ///< converts between half and float

  /// How many elements of so many bytes fill a register.
  [[nodiscard]] int lanes(int element_bytes) const noexcept {
    return vector_bits / (8 * element_bytes);
  }
};

/// The machine we run on.
[[nodiscard]] const TargetInfo& host_target();

/// A target by name: `host`, `portable` (any x86-64), `avx2` (with FMA and F16C), `avx512`.
/// Throws UserError for any other name.
[[nodiscard]] const TargetInfo& target_named(std::string_view name);

/// The same for code that is to run elsewhere: without instructions whose presence nobody can check
/// there (`cpu_has`).
[[nodiscard]] TargetInfo target_for_objects(std::string_view name);

/// The instruction sets that code made for a target uses and `cpu_has` knows; all of them, for a
/// target of `target_for_objects`, besides those that every x86-64 has.
[[nodiscard]] std::vector<std::string> required_features(const TargetInfo& target);

/// Whether this machine can run code made for a target.
[[nodiscard]] bool runs_here(const TargetInfo& target);

enum class JitLevel : std::uint8_t {
  None,   ///< straight to the code generator, for reading what was emitted
  Short,  ///< for code that is explicit about its vectors; the default
  Full,   ///< LLVM's own O2 pipeline
};

/// An address generated code may call by name.
struct JitSymbol {
  std::string name;
  void* address = nullptr;
};

struct JitOptions {
  JitLevel level = JitLevel::Short;
  const TargetInfo* target = nullptr;  ///< null: the host
  std::vector<JitSymbol> symbols = {};
  bool keep_object = false;    ///< for a cache on disk
  bool keep_llvm = false;      ///< the IR as text, after the passes
  bool keep_assembly = false;  ///< costs a second run of the code generator
};

/// What the code generator made.
struct EmittedCode {
  std::vector<char> object;  ///< ELF, relocatable
  std::string llvm_text;
  std::string assembly_text;
};

/// Machine code in memory, ready to run; it lives as long as this object.
/// It carries no unwind tables: an exception must not pass through it.
class JitCode {
 public:
  JitCode(const JitCode&) = delete;
  JitCode& operator=(const JitCode&) = delete;
  ~JitCode();

  /// The address of a function, or null when there is none of that name.
  [[nodiscard]] void* find(std::string_view symbol) const;

  /// The function of that name; throws InternalError when there is none.
  template <class Signature>
  [[nodiscard]] Signature* function(std::string_view symbol) const {
    return reinterpret_cast<Signature*>(address_of(symbol));
  }

  /// What JitOptions asked to keep; the rest is empty.
  [[nodiscard]] const EmittedCode& kept() const noexcept { return kept_; }
  /// Bytes of memory the code and its constants take.
  [[nodiscard]] std::int64_t size() const noexcept;

 private:
  struct Image;
  JitCode(std::unique_ptr<Image> image, EmittedCode kept);
  [[nodiscard]] void* address_of(std::string_view symbol) const;
  friend std::shared_ptr<JitCode> jit_load(std::span<const char>, std::span<const JitSymbol>);
  friend std::shared_ptr<JitCode> jit_compile(std::unique_ptr<llvm::Module>,
                                              std::unique_ptr<llvm::LLVMContext>,
                                              const JitOptions&);
  std::unique_ptr<Image> image_;
  EmittedCode kept_;
};

// Every function below may be called from several threads at once (each call has its own module
// and context). LLVM's complaints become InternalError.

/// Compiles a module and links it into this process. Code may call only itself, `options.symbols`
/// and memcpy, memmove, memset: any other name, say of the C library's mathematics, is an error.
[[nodiscard]] std::shared_ptr<JitCode> jit_compile(std::unique_ptr<llvm::Module> module,
                                                   std::unique_ptr<llvm::LLVMContext> context,
                                                   const JitOptions& options = {});

/// The same from IR as text.
[[nodiscard]] std::shared_ptr<JitCode> jit_compile_text(std::string_view llvm_text,
                                                        const JitOptions& options = {});

/// Compiles without linking, for targets this machine cannot run. The object is always made.
[[nodiscard]] EmittedCode emit_code(std::unique_ptr<llvm::Module> module,
                                    std::unique_ptr<llvm::LLVMContext> context,
                                    const JitOptions& options = {});

/// Links an object kept from an earlier compile; needs no code generator.
[[nodiscard]] std::shared_ptr<JitCode> jit_load(std::span<const char> object,
                                                std::span<const JitSymbol> symbols = {});

/// The names an object needs from elsewhere, in order.
[[nodiscard]] std::vector<std::string> undefined_symbols(std::span<const char> object);

}  // namespace ricci::cpu
