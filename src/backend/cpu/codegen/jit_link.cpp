// Linking an object into this process: one mapping per object, writable while it is filled and
// relocated, then code and constants read-only. LLVM's RuntimeDyld does the relocations.
#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>
#include <llvm/ExecutionEngine/JITSymbol.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/Memory.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Process.h>

#include "ricci/support/error.h"

#include "backend/cpu/codegen/jit.h"
#include "support/fork.h"
#include "support/phases.h"

namespace ricci::cpu {
namespace {

using llvm::sys::Memory;
using llvm::sys::MemoryBlock;

std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; }

/// Hands out the sections of one object from one mapping: code, then constants, then variables,
/// each part on pages of its own. Near each other, so that 32-bit offsets always reach.
class SectionMemory final : public llvm::RuntimeDyld::MemoryManager {
 public:
  SectionMemory() = default;
  ~SectionMemory() override {
    if (block_.base() != nullptr) static_cast<void>(Memory::releaseMappedMemory(block_));
  }

  bool needsToReserveAllocationSpace() override { return true; }

  void reserveAllocationSpace(std::uintptr_t code, llvm::Align, std::uintptr_t constants,
                              llvm::Align, std::uintptr_t variables, llvm::Align) override {
    const std::uint64_t page = llvm::sys::Process::getPageSizeEstimate();
    // Room for the alignment of each section; none asks for more than a cache line or two.
    parts_[Code].size = round_up(code + Slack, page);
    parts_[Constants].size = round_up(constants + Slack, page);
    parts_[Variables].size = round_up(variables + Slack, page);
    const std::uint64_t size = parts_[Code].size + parts_[Constants].size + parts_[Variables].size;
    std::error_code error;
    block_ = Memory::allocateMappedMemory(size, nullptr, Memory::MF_READ | Memory::MF_WRITE, error);
    if (error) {
      throw DeviceError(fmt::format("no memory for {} bytes of code", size), error.message());
    }
    auto* at = static_cast<std::uint8_t*>(block_.base());
    for (Part& p : parts_) {
      p.begin = p.next = at;
      at += p.size;
    }
  }

  std::uint8_t* allocateCodeSection(std::uintptr_t size, unsigned align, unsigned,
                                    llvm::StringRef) override {
    return take(parts_[Code], size, align);
  }

  std::uint8_t* allocateDataSection(std::uintptr_t size, unsigned align, unsigned, llvm::StringRef,
                                    bool read_only) override {
    return take(parts_[read_only ? Constants : Variables], size, align);
  }

  // No unwind tables: kernels neither throw nor let exceptions pass.
  void registerEHFrames(std::uint8_t*, std::uint64_t, std::size_t) override {}
  void deregisterEHFrames() override {}

  bool finalizeMemory(std::string* message) override {
    return protect(parts_[Code], Memory::MF_READ | Memory::MF_EXEC, message) ||
           protect(parts_[Constants], Memory::MF_READ, message);
  }

  [[nodiscard]] std::int64_t size() const {
    return static_cast<std::int64_t>(block_.allocatedSize());
  }

 private:
  static constexpr std::uint64_t Slack = 1024;
  enum : std::size_t { Code, Constants, Variables };
  struct Part {
    std::uint8_t* begin = nullptr;
    std::uint8_t* next = nullptr;
    std::uint64_t size = 0;
  };

  static std::uint8_t* take(Part& part, std::uint64_t size, unsigned align) {
    const auto at = reinterpret_cast<std::uintptr_t>(part.next);
    auto* start = part.next + (round_up(at, std::max(align, 1U)) - at);
    if (start + size > part.begin + part.size) return nullptr;
    part.next = start + size;
    return start;
  }

  static bool protect(const Part& part, unsigned flags, std::string* message) {
    const MemoryBlock block(part.begin, part.size);
    const std::error_code error = Memory::protectMappedMemory(block, flags);
    if (error && message != nullptr) *message = error.message();
    return static_cast<bool>(error);
  }

