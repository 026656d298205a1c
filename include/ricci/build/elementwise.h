// Further builders of element-wise ops: other names for what the op list gives.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

/// stop_gradient: the identity, through which no derivative passes.
inline constexpr detail::BuilderFor<op::StopGradient> detach{};

/// elementwise_region with several results, named in `outputs`.
inline constexpr detail::BuilderFor<op::ElementwiseRegion> region_multi{};

}  // namespace ricci
