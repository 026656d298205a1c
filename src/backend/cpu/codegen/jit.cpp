// Passes and code generation.
#include "backend/cpu/codegen/jit.h"

#include <map>
#include <mutex>

#include <fmt/format.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "ricci/support/error.h"

#include "backend/cpu/codegen/splat_constants.h"
#include "support/fork.h"
#include "support/phases.h"

namespace ricci::cpu {
namespace {

using Machine = std::unique_ptr<llvm::TargetMachine>;

const llvm::Target& native_target() {
  static const llvm::Target* const target = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    std::string error;
    const auto* found = llvm::TargetRegistry::lookupTarget(llvm::sys::getProcessTriple(), error);
    if (found == nullptr) throw DeviceError("LLVM cannot generate code for this machine", error);
    return found;
  }();
  return *target;
}

Machine make_machine(const TargetInfo& target, JitLevel level) {
  llvm::TargetOptions options;
  // An fma is a different number: it appears where our functions ask for it, nowhere else.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  const auto effort =
      level == JitLevel::None ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default;
  Machine machine(native_target().createTargetMachine(
      llvm::sys::getProcessTriple(), target.cpu, target.features, options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, effort, /*JIT=*/true));
  check_internal(machine != nullptr, "LLVM made no target machine");
  return machine;
}

/// Target machines at rest. One serves one compile at a time and is dear to make, so it is lent.
class MachinePool {
 public:
  Machine take(const TargetInfo& target, JitLevel level) {
    {
      const std::lock_guard lock(mutex_);
      auto& idle = idle_[key(target, level)];
      if (!idle.empty()) {
        Machine machine = std::move(idle.back());
        idle.pop_back();
        return machine;
      }
    }
    return make_machine(target, level);
  }

  void give_back(const TargetInfo& target, JitLevel level, Machine machine) {
    const std::lock_guard lock(mutex_);
    idle_[key(target, level)].push_back(std::move(machine));
  }

 private:
  using Key = std::pair<std::string, bool>;
  static Key key(const TargetInfo& target, JitLevel level) {
    return {target.cpu + '|' + target.features, level == JitLevel::None};
  }
  ForkMutex mutex_;
  std::map<Key, std::vector<Machine>> idle_;
};

MachinePool& machines() {
  static MachinePool pool;
  return pool;
}

/// The short pipeline. The code generator writes vectors and unrolled loops itself, so what is
/// left is cleaning up: promote allocas, fold, hoist what a loop does not change.
llvm::FunctionPassManager short_pipeline() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass());
  return passes;
}

void run_passes(llvm::Module& module, llvm::TargetMachine& machine, JitLevel level) {
  if (level == JitLevel::None) return;
  const Phase phase("LLVM passes");
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  if (level == JitLevel::Full) {
    passes = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
  } else {
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(short_pipeline()));
  }
  passes.run(module, modules);
}

[[maybe_unused]] void check_module(const llvm::Module& module) {
  std::string faults;
  llvm::raw_string_ostream out(faults);
  if (llvm::verifyModule(module, &out)) throw InternalError("malformed LLVM IR: " + faults);
}

llvm::SmallVector<char, 0> generate(llvm::Module& module, llvm::TargetMachine& machine,
                                    llvm::CodeGenFileType type) {
  const Phase phase("instructions");
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  check_internal(!machine.addPassesToEmitFile(passes, out, nullptr, type, /*DisableVerify=*/true),
                 "LLVM cannot emit this kind of file");
  passes.run(module);
  return bytes;
}

EmittedCode emit(llvm::Module& module, llvm::TargetMachine& machine, const TargetInfo& target,
                 const JitOptions& options) {
  EmittedCode code;
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
#ifndef NDEBUG
  check_module(module);
#endif
  run_passes(module, machine, options.level);
  if (target.avx2 && !target.avx512) keep_splats_in_memory(module);
  if (options.keep_llvm) {
    llvm::raw_string_ostream out(code.llvm_text);
    module.print(out, nullptr);
  }
  if (options.keep_assembly) {
    // The code generator rewrites the module it is given.
    const auto copy = llvm::CloneModule(module);
    const auto text = generate(*copy, machine, llvm::CodeGenFileType::AssemblyFile);
    code.assembly_text.assign(text.begin(), text.end());
  }
  const auto object = generate(module, machine, llvm::CodeGenFileType::ObjectFile);
  code.object.assign(object.begin(), object.end());
  return code;
}

}  // namespace

EmittedCode emit_code(std::unique_ptr<llvm::Module> module,
                      std::unique_ptr<llvm::LLVMContext> context, const JitOptions& options) {
  const UnforkedWork unforked;
  const Phase phase("LLVM");
  const TargetInfo& target = options.target != nullptr ? *options.target : host_target();
  Machine machine = machines().take(target, options.level);
  EmittedCode code = emit(*module, *machine, target, options);
  machines().give_back(target, options.level, std::move(machine));
  // A module must go before its context.
  module.reset();
  context.reset();
  return code;
}

std::shared_ptr<JitCode> jit_compile(std::unique_ptr<llvm::Module> module,
                                     std::unique_ptr<llvm::LLVMContext> context,
                                     const JitOptions& options) {
  EmittedCode code = emit_code(std::move(module), std::move(context), options);
  auto linked = jit_load(code.object, options.symbols);
  if (!options.keep_object) code.object = {};
  linked->kept_ = std::move(code);
  return linked;
}

std::shared_ptr<JitCode> jit_compile_text(std::string_view llvm_text, const JitOptions& options) {
  const UnforkedWork unforked;
  auto context = std::make_unique<llvm::LLVMContext>();
  llvm::SMDiagnostic fault;
  auto module = llvm::parseAssemblyString(llvm::StringRef(llvm_text), fault, *context);
  if (module == nullptr) {
    throw InternalError(
        fmt::format("LLVM IR line {}: {}", fault.getLineNo(), fault.getMessage().str()));
  }
  return jit_compile(std::move(module), std::move(context), options);
}

}  // namespace ricci::cpu
