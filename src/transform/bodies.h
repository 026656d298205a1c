// Transforms of bodies, as the rules of control flow ask for them.
#pragma once

#include "ricci/rule/body_transforms.h"

namespace ricci {

[[nodiscard]] const BodyTransforms& body_transforms();

}  // namespace ricci
