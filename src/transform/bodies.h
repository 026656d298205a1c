// Transforms of bodies, as the rules of control flow ask for them.
#pragma once

#include "ricci/compiler/rule/body_transforms.h"
#include "ricci/transform/vmap.h"

namespace ricci {

/// `random`: what draws in bodies do when they are batched.
[[nodiscard]] const BodyTransforms& body_transforms(BatchedRandom random = BatchedRandom::Shared);
/// The transforms of a gradient that keeps of scans what `saving` says.
[[nodiscard]] std::unique_ptr<const BodyTransforms> body_transforms(ScanSaving saving);

}  // namespace ricci
