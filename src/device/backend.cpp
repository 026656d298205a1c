#include "ricci/compiler/device/backend.h"

#include <fmt/format.h>

#include "ricci/support/error.h"

namespace ricci::device {
namespace {

[[noreturn]] void fail_unsupported(const Compiler& compiler, std::string_view what) {
  throw UserError(ErrorCode::UnsupportedOnBackend,
                  fmt::format("the device '{}' has no {}", compiler.name(), what),
                  "a device that makes machine code has: 'cpu', where it is part of the build");
}

}  // namespace

std::string Compiler::code_text(const Program& /*program*/, std::string_view form,
                                const std::string& /*machine*/) const {
  fail_unsupported(*this, fmt::format("code in the form of {}", form));
}

Machine Compiler::machine(const std::string& /*name*/) const {
  fail_unsupported(*this, "programs that are compiled ahead of time");
}

std::vector<std::byte> Compiler::object_code(const Program& /*program*/,
                                             const ObjectParts& /*parts*/,
                                             const Machine& /*machine*/) const {
  fail_unsupported(*this, "programs that are compiled ahead of time");
}

}  // namespace ricci::device
