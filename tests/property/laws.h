// Laws of derivatives and batching, each a check of a program: the empty text, or what is wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "property/generator.h"

namespace ricci::testing {

/// The inputs and params of some dtypes that can be moved; the laws are those of f64.
[[nodiscard]] std::vector<std::string> movable(const Program& p,
                                               const DTypeSet& dtypes = {DType::F64});
/// Programs whose values stay of moderate size say something about derivatives.
[[nodiscard]] bool says_something(const Program& p);
/// A program with one number as its output, the float outputs of `p` summed up; `p` itself where it
/// has none.
[[nodiscard]] Program loss_of(const Program& p);

/// ⟨u, J t⟩ = ⟨Jᵀu, t⟩
[[nodiscard]] std::string check_adjoint(const Program& p);
/// ⟨v, H u⟩ = ⟨u, H v⟩
[[nodiscard]] std::string check_hessian(const Program& p);
/// The three derivatives along a line by Taylor mode are those of nested forward mode.
[[nodiscard]] std::string check_jet(const Program& p);
/// One run over a batch gives what a run per example gives.
[[nodiscard]] std::string check_vmap(const Program& p);
/// Computing inner values again changes no bit, of the values or of the gradients.
[[nodiscard]] std::string check_checkpoint(const Program& p);

// The program a transform makes of another, with values for what it added. Tangents and cotangents
// are drawn; a batch is the values and a shrunken copy of them.
[[nodiscard]] Program forward_of(const Program& p, const DTypeSet& dtypes = {DType::F64});
[[nodiscard]] Program reverse_of(const Program& p, const DTypeSet& dtypes = {DType::F64});
[[nodiscard]] Program batch_of(const Program& p, const DTypeSet& dtypes = {DType::F64});
/// A letter a transform, the first the inmost: `f`, `r` and `b` for the three above. The program
/// itself where nothing can be moved any more.
[[nodiscard]] Program transformed(Program p, std::string_view letters,
                                  const DTypeSet& dtypes = {DType::F64});

}  // namespace ricci::testing
