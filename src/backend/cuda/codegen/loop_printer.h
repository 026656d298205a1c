// Prints a written-out loop as one persistent kernel: a warp or a block walks from trip to trip.
// Arrays are called as in the loop's own text (b3 of the body, c3 of the condition), with `_all` in
// memory; a thread's elements are numbered q where it has several, n in the array.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/codegen/kernel_text.h"
#include "backend/cuda/codegen/loop_arrays.h"
#include "backend/cuda/codegen/text.h"

namespace ricci::cuda {

class LoopPrinter {
 public:
  LoopPrinter(const loop::WrittenLoop& loop, std::string name);
  KernelText run();

 private:
  using Item = loop::WrittenItem;
  using Strings = std::vector<std::string>;

  // loop_printer.cpp: the frame
  void print_constants(char which);
  void print_signature();
  void print_memory();
  void print_start();
  void print_hoisted(char which);
  void print_ahead();
  void print_trips();
  void print_rows();
  void print_trip();
  void print_look(const std::string& trip, int first);
  void print_kept(std::size_t k);
  void print_condition();
  void print_end();
  void copy_out(loop::StorageId s, const std::string& to);
  void carry_over(std::size_t k);
  [[nodiscard]] std::string row_text(DType dtype, const std::string& array,
                                     const loop::RowWalk& rows, const std::string& n,
                                     std::int64_t length) const;

  // loop_items.cpp: what fills the arrays
  void print_items(char which);
  void print_together(char which, std::span<const Item> items);
  [[nodiscard]] bool is_free(char which, const Item& item) const;
  void take(char which, const Item& item);
  void print_item(char which, const Item& item);
  void print_pointwise(char which, const Item& item);
  void print_reduction(char which, const Item& item);
  void print_product(char which, const Item& item);
  void print_total(char which, const Item& item);
  void store(char which, const Item& item, const std::string& place, const std::string& value);
  [[nodiscard]] std::string value(char which, const Item& item, std::size_t k,
                                  const Strings& indices, const std::string& step = "");
  [[nodiscard]] bool reads_memory(char which, const Item& item, const loop::Read& read) const;
  [[nodiscard]] std::string reg(LoopArray a) const;
  [[nodiscard]] Strings print_indices(const std::string& number,
                                      const std::vector<std::int64_t>& dims);
  /// For each of the elements that a thread has of so many.
  void for_turns(std::int64_t elements, const std::function<void()>& print);
  void declare(char which, loop::StorageId s);
  [[nodiscard]] std::string hoisted_name(char which, const Item& item, std::size_t k) const;
  [[nodiscard]] int hoisted_registers(char which, const Item& item, std::size_t k) const;

  // Threads wait before one reads what another has written, or writes what another reads.
  void wait();
  void before_read(LoopArray a);
  void before_write(LoopArray a);

  [[nodiscard]] static std::size_t at(std::int32_t n) { return static_cast<std::size_t>(n); }
  [[nodiscard]] std::string array(LoopArray a) const;

  const loop::WrittenLoop& loop_;
  const loop::LoopPlan& plan_;
  std::string name_;
  LoopArrays arrays_;
  int threads_ = 32;
  int ahead_ = 1;  // trips from which rows are fetched before they are wanted
  KernelText out_;
  Text text_;
  std::set<std::string> written_;
  std::set<std::string> read_;
  std::set<std::string> hoisted_;
  int parts_ = 0;  // arrays that totals of a block are made in
};

}  // namespace ricci::cuda
