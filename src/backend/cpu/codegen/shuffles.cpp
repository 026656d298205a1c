#include "backend/cpu/codegen/shuffles.h"

#include <algorithm>

namespace ricci::cpu {

using llvm::Value;

int VectorRun::count() const { return static_cast<int>((length + lanes - 1) / lanes); }

std::int64_t VectorRun::start(int vector) const {
  return std::min(std::int64_t{vector} * lanes, length - lanes);
}

int VectorRun::vector_of(std::int64_t element) const {
  return std::min(static_cast<int>(element / lanes), count() - 1);
}

Value* picked(llvm::IRBuilder<>& b, const VectorRun& run, const std::vector<Value*>& vectors,
              const std::vector<std::int64_t>& positions) {
  const std::size_t lanes = positions.size();
  Value* so_far = nullptr;
  std::vector<int> order(lanes, -1);  // lanes of what there is so far
  bool in_order = true;
  for (int v = 0; v < run.count(); ++v) {
    std::vector<int> with = order;
    bool any = false;
    for (std::size_t l = 0; l < lanes; ++l) {
      if (positions[l] < 0 || run.vector_of(positions[l]) != v) continue;
      const auto lane = static_cast<int>(positions[l] - run.start(v));
      with[l] = so_far == nullptr ? lane : static_cast<int>(lanes) + lane;
      any = true;
    }
    if (!any) continue;
    Value* next = vectors[static_cast<std::size_t>(v)];
    in_order = so_far != nullptr;
    so_far = in_order ? b.CreateShuffleVector(so_far, next, with) : next;
    for (std::size_t l = 0; l < lanes; ++l) {
      order[l] = in_order && with[l] >= 0 ? static_cast<int>(l) : with[l];
    }
  }
  return in_order ? so_far : b.CreateShuffleVector(so_far, order);
}

// Squares of 2, 4, 8, … lanes change places with their mirror images.
std::vector<Value*> transposed(llvm::IRBuilder<>& b, std::vector<Value*> vectors) {
  const std::size_t n = vectors.size();
  for (std::size_t k = 1; k < n; k *= 2) {
    std::vector<int> low(n);
    std::vector<int> high(n);
    for (std::size_t l = 0; l < n; ++l) {
      const bool second = (l & k) != 0;
      low[l] = static_cast<int>(second ? n + l - k : l);
      high[l] = static_cast<int>(second ? n + l : l + k);
    }
    for (std::size_t i = 0; i < n; ++i) {
      if ((i & k) != 0) continue;
      Value* first = vectors[i];
      Value* second = vectors[i + k];
      vectors[i] = b.CreateShuffleVector(first, second, low);
      vectors[i + k] = b.CreateShuffleVector(first, second, high);
    }
  }
  return vectors;
}

}  // namespace ricci::cpu
