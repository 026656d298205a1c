// What a model is made of, as a table.
//
//   std::cout << nn::summary(net);
//
//   name    type    arrays                     params
//   c1      Conv2d  w [8, 1, 3, 3], b [8]          80
//   out     Linear  w [256, 10], b [10]         2,570
//   Net             2,650 params, 10.4 KiB
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ricci/array/tree.h"

namespace ricci::detail {

class ModelSummary final : public NamingVisitor {
 public:
  void array(Array& leaf) override { add(leaf, false); }
  void buffer(Array& leaf) override { add(leaf, true); }
  void object(const TreeType& type, void* self) override;
  void leave() override;
  [[nodiscard]] std::string table() const;

 private:
  struct Row {
    std::string name, type, arrays;
    std::int64_t params = 0;
  };
  void add(const Array& leaf, bool is_buffer);

  std::vector<Row> rows_;
  std::vector<std::size_t> open_;  // rows of the structs around what is visited
  std::int64_t params_ = 0, buffers_ = 0, bytes_ = 0;
};

}  // namespace ricci::detail

namespace ricci::nn {

/// One line for every struct that has arrays of its own, with how many numbers they hold; buffers
/// are marked and counted apart.
template <class Model>
[[nodiscard]] std::string summary(const Model& model) {
  ricci::detail::ModelSummary out;
  out.visit(model);
  return out.table();
}

}  // namespace ricci::nn
