#include "backend/cpu/run/packaged_program.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "backend/cpu/kernels/cpu_features.h"
#include "schedule/program_bytes.h"
#include "support/float_environment.h"
#include "support/stop_flag.h"

namespace ricci::cpu {
namespace {

[[noreturn]] void fail_package(std::string message) {
  throw UserError(Diagnostic{ErrorCode::File,
                             "program",
                             std::move(message),
                             {},
                             {},
                             "compile it again with the version it is linked with"});
}

// The functions of the object, in the order they are asked for.
class TableSource final : public CodeSource {
 public:
  explicit TableSource(std::span<const void* const> functions) : functions_(functions) {}

  [[nodiscard]] std::vector<KernelCode> kernels(std::span<const loop::Kernel> kernels) override {
    std::vector<KernelCode> out;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      out.push_back({nullptr, reinterpret_cast<KernelFunction>(next())});
    }
    return out;
  }
  [[nodiscard]] LoopCode loop(const loop::WrittenLoop&) override {
    return {nullptr, reinterpret_cast<LoopFunction>(next())};
  }
  [[nodiscard]] bool at_end() const noexcept { return at_ == functions_.size(); }

 private:
  void* next() {
    if (at_end()) fail_package("the program has more kernels than functions");
    const void* function = functions_[at_++];
    if (function == nullptr) fail_package("the program lacks the code of a kernel");
    return const_cast<void*>(function);
  }
  std::span<const void* const> functions_;
  std::size_t at_ = 0;
};

void check_machine(const device::PackagedInterface& interface) {
  std::vector<std::string> missing;
  std::ranges::copy_if(interface.features, std::back_inserter(missing),
                       [](const std::string& f) { return !cpu_has(f); });
  if (missing.empty()) return;
  throw UserError(Diagnostic{
      ErrorCode::UnsupportedOnBackend,
      "cpu",
      fmt::format("this machine's processor has no {}, but '{}' was compiled for target '{}'",
                  join(missing, ", "), interface.name, interface.target),
      {},
      {},
      "compile it for a target this machine has: portable runs on all"});
}

device::PackagedInterface read_interface(const Package& package) {
  if (package.version != PackageVersion) {
    fail_package(fmt::format("the program is a package of version {}, this runtime runs version {}",
                             package.version, PackageVersion));
  }
  device::PackagedInterface out =
      device::interface_from_bytes({package.interface_bytes, package.interface_size});
  check_machine(out);
  return out;
}

// Arrays, as they fit the program; and how messages name its inputs and outputs.
device::BufferPorts ports_of(const device::PackagedInterface& interface, const Program& program) {
  device::BufferPorts ports;
  ports.inputs.resize(program.inputs.size());
  ports.outputs.resize(program.outputs.size());
  ports.donors.assign(program.outputs.size(), -1);
  for (const device::PackagedArray& a : interface.arrays) {
    const auto input = static_cast<std::size_t>(a.input);
    const auto output = static_cast<std::size_t>(a.output);
    const bool fits = (a.input < 0 || input < ports.inputs.size()) &&
                      (a.output < 0 || output < ports.outputs.size());
    if (!fits) fail_package("the program has another interface than its header");
    const std::string name = fmt::format("'{}'", a.name);
    if (a.input >= 0) ports.inputs[input] = name;
    if (a.output >= 0) ports.outputs[output] = name;
    if (a.input >= 0 && a.output >= 0) ports.donors[output] = a.input;
  }
  const auto unnamed = [](const std::string& name) { return name.empty(); };
  if (std::ranges::any_of(ports.inputs, unnamed) || std::ranges::any_of(ports.outputs, unnamed)) {
    fail_package("the program has another interface than its header");
  }
  return ports;
}

}  // namespace

PackagedProgram::PackagedProgram(const Package& package, int threads)
    : interface_(read_interface(package)), pool_(threads) {
  auto program = std::make_shared<const Program>(
      schedule::program_from_bytes({package.program_bytes, package.program_size}));
  TableSource code({package.functions, package.function_count});
  check_ = std::make_unique<device::BufferCheck>(ports_of(interface_, *program), *program);
  inputs_.resize(program->inputs.size());
  outputs_.resize(program->outputs.size());
  executable_ = std::make_unique<Executable>(std::move(program), code, pool_);
  if (!code.at_end()) fail_package("the program has more functions than kernels");
  context_ = executable_->make_context();
}

