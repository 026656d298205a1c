// Trees of arrays: what functions of arrays take and give. An Array is one, and so are plain
// structs (their fields by reflection, no macro), tuples, pairs, vectors, arrays, maps and
// optionals of trees. Numbers, enums, bools, strings and functions without captures in them are
// static: they are part of what a program is compiled for. Structs with constructors say how they
// are walked, fields and static values alike:
//
//   struct Scale {
//     explicit Scale(std::int64_t n) : w(ones({n})) {}
//     void visit(TreeVisitor& v) { v.visit("w", w); }
//     Array w;
//   };
//
// and for types of others somebody else does:
//
//   template <> struct ricci::TreeTraits<MyType> {
//     static void visit(MyType& x, ricci::TreeVisitor& v) { v.visit("weight", x.weight()); }
//   };
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/array/fields.h"

namespace ricci {

/// Specialise it for types that are no plain structs and have no member `visit`.
template <class T>
struct TreeTraits;

/// The type of a struct that a visitor comes by.
struct TreeType {
  std::string_view name;  ///< without namespaces: `Linear`
  const void* id = nullptr;
};

/// Sees the leaves of a tree in order. Those that only read promise not to change them.
class TreeVisitor {
 public:
  virtual ~TreeVisitor() = default;
  virtual void array(Array& leaf) = 0;
  /// Part of the structure: static values, sizes, what is there.
  virtual void word(std::uint64_t value) = 0;
  virtual void text(std::string_view value) = 0;
  /// An Array without a value: no leaf.
  virtual void absent() {}
  /// The same for those who give it one.
  virtual void fill(Array& /*place*/) { absent(); }
  /// A leaf that no optimiser trains: running statistics. It is a leaf like others to most.
  virtual void buffer(Array& leaf) { array(leaf); }
  /// A struct of type `type`, before its fields.
  virtual void object(const TreeType& /*type*/, void* /*self*/) {}
  virtual void enter(std::string_view /*field*/) {}
  virtual void leave() {}

