// The types of a node's results, shared: results of one program have the same ones in every run.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "ricci/type/type.h"

namespace ricci::detail {

class TypeList {
 public:
  TypeList() = default;
  TypeList(std::vector<Type> types)  // NOLINT: it is one
      : types_(std::make_shared<const std::vector<Type>>(std::move(types))) {}
  TypeList(Type type) : TypeList(std::vector<Type>{std::move(type)}) {}  // NOLINT

  [[nodiscard]] std::size_t size() const noexcept { return types_ ? types_->size() : 0; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] const Type& operator[](std::size_t r) const { return (*types_)[r]; }
  [[nodiscard]] const std::vector<Type>& all() const noexcept { return *types_; }

 private:
  std::shared_ptr<const std::vector<Type>> types_;
};

}  // namespace ricci::detail