void PackagedProgram::run(const void* const* arrays, std::uint64_t seed) {
  if (!one_run_.try_enter()) {
    throw UserError(ErrorCode::Busy, fmt::format("another thread is running '{}'", interface_.name),
                    "create a program for each thread");
  }
  const std::unique_ptr<OneAtATime, void (*)(OneAtATime*)> leaves(
      &one_run_, [](OneAtATime* one) { one->leave(); });
  const StopFlagScope stoppable(&stop_);
  for (std::size_t i = 0; i < interface_.arrays.size(); ++i) {
    const device::PackagedArray& a = interface_.arrays[i];
    const auto* at = static_cast<const std::byte*>(arrays[i]);
    if (a.input >= 0) inputs_[static_cast<std::size_t>(a.input)] = at;
    if (a.output >= 0) outputs_[static_cast<std::size_t>(a.output)] = const_cast<std::byte*>(at);
  }
  check_->check(inputs_, outputs_);
  try {
    device::run(*executable_, *context_, {inputs_, outputs_, seed, nullptr});
  } catch (const UserError& error) {
    if (error.code() == ErrorCode::Stopped) stop_.store(false, std::memory_order_relaxed);
    throw;
  }
}

namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

PackagedStatus status_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::OutOfMemory: return PackagedStatus::Memory;
    case ErrorCode::File: return PackagedStatus::Package;
    case ErrorCode::UnsupportedOnBackend: return PackagedStatus::Machine;
    case ErrorCode::Attr: return PackagedStatus::Argument;
    case ErrorCode::Busy: return PackagedStatus::Busy;
    case ErrorCode::Stopped: return PackagedStatus::Stopped;
    case ErrorCode::Internal: return PackagedStatus::Internal;
    default: return PackagedStatus::Run;
  }
}

// Nothing is thrown out of `work`; what went wrong is a number and a text.
template <class Work>
std::int32_t guarded(const Work& work) noexcept {
  const DefaultFloatEnvironment floats;
  PackagedStatus status = PackagedStatus::Ok;
  try {
    try {
      work();
    } catch (const Error& error) {
      status = status_of(error);
      last_error() = error.what();
    } catch (const std::bad_alloc&) {
      status = PackagedStatus::Memory;
      last_error() = "there is no memory left";
    } catch (const std::length_error&) {
      status = PackagedStatus::Memory;
      last_error() = "more memory is wanted than any machine has";
    } catch (const std::exception& error) {
      status = PackagedStatus::Internal;
      last_error() = fmt::format("something unexpected went wrong: {}", error.what());
    }
  } catch (...) {  // no room for the text
    if (status == PackagedStatus::Ok) status = PackagedStatus::Internal;
  }
  return static_cast<std::int32_t>(status);
}

[[noreturn]] void fail_argument(std::string message) {
  throw UserError(Diagnostic{ErrorCode::Attr, "argument", std::move(message), {}, {}, {}});
}

}  // namespace
}  // namespace ricci::cpu

using ricci::cpu::PackagedProgram;

std::int32_t ricci_packaged_create(const ricci::cpu::Package* package, PackagedProgram** out,
                                   std::int32_t threads) noexcept {
  if (out != nullptr) *out = nullptr;
  return ricci::cpu::guarded([&] {
    if (out == nullptr) ricci::cpu::fail_argument("there is no place for the program");
    if (threads < 0) {
      ricci::cpu::fail_argument(fmt::format("{} is not a number of threads", threads));
    }
    *out = std::make_unique<PackagedProgram>(*package, threads).release();
  });
}

std::int32_t ricci_packaged_run(PackagedProgram* program, const void* const* arrays,
                                std::uint64_t seed) noexcept {
  return ricci::cpu::guarded([&] {
    if (program == nullptr || arrays == nullptr) {
      ricci::cpu::fail_argument(program == nullptr ? "there is no program to run"
                                                   : "there are no arrays to run with");
    }
    program->run(arrays, seed);
  });
}

void ricci_packaged_stop(PackagedProgram* program) noexcept {
  if (program != nullptr) program->stop();
}

const char* ricci_packaged_error() noexcept { return ricci::cpu::last_error().c_str(); }

void ricci_packaged_destroy(PackagedProgram* program) noexcept { delete program; }
