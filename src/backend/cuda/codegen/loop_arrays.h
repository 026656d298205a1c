// Where the arrays of a written-out loop are while its kernel runs. Element n of an array that is
// computed belongs to thread n % threads, which holds it in a register; arrays of one element are
// held by all threads. What is read by others than its owners lies in shared memory too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ricci/compiler/loop/written_loop.h"

namespace ricci::cuda {

/// An array of the body ('b') or of the condition ('c').
struct LoopArray {
  char which = 'b';
  loop::StorageId id = -1;
  bool operator==(const LoopArray&) const = default;
};

struct ArrayPlace {
  enum class Kind : std::uint8_t {
    Given,  ///< a constant or a whole operand: in global memory, and the same in all trips
    Row,    ///< a row of an operand: fetched trips before it is wanted
    Own,    ///< computed, or carried
  };
  Kind kind = Kind::Own;
  DType dtype = DType::F32;
  std::int64_t elements = 0;
  int registers = 0;       ///< how many a thread holds; 0: none
  bool in_memory = false;  ///< shared, or in the scratch where there is too much of it
  std::int64_t offset = 0;
};

class LoopArrays {
 public:
  explicit LoopArrays(const loop::WrittenLoop& loop);

  [[nodiscard]] int threads() const { return threads_; }
  [[nodiscard]] std::int64_t memory_bytes() const { return memory_bytes_; }
  [[nodiscard]] const loop::WrittenBody& body(char which) const {
    return which == 'b' ? loop_.body : *loop_.condition;
  }
  /// The condition's inputs are the carries themselves.
  [[nodiscard]] LoopArray canonical(LoopArray a) const;
  [[nodiscard]] const ArrayPlace& place(LoopArray a) const;
  [[nodiscard]] const loop::Storage& storage(LoopArray a) const {
    return body(a.which).storages[static_cast<std::size_t>(a.id)];
  }

  /// How many elements an item fills, and how many of them a thread: 0 for more than it holds.
  [[nodiscard]] static std::int64_t width(const loop::WrittenItem& item);
  [[nodiscard]] int turns(std::int64_t elements) const;
  /// Does element n of the item read element n of an array, or the one element it has?
  [[nodiscard]] bool is_aligned(char which, const loop::WrittenItem& item,
                                const loop::Read& read) const;
  /// Is one number made of many, by all threads together?
  [[nodiscard]] static bool is_total(const loop::WrittenItem& item);

 private:
  [[nodiscard]] ArrayPlace& place_of(LoopArray a);
  void choose_threads();
  void name_places(char which);
  void find_readers(char which);

  const loop::WrittenLoop& loop_;
  int threads_ = 32;
  std::int64_t memory_bytes_ = 0;
  std::vector<ArrayPlace> places_[2];  // of the body and of the condition
};

}  // namespace ricci::cuda
