// Prints a kernel: where its threads stand, then stage by stage what each does with the elements it
// has. Registers are called as in the kernel's own text (r3), reductions m0, accumulators n0,
// arguments a0, axes i0.
#pragma once

#include <string>
#include <vector>

#include "backend/cuda/codegen/kernel_text.h"
#include "backend/cuda/codegen/mapping.h"
#include "backend/cuda/codegen/text.h"

namespace ricci::cuda {

/// What the function of a part is called until it has a name.
inline constexpr const char* PartName = "this_part";

class KernelPrinter {
 public:
  KernelPrinter(const loop::Kernel& kernel, std::string name);
  KernelPrinter(const loop::Kernel& kernel, std::string name, Mapping mapping);
  KernelText run();
  /// As a function of one block of several kernels': its number is the last parameter. The text is
  /// without what it uses.
  KernelText run_as_part();
  /// As a function of one point, which is the last parameter: what a thread does there. The text is
  /// without what it uses.
  KernelText run_at_point();

 private:
  using Access = loop::Access;
  using Instr = loop::Instr;
  using Reg = loop::Reg;
  using Stage = loop::Stage;

  // kernel_printer.cpp: the frame
  void print_all();
  void print_signature();
  void print_points();
  void print_tiles();
  void print_columns();
  void print_rows();
  void print_team_place();
  void print_row_loop();
  void print_chunk_bounds(const std::string& slot);
  void print_indices(const std::string& number, std::size_t from, std::size_t to, int unit);
  void print_stages();
  void declare_held();
  void declare_accumulators();
  void end_blocks();
  void join_blocks();
  void join_strips();
  void join_teams();
  [[nodiscard]] bool needs_barrier_behind_row() const;
  void write_accumulators(const std::string& slot);
  void for_accumulated(const loop::Accumulator& acc, const std::vector<std::string>& statements);
  void place_locals();

  // stage_printer.cpp: what happens in a stage
  void print_once(const Stage& stage);
  void print_elements(const Stage& stage);
  void print_element_loop(const Stage& stage);
  void print_row_indices();
  int open_packs();
  void close_packs(int open);
  void print_vector(const Stage& stage);
  void print_reductions(const Stage& stage);
  void print_packed_loads(const Stage& stage);
  void take_held(const Stage& stage);
  void keep_held(const Stage& stage);
  void print_lanes(const Stage& stage, const std::vector<Reg>& code);
  void print_stores(const Stage& stage);
  void print_packed_stores(const Stage& stage);
  void define(Reg r);
  [[nodiscard]] std::string value_of(const Instr& i);
  [[nodiscard]] bool is_near(const Instr& i) const;
  [[nodiscard]] std::string compared_text(const Instr& i) const;
  [[nodiscard]] std::string fused_text(const Instr& i) const;
  [[nodiscard]] std::string other_sigmoid(const Instr& i) const;
  [[nodiscard]] DType rounded_in(const Instr& i, DType dtype) const;
  [[nodiscard]] std::string load_text(Reg r);
  [[nodiscard]] std::string random_text(const Instr& i);
  [[nodiscard]] bool is_divisor(Reg r) const;
  [[nodiscard]] std::string running_text(const Instr& i);
  [[nodiscard]] bool varies(Reg r) const { return varies_[index(r)]; }
  void find_varying();

  // ahead.cpp: loads before the stores that they stand behind
  [[nodiscard]] std::vector<Reg> plain_packs(const Stage& stage) const;
  [[nodiscard]] bool stores_elements(const Stage& stage) const;
  [[nodiscard]] std::int64_t bytes_ahead() const;
  void read_packs_ahead(const Stage& stage);
  void find_next_row();
  void read_first_row(const std::string& row);
  void read_next_row();
  void read_row(const std::string& row);
  [[nodiscard]] bool is_ahead(Reg r) const;
  [[nodiscard]] std::string pack_name(Reg r) const;

  // places.cpp: addresses
  /// offset + Σ strides·index, of the lane where `lane` is set.
  [[nodiscard]] std::string linear(std::int64_t offset, const std::vector<std::int64_t>& strides,
                                   bool lane) const;
  [[nodiscard]] std::string place(const Access& access, bool lane, const std::string& owner);
  [[nodiscard]] std::string guard_text(const Access& access, bool lane) const;
  [[nodiscard]] std::string print_terms(const Access& access, const std::string& owner);
  [[nodiscard]] std::string element(const Access& access, const std::string& at) const;
  [[nodiscard]] std::string pack_type(DType dtype) const;
  [[nodiscard]] std::string packed_place(const Access& access, const std::string& at,
                                         bool reads) const;
  [[nodiscard]] const Held* held(const Access& access) const;
  [[nodiscard]] std::string held_name(const Held& h) const;
  [[nodiscard]] std::string held_pack(const Held& h) const;
  [[nodiscard]] std::string held_place(const Held& h) const;
  [[nodiscard]] std::string pack_of(const Held& h) const;
  [[nodiscard]] std::string held_lane(const Held& h) const;
  [[nodiscard]] std::string accumulator_lane(std::size_t n, const char* which = "") const;
  [[nodiscard]] std::string store_name(const Stage& stage, const loop::Store& store) const;
  [[nodiscard]] bool is_dead(const Stage& stage, const loop::Store& store) const;
  [[nodiscard]] bool is_rounded_together(const loop::Store& store) const;
  [[nodiscard]] bool is_lane_packed(const Access& access) const;

  [[nodiscard]] static std::size_t index(Reg r) { return static_cast<std::size_t>(r); }
  [[nodiscard]] const Instr& instr(Reg r) const { return k_.code[index(r)]; }
  [[nodiscard]] const loop::Argument& argument(std::int32_t a) const {
    return k_.arguments[static_cast<std::size_t>(a)];
  }
  [[nodiscard]] static std::string reg(Reg r) { return "r" + std::to_string(r); }
  [[nodiscard]] bool is_rows() const { return m_.kind == Mapping::Kind::Rows; }
  [[nodiscard]] bool has_row_axes() const { return k_.outer < k_.extents.size(); }
  [[nodiscard]] const char* whole() const { return m_.wide ? "i64" : "int"; }
  [[nodiscard]] std::int64_t length_of(const loop::Accumulator& acc) const {
    return acc.per_element ? k_.row_elements() : 1;
  }
  /// The row's only axis is called as the element of the row.
  [[nodiscard]] std::string axis(std::size_t a) const {
    const bool only = is_rows() && a == k_.outer && k_.extents.size() - k_.outer == 1;
    return only ? "e" : "i" + std::to_string(a);
  }
  /// Of the thread that does what happens once a row.
  [[nodiscard]] std::string is_first() const;

  const loop::Kernel& k_;
  std::string name_;
  Mapping m_;
  KernelText out_;
  Text text_;
  std::vector<bool> varies_;  // from lane to lane, by register
  std::vector<bool> coarse_;  // see find_coarse
  std::vector<Reg> ahead_;    // what is loaded ahead of the stores before it
  const char* block_ = "blockIdx.x";
  bool at_point_ = false;  // the point is a parameter
  bool in_lanes_ = false;
  bool in_elements_ = false;
  bool loops_ = false;                 // over rows, for lack of room for all of them
  std::int64_t scratch_per_team_ = 0;  // bytes
};

}  // namespace ricci::cuda
