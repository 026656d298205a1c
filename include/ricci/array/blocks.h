// Derivatives of trees by trees.
//
//   auto h = hessian(loss)(net);                   // Blocks<Net, Net>
//   Array hwb = h("layer.w", "layer.b");           // [shape of w…, shape of b…]
//   Net row = h["layer.w"];                        // by every array of the net
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/array/tree.h"

namespace ricci {

namespace detail {
/// UserError(name) when no leaf has the name.
[[nodiscard]] std::size_t leaf_number(const std::vector<std::string>& names, std::string_view name);
/// The number itself; UserError(name) when there are not so many leaves.
std::size_t leaf_in_range(std::size_t number, std::size_t leaves);
template <class T>
[[nodiscard]] std::size_t count_leaves(const T& tree) {
  Flattened flat;
  flat.visit(tree);
  return flat.leaves.size();
}
}  // namespace detail

/// One array for every leaf of the one tree and every leaf of the other: [shape of the first…,
/// shape of the second…]. To functions of functions it is a tree of its blocks.
template <class Rows, class Columns>
struct Blocks {
  Rows rows;  ///< these two are for their structure
  Columns columns;
  std::vector<Array> blocks;  ///< row by row

  /// The block of two leaves, by their names or their numbers.
  [[nodiscard]] Array operator()(std::string_view row, std::string_view column) const {
    return (*this)(detail::leaf_number(leaf_names(rows), row),
                   detail::leaf_number(leaf_names(columns), column));
  }
  [[nodiscard]] Array operator()(std::size_t row, std::size_t column) const {
    const std::size_t n = detail::count_leaves(columns);
    return blocks[detail::leaf_in_range(row, detail::count_leaves(rows)) * n +
                  detail::leaf_in_range(column, n)];
  }
  /// The blocks of one leaf, as a tree of the columns' structure.
  [[nodiscard]] Columns operator[](std::string_view row) const {
    const std::size_t n = detail::count_leaves(columns);
    const std::size_t at = detail::leaf_number(leaf_names(rows), row);
    return with_leaves(columns, std::span(blocks).subspan(at * n, n));
  }
};

template <class Rows, class Columns>
struct TreeTraits<Blocks<Rows, Columns>> {
  static void visit(Blocks<Rows, Columns>& x, TreeVisitor& v) { v.visit(x.blocks); }
};

}  // namespace ricci
