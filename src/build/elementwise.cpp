// Other spellings of element-wise ops.
#include "ricci/op/elementwise.h"

#include "build/aliases.h"

namespace ricci {

AliasList elementwise_aliases() {
  return {{"detach", {OpKind::StopGradient}, as_op<op::StopGradient>}};
}

}  // namespace ricci