  MemoryBlock block_;
  Part parts_[3];
};

/// Finds what code may call: the caller's symbols, and what the code generator makes of copies.
class AllowedSymbols final : public llvm::JITSymbolResolver {
 public:
  explicit AllowedSymbols(std::span<const JitSymbol> symbols) {
    add("memcpy", reinterpret_cast<void*>(&std::memcpy));
    add("memmove", reinterpret_cast<void*>(&std::memmove));
    add("memset", reinterpret_cast<void*>(&std::memset));
    for (const JitSymbol& s : symbols) add(s.name, s.address);
  }

  void lookup(const LookupSet& names, OnResolvedFunction done) override {
    LookupResult found;
    for (const llvm::StringRef name : names) {
      const auto it = addresses_.find(name.str());
      if (it == addresses_.end()) {
        return done(llvm::make_error<llvm::StringError>(
            "generated code calls '" + name.str() + "', which it may not",
            llvm::inconvertibleErrorCode()));
      }
      found[name] = llvm::JITEvaluatedSymbol(it->second, llvm::JITSymbolFlags::Exported);
    }
    done(std::move(found));
  }

  llvm::Expected<LookupSet> getResponsibilitySet(const LookupSet&) override { return LookupSet{}; }

 private:
  void add(const std::string& name, void* address) {
    addresses_[name] = reinterpret_cast<std::uintptr_t>(address);
  }
  std::map<std::string, std::uintptr_t> addresses_;
};

template <class T>
T value_of(llvm::Expected<T> result, const char* doing) {
  if (result) return std::move(*result);
  throw InternalError(fmt::format("{}: {}", doing, llvm::toString(result.takeError())));
}

std::unique_ptr<llvm::object::ObjectFile> read_object(std::span<const char> object) {
  const llvm::MemoryBufferRef bytes(llvm::StringRef(object.data(), object.size()), "kernel");
  return value_of(llvm::object::ObjectFile::createObjectFile(bytes), "reading an object");
}

}  // namespace

struct JitCode::Image {
  SectionMemory memory;
  std::map<std::string, void*, std::less<>> symbols;
};

JitCode::JitCode(std::unique_ptr<Image> image, EmittedCode kept)
    : image_(std::move(image)), kept_(std::move(kept)) {}

JitCode::~JitCode() = default;

void* JitCode::find(std::string_view symbol) const {
  const auto it = image_->symbols.find(symbol);
  return it == image_->symbols.end() ? nullptr : it->second;
}

void* JitCode::address_of(std::string_view symbol) const {
  void* address = find(symbol);
  if (address == nullptr) throw InternalError(fmt::format("compiled code has no '{}'", symbol));
  return address;
}

std::int64_t JitCode::size() const noexcept { return image_->memory.size(); }

std::shared_ptr<JitCode> jit_load(std::span<const char> object,
                                  std::span<const JitSymbol> symbols) {
  const UnforkedWork unforked;
  const Phase phase("link");
  const auto file = read_object(object);
  auto image = std::make_unique<JitCode::Image>();
  AllowedSymbols allowed(symbols);
  llvm::RuntimeDyld linker(image->memory, allowed);
  linker.loadObject(*file);
  if (!linker.hasError()) linker.resolveRelocations();
  if (linker.hasError()) throw InternalError("linking a kernel: " + linker.getErrorString().str());
  std::string message;
  if (image->memory.finalizeMemory(&message)) {
    throw DeviceError("memory cannot be made executable", message);
  }
  for (const auto& [name, symbol] : linker.getSymbolTable()) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the linker gives addresses as integers.
    image->symbols[name.str()] = reinterpret_cast<void*>(symbol.getAddress());
  }
  return std::shared_ptr<JitCode>(new JitCode(std::move(image), {}));
}

std::vector<std::string> undefined_symbols(std::span<const char> object) {
  std::vector<std::string> names;
  const auto file = read_object(object);
  for (const llvm::object::SymbolRef& s : file->symbols()) {
    const std::uint32_t flags = value_of(s.getFlags(), "reading a symbol");
    if ((flags & llvm::object::SymbolRef::SF_Undefined) == 0) continue;
    // ELF's first entry is undefined and has no name.
    std::string name = value_of(s.getName(), "reading a symbol").str();
    if (!name.empty()) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ricci::cpu
