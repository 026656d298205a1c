// Every limit on programs, in one place. They keep time and memory in proportion to what is read,
// and walks of nested structures within the stack. Those of graphs are fixed and hold however a
// graph is made; those of text can be raised by whoever trusts the text:
//
//   parse(text, {.limits = {.nodes = 10'000'000}});      // or: ricci print --limit nodes=10000000
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ricci {

// Of graphs.
inline constexpr std::size_t MostNodes = std::size_t{1} << 23;  ///< of one graph or body
inline constexpr int MostNesting = 64;               ///< bodies in bodies, and lists in lists
inline constexpr std::size_t MostRank = 64;          ///< axes of a type
inline constexpr std::size_t MostDimTerms = 256;     ///< terms of a symbolic size
inline constexpr std::size_t MostDimDegree = 64;     ///< symbols in one term of it
inline constexpr std::size_t MostTypeBytes = 16384;  ///< of a type, written as text

// Of messages.
inline constexpr std::size_t MostNotes = 8;    ///< operands described in one message
inline constexpr std::size_t MostFaults = 64;  ///< faults the verifier describes

/// Of text that is read. See ParseOptions::limits.
struct Limits {
  std::int64_t source_bytes = std::int64_t{1} << 30;  ///< of a file
  std::int64_t graphs = 1'000'000;                    ///< in a file
  std::int64_t nodes = 2'000'000;                     ///< in a file, those of bodies included
  std::int64_t name_bytes = 4096;        ///< of a name of anything; digits of a number, too
  std::int64_t values = 1'000'000;       ///< operands or results of one op, outputs of one graph
  std::int64_t attributes = 256;         ///< of one op
  std::int64_t list_length = 1'000'000;  ///< of a list in an attribute

  /// UserError(name) when there is no such limit.
  void set(std::string_view name, std::int64_t value);
  friend bool operator==(const Limits&, const Limits&) = default;
};

/// A limit of text by name, for tools and documentation.
struct LimitInfo {
  std::string_view name;
  std::string_view help;
  std::int64_t Limits::* value;
};
[[nodiscard]] std::span<const LimitInfo> all_limits();

/// What to do about a limit that was met: the help line of its message.
[[nodiscard]] std::string raise_help(std::string_view limit);

}  // namespace ricci
