// Parts of the loops' kernels.
#pragma once

#include <complex>
#include <cstring>
#include <span>
#include <vector>

#include "ricci/compiler/rule/eval.h"
#include "ricci/op/leaf.h"

namespace ricci::rule {

/// Rows of equal type, filled one by one; those never set are zero.
class Rows {
 public:
  explicit Rows(const Type& type) : tensor_(Tensor::zeros(type)) {
    const std::int64_t rows = tensor_.dims()[0];
    bytes_ = rows == 0 ? 0 : tensor_.numel() / rows * size_of(type.dtype);
  }
  void set(std::int64_t row, const Tensor& value) {
    if (bytes_ == 0) return;
    const Tensor source = value.contiguous();
    std::memcpy(tensor_.mutable_data() + row * bytes_, source.data(),
                static_cast<std::size_t>(bytes_));
  }
  [[nodiscard]] Tensor take() { return std::move(tensor_); }

 private:
  Tensor tensor_;
  std::int64_t bytes_ = 0;
};

[[nodiscard]] inline Tensor row_of(const Tensor& t, std::int64_t row) {
  StaticDims dims(t.dims().begin() + 1, t.dims().end());
  return t.narrowed(0, row, 1).reshaped(std::move(dims));
}

/// The visiting step after which kept row k holds the carry: p_k = ⌈(k+1)·L/K⌉ - 1.
[[nodiscard]] inline std::int64_t checkpoint_step(std::int64_t k, std::int64_t length,
                                                  std::int64_t count) {
  // Split so that the product cannot overflow.
  const std::int64_t rest = (k + 1) * (length % count);
  return (k + 1) * (length / count) + (rest + count - 1) / count - 1;
}

/// A sum of tensors, wider than any dtype and rounded once when it is read.
class WideSum {
 public:
  explicit WideSum(const Type& type)
      : type_(type), numbers_(static_cast<std::size_t>(*type.numel())) {}
  void add(const Tensor& t) {
    const auto more = t.numbers<std::complex<double>>();
    for (std::size_t i = 0; i < numbers_.size(); ++i) numbers_[i] += more[i];
  }
  [[nodiscard]] Tensor value() const {
    return Tensor::from_numbers<std::complex<double>>(type_, numbers_);
  }

 private:
  Type type_;
  std::vector<std::complex<double>> numbers_;
};

/// The inputs of a derivative body in its own order: ordinary ones in turn, `d_output(i)` for each
/// input of that role, zeros where d_output gives nothing.
template <class F>
[[nodiscard]] std::vector<Tensor> derivative_inputs(const Graph& body,
                                                    std::span<const Tensor> ordinary,
                                                    F&& d_output) {
  std::vector<Tensor> inputs;
  std::size_t next = 0;
  for (const NodeId id : body.inputs()) {
    const Node& node = body.node(id);
    const op::InputRole& role = node.op.as<op::Input>()->role;
    if (role.kind == op::InputRole::Kind::None) {
      inputs.push_back(ordinary[next++]);
      continue;
    }
    const std::optional<Tensor> value = d_output(static_cast<std::size_t>(role.index));
    inputs.push_back(value ? *value : Tensor::zeros(node.types[0]));
  }
  return inputs;
}

}  // namespace ricci::rule
