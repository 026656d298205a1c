#include "backend/lir/backend.h"

namespace ricci::lir {

const schedule::Target& Backend::target() const noexcept { return schedule::plain_target(); }

std::unique_ptr<device::Executable> Backend::compile(
    std::shared_ptr<const Program> program, const device::CompileSettings& /*settings*/) const {
  return std::make_unique<Executable>(std::move(program), memory_, placement_);
}

std::shared_ptr<const device::Backend> make_backend(int /*threads*/) {
  return std::make_shared<Backend>();
}

std::shared_ptr<const device::Compiler> make_compiler() { return make_backend(1); }
std::string why_not() { return {}; }

}  // namespace ricci::lir
