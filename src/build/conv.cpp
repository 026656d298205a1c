// Other spellings of pooling ops.
#include "ricci/build/conv.h"

#include "build/aliases.h"

namespace ricci {

AliasList conv_aliases() {
  return {{"maxpool2d_backward", {OpKind::MaxPool2dBackward}, as_op<op::MaxPool2dBackward>}};
}

}  // namespace ricci
