// Other spellings of regions.
#include "ricci/op/region.h"

#include "build/aliases.h"

namespace ricci {

AliasList region_aliases() {
  return {{"region_multi", {OpKind::ElementwiseRegion}, as_op<op::ElementwiseRegion>}};
}

}  // namespace ricci
