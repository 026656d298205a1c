#include "backend/cuda/codegen/coarse.h"

#include <algorithm>

#include "op/kinds.h"
#include "type/small_dtype.h"

namespace ricci::cuda {
namespace {

using loop::Code;
using loop::Instr;
using loop::Reg;

// Does what is wrong with an operand of this show in the result as no more than it was, or than the
// other operand's own error? Decisions and whole numbers may be anything then.
bool carries(const Instr& i) {
  switch (i.code) {
    case Code::Copy: return true;
    case Code::Select: return true;
    case Code::Cast: return is_float(i.dtype) && !is_complex(i.dtype);
    case Code::Unary:
      switch (i.unary()) {
        case UnaryKind::Neg:
        case UnaryKind::Abs:
        case UnaryKind::Square:
        case UnaryKind::Sqrt:
        case UnaryKind::Rsqrt:
        case UnaryKind::Reciprocal:
        case UnaryKind::Relu: return true;
        // Of sums of powers, for one: what they lack is as much as f32 has not room for either.
        case UnaryKind::Log: return true;
        default: return false;
      }
    case Code::Binary:
      switch (i.binary()) {
        case BinaryKind::Add:
        case BinaryKind::Sub:
        case BinaryKind::Mul:
        case BinaryKind::Div:
        case BinaryKind::Max:
        case BinaryKind::Min: return true;
        default: return false;
      }
    default: return false;
  }
}

class Finder {
 public:
  explicit Finder(const loop::Kernel& kernel) : k_(kernel), coarse_(kernel.code.size(), true) {}

  std::vector<bool> run() {
    for (std::size_t r = 0; r < k_.code.size(); ++r) {
      if (k_.code[r].dtype != DType::F32) coarse_[r] = false;
    }
    // What is written as it is, and what is found over rows.
    for (const loop::Stage& stage : k_.stages) {
      for (const loop::Store& s : stage.stores) {
        const loop::Argument& to = argument(s.access.argument);
        if (!is_small_float(to.dtype) && to.role != loop::ArgumentRole::Local) keep(s.value);
        keep_places(s.access);
      }
    }
    for (const loop::Accumulator& acc : k_.accumulators) keep(acc.value);
    // A reduction hands on what its reader hands on, so this ends when nothing changes any more.
    for (bool again = true; again;) {
      changed_ = false;
      for (std::size_t r = k_.code.size(); r-- > 0;) look(r);
      look_at_stored_values();
      again = changed_;
    }
    return std::move(coarse_);
  }

 private:
  [[nodiscard]] const loop::Argument& argument(std::int32_t a) const {
    return k_.arguments[static_cast<std::size_t>(a)];
  }

  void keep(Reg r) {
    if (r == loop::NoReg || !coarse_[static_cast<std::size_t>(r)]) return;
    coarse_[static_cast<std::size_t>(r)] = false;
    changed_ = true;
  }

  void keep_places(const loop::Access& access) {
    for (const loop::Term& t : access.terms) keep(t.index);
  }

  void look(std::size_t r) {
    const Instr& i = k_.code[r];
    if (i.code == Code::Load) keep_places(i.access);
    if (i.code == Code::Reduced && !hands_on(r)) {
      keep(k_.reductions[static_cast<std::size_t>(i.reduction)].value);
    }
    const bool passes = hands_on(r) && carries(i);
    for (std::size_t n = 0; n < i.in.size(); ++n) {
      const bool decides = i.code == Code::Select && n == 0;
      if (!passes || decides) keep(i.in[n]);
    }
  }

  // Is the register itself rounded, or read only by what rounds?
  [[nodiscard]] bool hands_on(std::size_t r) const {
    return is_small_float(k_.code[r].dtype) || coarse_[r];
  }

  // A row that waits in memory is what its readers make of it.
  void look_at_stored_values() {
    for (const loop::Stage& stage : k_.stages) {
      for (const loop::Store& s : stage.stores) {
        if (is_small_float(argument(s.access.argument).dtype)) continue;
        const bool read_exactly = std::ranges::any_of(k_.code, [&](const Instr& i) {
          return i.code == Code::Load && i.access.argument == s.access.argument &&
                 !hands_on(static_cast<std::size_t>(&i - k_.code.data()));
        });
        if (read_exactly) keep(s.value);
      }
    }
  }

  const loop::Kernel& k_;
  std::vector<bool> coarse_;
  bool changed_ = false;
};

}  // namespace

std::vector<bool> find_coarse(const loop::Kernel& kernel) { return Finder(kernel).run(); }

const char* near_function(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::Exp: return "near_exp";
    case UnaryKind::Sigmoid: return "near_sigmoid";
    case UnaryKind::Silu: return "near_silu";
    case UnaryKind::GeluApprox: return "near_gelu_approx";
    default: return nullptr;
  }
}

}  // namespace ricci::cuda
