// Programs compiled ahead of time under attack: the bytes of a package, or its table of functions,
// are changed as a script says; then it is opened and run, with its arrays next to pages nobody may
// touch. It must be refused with a reason or run, and what it says of itself must be what it does.
//
// Bytes say which functions are called on what memory, so no program can be safe with functions of
// another: where its bytes are changed, functions do nothing. Changed interfaces and tables are run
// with the real ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "ricci/compiler/device/thread_pool.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/ir/text.h"

#include "backend/cpu/codegen/code_cache.h"
#include "backend/cpu/run/packaged_program.h"
#include "backend/cpu/run/target.h"
#include "device/packaged_interface.h"
#include "fuzz/stored_program.h"
#include "schedule/program_bytes.h"
#include "support/guarded_buffer.h"

namespace ricci::testing {

/// Kernels, calls that can fault, loops that are written out and run by bodies, branches.
inline constexpr const char* AttackedPrograms = R"(
graph @rows {
  %x = input "x" : f32[5, 6]
  %g = param "gain" : f32[6]
  %s = mul %x, %g
  %e = exp %s
  %t = reduce %e {op = sum, axes = [1], keep_dim = true}
  %y = div %e, %t
  return %y, %t
}
graph @pick {
  %x = input "x" : f32[5, 3]
  %i = input "i" : i32[4]
  %y = gather %x, %i {axis = 0}
  %s, %o = sort %y {axis = 0}
  return %s, %o
}
graph @loops {
  %x = input "x" : f32[4, 4]
  %y = scan %x {length = 3} body {
    %c = input "c" : f32[4, 4]
    %n = tanh %c
    return %n
  }
  %z = scan %y {length = 2} body {
    %c = input "c" : f32[4, 4]
    %s, _ = sort %c {axis = 1}
    %p = matmul %s, %c
    return %p
  }
  return %z
}
graph @choice {
  %p = input "p" : bool[]
  %x = input "x" : f64[7]
  %y = if %p, %x then {
    %a = input "a" : f64[7]
    %s, _ = sort %a {axis = 0}
    return %s
  } else {
    %a = input "a" : f64[7]
    %r = sin %a
    return %r
  }
  return %y
}
)";

class PackageAttack {
 public:
  PackageAttack() {
    for (const Graph& graph : parse(AttackedPrograms)) packages_.push_back(package_of(graph));
    for (const Whole& whole : packages_) {
      if (open_and_run(whole, whole.functions) != cpu::PackagedStatus::Ok) {
        throw std::runtime_error(ricci_packaged_error());
      }
    }
  }

  /// Which package, which part of it, and what happens to it.
  void run(std::span<const std::uint8_t> script) {
    Script in{script};
    const Whole& whole = packages_[in.next() % packages_.size()];
    const Whole& other = packages_[in.next() % packages_.size()];
    Whole now{whole.interface_bytes, whole.program_bytes, {}};
    std::vector<const void*> functions = whole.functions;
    switch (in.next() % 4) {
      case 0: {
        Bytes body = body_of(whole.interface_bytes);
        change(in, body, body_of(other.interface_bytes));
        now.interface_bytes = resealed(whole.interface_bytes, body);
        break;
      }
      case 1: {
        functions.assign(functions.size() + in.next() % 3, nothing());
        Bytes body = body_of(whole.program_bytes);
        change(in, body, body_of(other.program_bytes));
        now.program_bytes = schedule::sealed(schedule::ProgramSeal, body);
        break;
      }
      case 2:  // without a seal that is right
        change(in, now.interface_bytes, other.interface_bytes);
        break;
      default: {
        for (std::size_t n = in.next() % 4; n > 0 && !functions.empty(); --n) {
          functions[in.next() % functions.size()] = nullptr;
        }
        change_table(in, now, functions);
        return;
      }
    }
    (void)open_and_run(now, functions);
  }

 private:
  using Bytes = std::vector<std::byte>;
  static constexpr std::size_t HeadBytes = 64;

  struct Whole {
    Bytes interface_bytes;
    Bytes program_bytes;
    std::vector<const void*> functions;
  };

  // A script is read byte by byte; at its end there are zeros.
  struct Script {
    std::span<const std::uint8_t> script;
    std::size_t next() {
      if (script.empty()) return 0;
      const std::uint8_t byte = script.front();
      script = script.subspan(1);
      return byte;
    }
    std::size_t below(std::size_t n) {
      const std::size_t high = next();
      return n == 0 ? 0 : (high * 256 + next()) % n;
    }
  };