  template <class T>
  void visit(T& tree);
  /// For structs around a buffer: `nn::Buffer`.
  void visit_buffer(Array& leaf) { leaf.valid() ? buffer(leaf) : fill(leaf); }
  template <class T>
  void visit(std::string_view field, T& tree) {
    enter(field);
    visit(tree);
    leave();
  }
};

namespace detail {

template <class T, template <class...> class Of>
inline constexpr bool IsA = false;
template <template <class...> class Of, class... A>
inline constexpr bool IsA<Of<A...>, Of> = true;
template <class T>
inline constexpr bool IsStdArray = false;
template <class T, std::size_t N>
inline constexpr bool IsStdArray<std::array<T, N>> = true;

template <class T>
concept TupleLike = IsA<T, std::tuple> || IsA<T, std::pair>;
template <class T>
concept WithTraits = requires(T& x, TreeVisitor& v) { TreeTraits<T>::visit(x, v); };

// A position as text, without making one at each visit.
template <std::size_t I>
inline constexpr std::array<char, 3> Digits = {char('0' + I / 100), char('0' + I / 10 % 10),
                                               char('0' + I % 10)};
template <std::size_t I>
constexpr std::string_view position_text() {
  static_assert(I < 1000, "a tuple of arrays has at most 1000 elements");
  return std::string_view(Digits<I>.data(), 3).substr(I < 10 ? 2 : I < 100 ? 1 : 0);
}
template <class T>
concept VisitsItself = requires(T& x, TreeVisitor& v) { x.visit(v); };

/// Its address stands for a type.
template <class T>
inline constexpr char TypeTag = 0;
template <class T>
inline constexpr TreeType TreeTypeOf{TypeName<T>, &TypeTag<T>};

template <class T, std::size_t... I>
void visit_tuple(T& tree, TreeVisitor& v, std::index_sequence<I...>) {
  (v.visit(position_text<I>(), std::get<I>(tree)), ...);
}
template <class T, std::size_t... I>
void visit_struct(T& tree, TreeVisitor& v, std::index_sequence<I...>) {
  [[maybe_unused]] auto fields = tie_fields(tree);
  (v.visit(FieldName<T, I>, std::get<I>(fields)), ...);
}

}  // namespace detail

template <class T>
void TreeVisitor::visit(T& tree) {
  if constexpr (std::is_const_v<T>) {
    visit(const_cast<std::remove_const_t<T>&>(tree));  // NOLINT: this visitor only reads
  } else if constexpr (std::same_as<T, Array>) {
    tree.valid() ? array(tree) : fill(tree);
  } else if constexpr (detail::WithTraits<T>) {
    TreeTraits<T>::visit(tree, *this);
  } else if constexpr (detail::VisitsItself<T>) {
    object(detail::TreeTypeOf<T>, &tree);
    tree.visit(*this);
  } else if constexpr (std::is_function_v<std::remove_pointer_t<T>>) {
    word(std::bit_cast<std::uintptr_t>(tree));
  } else if constexpr (std::is_empty_v<T> && !std::is_aggregate_v<T>) {
    // A function without captures: its type says which.
  } else if constexpr (std::is_enum_v<T> || std::integral<T>) {
    word(static_cast<std::uint64_t>(tree));
  } else if constexpr (std::floating_point<T>) {
    word(std::bit_cast<std::uint64_t>(static_cast<double>(tree)));
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, std::string_view>) {
    text(tree);
  } else if constexpr (std::same_as<T, const char*>) {
    text(std::string_view(tree));
  } else if constexpr (std::same_as<T, Dim>) {
    text(tree.to_string());
  } else if constexpr (detail::TupleLike<T>) {
    detail::visit_tuple(tree, *this, std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (detail::IsA<T, std::vector> || detail::IsStdArray<T>) {
    word(tree.size());
    std::size_t i = 0;
    for (auto& x : tree) visit(std::to_string(i++), x);
  } else if constexpr (detail::IsA<T, std::map>) {
    word(tree.size());
    for (auto& [key, x] : tree) {
      visit(key);
      if constexpr (std::convertible_to<decltype(key), std::string_view>) {
        visit(std::string_view(key), x);
      } else if constexpr (std::integral<std::remove_cvref_t<decltype(key)>>) {
        visit(std::to_string(key), x);
      } else {
        visit(std::string_view("value"), x);
      }
    }
  } else if constexpr (detail::IsA<T, std::optional>) {
    word(tree.has_value() ? 1 : 0);
    if (tree) visit(*tree);
  } else if constexpr (std::is_aggregate_v<T> && std::is_class_v<T>) {
    object(detail::TreeTypeOf<T>, &tree);
    detail::visit_struct(tree, *this, std::make_index_sequence<detail::FieldCount<T>>());
  } else {
    static_assert(detail::WithTraits<T>,
                  "a tree of arrays has a part that is no array, struct, tuple, vector, map, "
                  "optional, number or string: give it a member visit(ricci::TreeVisitor&), or "
                  "specialise ricci::TreeTraits for it");
  }
}

namespace detail {

/// The leaves of a tree, and its structure as words.
class Flattened final : public TreeVisitor {
 public:
  Flattened() { leaves.reserve(8); }
  void array(Array& leaf) override { leaves.push_back(&leaf); }
  void word(std::uint64_t value) override { words.push_back(value); }
  void text(std::string_view value) override;
  void absent() override { words.push_back(Absent | leaves.size()); }

  static constexpr std::uint64_t Absent = std::uint64_t{1} << 62;
  std::vector<const Array*> leaves;
  std::vector<std::uint64_t> words;
};

/// Knows the name of what it is at: `c1.w`.
class NamingVisitor : public TreeVisitor {
 public:
  void word(std::uint64_t) override {}
  void text(std::string_view) override {}
  void enter(std::string_view field) override;
  void leave() override;

 protected:
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  std::vector<std::size_t> ends_;
};

/// The names of the leaves.
class LeafNames final : public NamingVisitor {
 public:
  void array(Array&) override { names.push_back(path()); }

  std::vector<std::string> names;
};

/// Puts arrays in the place of the leaves, in order.
class Refill final : public TreeVisitor {
 public:
  explicit Refill(std::span<const Array> arrays) : arrays_(arrays) {}
  void array(Array& leaf) override { leaf = arrays_[next_++]; }
  void word(std::uint64_t) override {}
  void text(std::string_view) override {}

 private:
  std::span<const Array> arrays_;
  std::size_t next_ = 0;
};

}  // namespace detail

namespace detail {
/// Vectors one behind the other, and a vector cut into arrays of these shapes.
[[nodiscard]] Array joined(std::span<const Array> arrays, Here where);
[[nodiscard]] std::vector<Array> cut_into(const Array& flat, std::span<const Array> like);
}  // namespace detail

/// The leaves of a tree, in order.
template <class T>
[[nodiscard]] std::vector<Array> leaves(const T& tree) {
  detail::Flattened flat;
  flat.visit(tree);
  std::vector<Array> out;
  for (const Array* x : flat.leaves) out.push_back(*x);
  return out;
}

/// The names of the leaves, in order: fields, positions and keys, joined by dots.
template <class T>
[[nodiscard]] std::vector<std::string> leaf_names(const T& tree) {
  detail::LeafNames names;
  names.visit(tree);
  return std::move(names.names);
}

/// The tree with other leaves, in order.
template <class T>
[[nodiscard]] T with_leaves(T tree, std::span<const Array> arrays) {
  detail::Refill(arrays).visit(tree);
  return tree;
}

/// All leaves as one vector, and what makes a tree of such a vector again:
///   auto [flat, unravel] = ravel_tree(params);
/// Leaves are of one dtype.
template <class T>
struct RaveledTree {
  struct Unravel {
    T like;
    [[nodiscard]] T operator()(const Array& elements) const {
      return with_leaves(like, detail::cut_into(elements, leaves(like)));
    }
  };
  Array flat;
  Unravel unravel;
};
template <class T>
[[nodiscard]] RaveledTree<T> ravel_tree(const T& tree, Here where = Here::current()) {
  return {detail::joined(leaves(tree), where), {tree}};
}

/// f(f(f(init, a), b), …) over the leaves; without `init` the first leaf is where it starts.
template <class F, class T>
[[nodiscard]] Array tree_reduce(F&& f, const T& tree, const Array& init = {}) {
  Array out = init;
  for (const Array& x : leaves(tree)) out = out.valid() ? Array(f(out, x)) : x;
  return out;
}

/// f of every leaf (and of the leaves of other trees of the same structure), as a tree.
template <class F, class T, class... More>
[[nodiscard]] T tree_map(F&& f, const T& tree, const More&... more) {
  std::vector<Array> out = leaves(tree);
  const std::array<std::vector<Array>, sizeof...(More)> others = {leaves(more)...};
  for (std::size_t i = 0; i < out.size(); ++i) {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      out[i] = f(out[i], others[K].at(i)...);
    }(std::make_index_sequence<sizeof...(More)>());
  }
  return with_leaves(tree, out);
}

}  // namespace ricci
