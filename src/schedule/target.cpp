#include "ricci/schedule/target.h"

namespace ricci::schedule {
namespace {

class PlainTarget final : public Target {
 public:
  [[nodiscard]] bool claims(const loop::Call& /*call*/,
                            std::span<const Type> /*operands*/) const override {
    return false;
  }
};

}  // namespace

// Vectors as the widest machines have them: a program does not depend on where it was made. So many
// instructions are a few milliseconds of compiling.
bool Target::writes_out(const loop::WrittenLoop& loop) const {
  constexpr std::int64_t VectorBytes = 64;
  constexpr std::int64_t MostInstructions = 900;
  return loop::vector_instructions(loop, VectorBytes) <= MostInstructions;
}

const Target& plain_target() {
  static const PlainTarget target;
  return target;
}

}  // namespace ricci::schedule