  // Hands on the JIT's code and keeps it, in the order of a table.
  struct Recorder final : cpu::CodeSource {
    explicit Recorder(ThreadPool& pool) : jit(pool) {}
    std::vector<cpu::KernelCode> kernels(std::span<const loop::Kernel> kernels) override {
      std::vector<cpu::KernelCode> code = jit.kernels(kernels);
      for (const cpu::KernelCode& k : code) {
        // A table has no places to count from.
        const bool plain = std::ranges::all_of(k.starts, [](std::int64_t n) { return n == 0; });
        if (!plain) throw std::runtime_error("a kernel does not count from its arguments");
        table.push_back(reinterpret_cast<const void*>(k.function));
        owners.push_back(k.owner);
      }
      return code;
    }
    cpu::LoopCode loop(const loop::WrittenLoop& loop) override {
      cpu::LoopCode code = jit.loop(loop);
      table.push_back(reinterpret_cast<const void*>(code.function));
      owners.push_back(code.owner);
      return code;
    }
    cpu::JitSource jit;
    std::vector<const void*> table;
    std::vector<std::shared_ptr<const void>> owners;
  };

  Whole package_of(const Graph& graph) {
    const auto program = std::make_shared<const ricci::Program>(
        make_program(graph, {.fuse = true, .target = &cpu::target()}));
    device::PackagedInterface interface{graph.name(), "host", {"sse2"}, {}};
    for (std::int32_t i = 0; std::cmp_less(i, program->inputs.size()); ++i) {
      interface.arrays.push_back({"in" + std::to_string(i), i, -1});
    }
    for (std::int32_t o = 0; std::cmp_less(o, program->outputs.size()); ++o) {
      interface.arrays.push_back({"out" + std::to_string(o), -1, o});
    }
    static ThreadPool pool(1);
    Recorder recorder(pool);
    const cpu::Executable executable(program, recorder, pool);
    owners_.insert(owners_.end(), recorder.owners.begin(), recorder.owners.end());
    return {device::to_bytes(interface), schedule::to_bytes(*program), std::move(recorder.table)};
  }

  // A kernel or a written-out loop: both take three pointers.
  static const void* nothing() {
    constexpr cpu::KernelFunction Nothing = [](void* const*, const cpu::TileRange*, cpu::Fault*) {};
    return reinterpret_cast<const void*>(Nothing);
  }

  static Bytes body_of(const Bytes& sealed) {
    return {sealed.begin() + static_cast<std::ptrdiff_t>(std::min(HeadBytes, sealed.size())),
            sealed.end()};
  }
  // The kind of a seal is at its beginning.
  static Bytes resealed(const Bytes& whole, const Bytes& body) {
    schedule::SealKind kind{};
    std::memcpy(kind.magic.data(), whole.data(), kind.magic.size());
    std::memcpy(&kind.version, whole.data() + kind.magic.size(), sizeof kind.version);
    return schedule::sealed(kind, body);
  }

  static void change(Script& in, Bytes& bytes, const Bytes& other) {
    constexpr std::array<std::uint64_t, 8> OddNumbers = {
        0, 1, 2, 64, 0x7FFFFFFF, 0xFFFFFFFF, ~std::uint64_t{0}, std::uint64_t{1} << 62};
    while (!in.script.empty() && !bytes.empty()) {
      const std::size_t at = in.below(bytes.size());
      const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      const std::size_t how = in.next();
      const std::size_t size = std::min(in.next() % 16 + 1, bytes.size() - at);
      switch (how % 6) {
        case 0: *place = static_cast<std::byte>(in.next()); break;
        case 1: *place ^= static_cast<std::byte>(1U << (in.next() % 8)); break;
        case 2: {
          const std::uint64_t v = OddNumbers[in.next() % OddNumbers.size()];
          std::memcpy(bytes.data() + at, &v, std::min<std::size_t>(size, sizeof v));
          break;
        }
        case 3: bytes.erase(place, place + static_cast<std::ptrdiff_t>(size)); break;
        case 4: {  // a part of itself, once more
          const Bytes copy(place, place + static_cast<std::ptrdiff_t>(size));
          bytes.insert(place, copy.begin(), copy.end());
          break;
        }
        default: {  // a part of the other
          const std::size_t from = in.below(other.size());
          std::memcpy(bytes.data() + at, other.data() + from, std::min(size, other.size() - from));
        }
      }
    }
  }

