// Weights from PyTorch: a network with the fields of its twin reads the arrays of its state_dict
// and gives what PyTorch gave.
#include <iostream>

#include "ricci/array.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

struct Layer {  // as PyTorch names what a layer has
  Array weight, bias;
};
struct Net {
  Layer conv{zeros({4, 1, 3, 3}), zeros({4})};
  Layer norm{zeros({64}), zeros({64})};
  Layer out{zeros({3, 64}), zeros({3})};

  Array operator()(Array x) const {
    x = max_pool2d(relu(conv2d(x, conv.weight, conv.bias, {.padding = 1})), 2);
    x = layer_norm(flatten(x, 1), norm.weight, norm.bias);
    return softmax(matmul(x, transpose(out.weight)) + out.bias, 1);
  }
};

int main(int count, char** arguments) {
  const std::string file = count > 1 ? arguments[1] : "examples/torch_weights/weights.npz";
  const auto saved = load_npz(file);
  const Net net = load(file, Net{});  // by name: "conv.weight", "norm.bias", …
  const Array y = jit([](const Net& n, Array x) { return n(x); })(net, saved.at("x"));
  std::cout << "classes " << argmax(y, 1) << "\nprobabilities\n" << y << "\n";
  const Array gap = max(abs(y - saved.at("y")));
  std::cout << "largest difference to PyTorch " << gap << "\n";
  return gap < 1e-5 ? 0 : 1;
}
