#include "backend/cpu/codegen/object_code.h"

#include <map>
#include <set>

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "backend/cpu/codegen/kernel_code.h"
#include "backend/cpu/codegen/loop_code.h"
#include "backend/cpu/run/library_parts.h"
#include "backend/cpu/run/package.h"
#include "support/fork.h"

namespace ricci::cpu {
namespace {

// The functions of a program, in the order the executor asks for them (see CodeSource). Equal
// kernels share one.
class ProgramCode {
 public:
  ProgramCode(llvm::Module& module, const TargetInfo& target) : module_(module), target_(target) {}

  /// `prefix` tells the functions of a body from others.
  void add(const Program& program, const std::string& prefix = {}) {
    for (const loop::Kernel& k : program.kernels) {
      llvm::Function*& function = kernels_[code_key(k)];
      if (function == nullptr) {
        add_kernels(module_, {{&k, prefix + k.name}}, target_);
        function = module_.getFunction(prefix + k.name);
      }
      functions_.push_back(function);
    }
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
      const std::string step = fmt::format("{}s{}_", prefix, s);
      if (const auto* l = std::get_if<LoopStep>(&program.steps[s].what)) {
        add_loop(module_, l->loop, step + LoopSymbol, target_);
        functions_.push_back(module_.getFunction(step + LoopSymbol));
      } else if (const auto* control = std::get_if<ControlStep>(&program.steps[s].what)) {
        for (const auto& [role, body] : control->bodies) {
          add(*body, fmt::format("{}{}_", step, role));
        }
      } else if (const auto* call = std::get_if<CallStep>(&program.steps[s].what)) {
        add_part(call->call);
      }
    }
  }
  [[nodiscard]] const std::vector<llvm::Constant*>& functions() const noexcept {
    return functions_;
  }
  /// Symbols of the parts of the runtime that its calls need.
  [[nodiscard]] const std::set<const char*>& parts() const noexcept { return parts_; }

 private:
  void add_part(const loop::Call& call) {
    if (std::holds_alternative<loop::Convolution>(call)) parts_.insert(ConvolutionSymbol);
    if (std::holds_alternative<loop::Solve>(call) ||
        std::holds_alternative<loop::MatrixFunction>(call)) {
      parts_.insert(LinearAlgebraSymbol);
    }
  }

  llvm::Module& module_;
  const TargetInfo& target_;
  std::map<std::string, llvm::Function*> kernels_;
  std::vector<llvm::Constant*> functions_;
  std::set<const char*> parts_;
};

class ObjectEmitter {
 public:
  ObjectEmitter(llvm::Module& module, const device::ObjectParts& parts, const TargetInfo& target)
      : module_(module), parts_(parts), code_(module, target), b_(module.getContext()) {}

  void run(const Program& program) {
    code_.add(program);
    // Nobody outside calls these by name, so that any number of objects can be linked together.
    for (llvm::Function& f : module_) {
      if (!f.isDeclaration()) f.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
    package_ = package();
    llvm::Type* ptr = b_.getPtrTy();
    add_function("create", "ricci_packaged_create", b_.getInt32Ty(), {ptr, b_.getInt32Ty()}, true);
    add_function("run", "ricci_packaged_run", b_.getInt32Ty(), {ptr, ptr, b_.getInt64Ty()});
    add_function("stop", "ricci_packaged_stop", b_.getVoidTy(), {ptr});
    add_function("error", "ricci_packaged_error", ptr, {});
    add_function("destroy", "ricci_packaged_destroy", b_.getVoidTy(), {ptr});
  }

 private:
  llvm::GlobalVariable* constant(llvm::Constant* value) {
    auto* global = new llvm::GlobalVariable(module_, value->getType(), true,
                                            llvm::GlobalValue::PrivateLinkage, value);
    global->setAlignment(llvm::Align(64));
    return global;
  }
  llvm::GlobalVariable* bytes(std::span<const std::byte> raw) {
    return constant(llvm::ConstantDataArray::getRaw(
        llvm::StringRef(reinterpret_cast<const char*>(raw.data()), raw.size()), raw.size(),
        b_.getInt8Ty()));
  }

  llvm::GlobalVariable* table(llvm::ArrayRef<llvm::Constant*> pointers) {
    return constant(
        llvm::ConstantArray::get(llvm::ArrayType::get(b_.getPtrTy(), pointers.size()), pointers));
  }

  // A Package, field by field.
  llvm::GlobalVariable* package() {
    const std::vector<llvm::Constant*>& functions = code_.functions();
    std::vector<llvm::Constant*> parts;
    for (const char* symbol : code_.parts()) {
      auto* type = llvm::FunctionType::get(b_.getPtrTy(), false);
      parts.push_back(
          llvm::cast<llvm::Constant>(module_.getOrInsertFunction(symbol, type).getCallee()));
    }
    return constant(llvm::ConstantStruct::getAnon(
        {b_.getInt64(PackageVersion), bytes(parts_.interface_bytes),
         b_.getInt64(parts_.interface_bytes.size()), bytes(parts_.program_bytes),
         b_.getInt64(parts_.program_bytes.size()), table(functions), b_.getInt64(functions.size()),
         table(parts), b_.getInt64(parts.size())}));
  }

  // A function of the interface: it calls the runtime's, with the package in front where that is
  // what it is about.
  void add_function(const char* name, const char* runtime_name, llvm::Type* result,
                    std::vector<llvm::Type*> parameters, bool with_package = false) {
    auto* type = llvm::FunctionType::get(result, parameters, false);
    auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                            fmt::format("{}_{}", parts_.name, name), module_);
    if (with_package) parameters.insert(parameters.begin(), b_.getPtrTy());
    const llvm::FunctionCallee callee = module_.getOrInsertFunction(
        runtime_name, llvm::FunctionType::get(result, parameters, false));
    std::vector<llvm::Value*> arguments;
    if (with_package) arguments.push_back(package_);
    for (llvm::Argument& a : function->args()) arguments.push_back(&a);
    b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function));
    llvm::Value* value = b_.CreateCall(callee, arguments);
    if (result->isVoidTy()) {
      b_.CreateRetVoid();
    } else {
      b_.CreateRet(value);
    }
  }

  llvm::Module& module_;
  const device::ObjectParts& parts_;
  ProgramCode code_;
  llvm::IRBuilder<> b_;
  llvm::GlobalVariable* package_ = nullptr;
};

}  // namespace

EmittedCode emit_program(const Program& program, const JitOptions& options) {
  const UnforkedWork unforked;
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>(program.name, *context);
  ProgramCode(*module, options.target != nullptr ? *options.target : host_target()).add(program);
  return emit_code(std::move(module), std::move(context), options);
}

std::vector<std::byte> emit_object(const Program& program, const device::ObjectParts& parts,
                                   const TargetInfo& target) {
  const UnforkedWork unforked;
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>(parts.name, *context);
  ObjectEmitter(*module, parts, target).run(program);
  const EmittedCode code = emit_code(std::move(module), std::move(context), {.target = &target});
  const auto object = std::as_bytes(std::span(code.object));
  return {object.begin(), object.end()};
}

}  // namespace ricci::cpu