  // Sizes and counts that are not those of what they count. The table ends at a guard.
  void change_table(Script& in, const Whole& now, const std::vector<const void*>& functions) const {
    GuardedBuffer table(functions.size() * sizeof(void*), GuardedBuffer::Edge::End);
    std::ranges::copy(std::as_bytes(std::span(functions)), table.data());
    cpu::Package package{cpu::PackageVersion,
                         now.interface_bytes.data(),
                         now.interface_bytes.size(),
                         now.program_bytes.data(),
                         now.program_bytes.size(),
                         reinterpret_cast<const void* const*>(table.data()),
                         functions.size()};
    switch (in.next() % 5) {
      case 0: package.version = in.next(); break;
      case 1: package.interface_size = in.below(package.interface_size + 1); break;
      case 2: package.program_size = in.below(package.program_size + 1); break;
      case 3: package.function_count = in.next(); break;
      default: break;
    }
    (void)open_and_run(package);
  }

  cpu::PackagedStatus open_and_run(const Whole& whole,
                                   const std::vector<const void*>& functions) const {
    return open_and_run({cpu::PackageVersion, whole.interface_bytes.data(),
                         whole.interface_bytes.size(), whole.program_bytes.data(),
                         whole.program_bytes.size(), functions.data(), functions.size()});
  }

  // What may be refused must be, with words; a fault of ours is none of the answers.
  static cpu::PackagedStatus require_reason(std::int32_t status) {
    const auto said = static_cast<cpu::PackagedStatus>(status);
    const bool ours = said == cpu::PackagedStatus::Internal;
    if (ours || (said != cpu::PackagedStatus::Ok && *ricci_packaged_error() == '\0')) {
      throw std::runtime_error(ricci_packaged_error());
    }
    return said;
  }

  cpu::PackagedStatus open_and_run(const cpu::Package& package) const {
    const std::optional<ricci::Program> read = program_of(package);
    if (read && is_large(*read)) return cpu::PackagedStatus::Memory;
    cpu::PackagedProgram* program = nullptr;
    const cpu::PackagedStatus opened = require_reason(ricci_packaged_create(&package, &program, 1));
    const std::unique_ptr<cpu::PackagedProgram, void (*)(cpu::PackagedProgram*)> owner(
        program, ricci_packaged_destroy);
    if ((opened == cpu::PackagedStatus::Ok) != (program != nullptr)) {
      throw std::runtime_error("a package is open and refused");
    }
    if (program == nullptr) return opened;
    if (!read) throw std::runtime_error("a package without a program is open");
    const device::PackagedInterface interface =
        device::interface_from_bytes({package.interface_bytes, package.interface_size});
    cpu::PackagedStatus ran = opened;
    for (const auto edge : {GuardedBuffer::Edge::End, GuardedBuffer::Edge::Start}) {
      const std::vector<GuardedBuffer> arrays = arrays_of(interface, *read, edge);
      std::vector<const void*> places;
      for (const GuardedBuffer& a : arrays) places.push_back(a.data());
      ran = require_reason(ricci_packaged_run(program, places.data(), 0));
    }
    return ran;
  }

  // Nothing where the bytes are no program.
  static std::optional<ricci::Program> program_of(const cpu::Package& package) {
    try {
      return schedule::program_from_bytes({package.program_bytes, package.program_size});
    } catch (const UserError&) {
      return std::nullopt;
    }
  }

  // Would it take long, or much memory, or might it not end?
  static bool is_large(const ricci::Program& program) {
    ProgramSize size;
    size.add(program);
    return !size.is_small();
  }

  static std::vector<GuardedBuffer> arrays_of(const device::PackagedInterface& interface,
                                              const ricci::Program& program,
                                              GuardedBuffer::Edge edge) {
    const auto buffer = [&](const std::vector<BufferId>& ports, std::int32_t i) -> const Buffer& {
      return program.buffers[static_cast<std::size_t>(ports[static_cast<std::size_t>(i)])];
    };
    std::vector<GuardedBuffer> arrays;
    for (const device::PackagedArray& a : interface.arrays) {
      std::int64_t bytes = 0;
      DType dtype = DType::U8;
      for (const auto& [ports, i] :
           {std::pair{&program.outputs, a.output}, std::pair{&program.inputs, a.input}}) {
        if (i < 0) continue;
        bytes = std::max(bytes, buffer(*ports, i).bytes());
        dtype = buffer(*ports, i).dtype;
      }
      arrays.emplace_back(static_cast<std::size_t>(bytes), edge);
      fill_input(arrays.back().bytes(), dtype, arrays.size());
    }
    return arrays;
  }

  std::vector<Whole> packages_;
  std::vector<std::shared_ptr<const void>> owners_;
};

}  // namespace ricci::testing
