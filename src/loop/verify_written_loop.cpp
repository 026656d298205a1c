// What a written-out loop must be for those who run it: nothing here is taken for granted.
#include <algorithm>

#include "ricci/compiler/loop/written_loop.h"

#include "loop/plan_fault.h"
#include "loop/reach.h"
#include "op/kinds.h"

namespace ricci::loop {
namespace {

constexpr const char* NoInstruction = "a written-out loop has an instruction that is none";

class BodyChecker {
 public:
  explicit BodyChecker(const WrittenBody& body)
      : body_(body), state_(body.storages.size()), filled_(body.storages.size(), 0) {}

  void run() {
    for (std::size_t s = 0; s < state_.size(); ++s) check(body_.storages[s], s);
    for (const StorageId s : body_.inputs) {
      require_plan(exists(s) && state_[index(s)] == State::Free,
                   "an input of a written-out loop is no array of its own");
      state_[index(s)] = State::Given;
    }
    for (const WrittenItem& item : body_.items) check(item);
    std::vector<bool> is_output(state_.size(), false);
    for (const StorageId s : body_.outputs) {
      require_plan(exists(s) && state_[index(s)] == State::Free && !is_output[index(s)],
                   "an output of a written-out loop is no array of its own");
      is_output[index(s)] = true;
      require_filled(s);
    }
  }

 private:
  enum class State : std::uint8_t { Free, Given };

  static std::size_t index(StorageId s) { return static_cast<std::size_t>(s); }
  [[nodiscard]] bool exists(StorageId s) const { return s >= 0 && index(s) < state_.size(); }

  void check(const Storage& s, std::size_t number) {
    constexpr std::int64_t Most = std::int64_t{1} << 56;
    require_plan(!is_complex(s.dtype) && s.elements >= 0 && s.elements <= Most,
                 "an array of a written-out loop has a type or size that cannot be");
    if (!s.constant) return;
    require_plan(s.constant->dtype() == s.dtype && s.constant->numel() == s.elements,
                 "a constant of a written-out loop has another size than its array");
    state_[number] = State::Given;
  }
  // Parts of arrays are filled one by one; all of them before it is read.
  void require_filled(StorageId s) const {
    require_plan(
        state_[index(s)] == State::Given || filled_[index(s)] >= body_.storages[index(s)].elements,
        "a written-out loop reads what nothing has filled");
  }

  void check(const WrittenItem& item) {
    constexpr std::int64_t MostElements = std::int64_t{1} << 40;
    std::int64_t elements = 1;
    for (const std::int64_t n : item.dims) {
      require_plan(n > 0 && n <= MostElements / elements,
                   "a written-out loop walks over no known box");
      elements *= n;
    }
    require_plan(exists(item.storage) && state_[index(item.storage)] == State::Free,
                 "a written-out loop writes to what it may only read");
    switch (item.kind) {
      case WrittenItem::Kind::Pointwise: return check_pointwise(item, elements);
      case WrittenItem::Kind::Reduction: return check_reduction(item);
      case WrittenItem::Kind::Product: return check_product(item);
    }
    throw PlanFault{NoInstruction};
  }

  void check(const Read& read, const WrittenItem& item, std::span<const std::int64_t> dims) const {
    if (const auto* splat = std::get_if<SplatRead>(&read)) {
      require_plan(
          !is_complex(splat->dtype) &&
              (is_float(splat->dtype) ? std::holds_alternative<double>(splat->number)
                                      : std::holds_alternative<std::int64_t>(splat->number)),
          "a number of a written-out loop is of another type than it says");
      return;
    }
    const auto* stored = std::get_if<StoredRead>(&read);
    const Layout& layout = stored != nullptr ? stored->layout : std::get<SequenceRead>(read).layout;
    require_plan(layout.strides.size() == dims.size(), "a written-out loop reads along other axes");
    const Reach reach(layout, dims);
    if (stored == nullptr) {
      require_plan(!is_complex(std::get<SequenceRead>(read).dtype) && reach.is_known(),
                   "a sequence of a written-out loop has no known numbers");
      return;
    }
    require_plan(exists(stored->storage) && stored->storage != item.storage,
                 "a written-out loop reads an array that does not exist, or that it fills");
    require_filled(stored->storage);
    require_plan(reach.is_inside(body_.storages[index(stored->storage)].elements),
                 "a written-out loop reads outside an array");
  }

  // Axes from the narrowest: each goes farther than all before it together.
  static bool is_one_to_one(const Layout& to, std::span<const std::int64_t> dims) {
    std::vector<std::pair<std::int64_t, std::int64_t>> axes;
    for (std::size_t a = 0; a < dims.size(); ++a) {
      if (dims[a] > 1) axes.emplace_back(to.strides[a], dims[a]);
    }
    std::ranges::sort(axes);
    std::int64_t end = 1;
    for (const auto& [stride, count] : axes) {
      if (stride < end) return false;
      end = saturating_mul(stride, count);
    }
    return true;
  }

  void check_pointwise(const WrittenItem& item, std::int64_t elements) {
    for (const Read& read : item.reads) check(read, item, item.dims);
    require_plan(
        item.instr.dtype == type_of_result(item) && item.instr.dtype == written(item).dtype,
        "an instruction of a written-out loop gives another type");
    require_plan(item.to.strides.size() == item.dims.size() &&
                     Reach(item.to, item.dims).is_inside(written(item).elements),
                 "a written-out loop writes outside an array");
    require_plan(is_one_to_one(item.to, item.dims), "an item writes twice to one place");
    filled_[index(item.storage)] += elements;
  }

  [[nodiscard]] const Storage& written(const WrittenItem& item) const {
    return body_.storages[index(item.storage)];
  }
  [[nodiscard]] DType type(const WrittenItem& item, std::size_t k) const {
    return read_dtype(body_, item.reads[k]);
  }

  [[nodiscard]] DType type_of_result(const WrittenItem& item) const {
    const Instr& i = item.instr;
    const auto takes = [&](std::size_t n) { require_plan(item.reads.size() == n, NoInstruction); };
    const auto is_kind = [&](std::size_t count) { require_plan(i.kind < count, NoInstruction); };
    const auto of_row = [&](const ElementwiseRow& row) {
      require_plan(
          row.dtypes.has(type(item, 0)) && type(item, item.reads.size() - 1) == type(item, 0),
          "a function of a written-out loop is not defined for its operands");
      return row.result_dtype(type(item, 0));
    };
    switch (i.code) {
      case Code::Copy: takes(1); return type(item, 0);
      case Code::Cast: takes(1); return i.dtype;
      case Code::Unary:
        takes(1);
        is_kind(enumerator_names(UnaryKind{}).size());
        return of_row(row(i.unary()));
      case Code::Binary:
        takes(2);
        is_kind(enumerator_names(BinaryKind{}).size());
        return of_row(row(i.binary()));
      case Code::Compare:
        takes(2);
        is_kind(enumerator_names(CompareKind{}).size());
        return of_row(row(i.compare()));
      case Code::Select:
        takes(3);
        require_plan(type(item, 1) == type(item, 2), NoInstruction);
        return type(item, 1);
      default: throw PlanFault{NoInstruction};
    }
  }

  void check_reduction(const WrittenItem& item) {
    require_plan(item.reads.size() == 1 && item.reduced.size() == item.dims.size(), NoInstruction);
    require_plan(item.reduce != ReduceKind::Mean && item.reduce != ReduceKind::LogSumExp,
                 NoInstruction);
    check(item.reads[0], item, item.dims);
    require_plan(written(item).dtype == item.instr.dtype &&
                     (is_logical(item.reduce) ? item.instr.dtype == DType::Bool
                                              : item.instr.dtype == type(item, 0)),
                 "a reduction of a written-out loop gives another type");
    std::int64_t kept = 1;
    for (std::size_t a = 0; a < item.dims.size(); ++a) kept *= item.reduced[a] ? 1 : item.dims[a];
    fill_whole(item, kept);
  }

  void check_product(const WrittenItem& item) {
    require_plan(item.reads.size() == 2 && item.dims.size() == 3, NoInstruction);
    require_plan(
        std::ranges::all_of(item.reads,
                            [](const Read& r) { return std::holds_alternative<StoredRead>(r); }),
        NoInstruction);
    const std::span<const std::int64_t> dims(item.dims);
    check(item.reads[0], item, dims.first(2));
    check(item.reads[1], item, dims.last(2));
    const DType dtype = item.instr.dtype;
    require_plan((dtype == DType::F32 || dtype == DType::F64) && written(item).dtype == dtype &&
                     type(item, 0) == dtype && type(item, 1) == dtype,
                 "a product of a written-out loop is of another type");
    fill_whole(item, item.dims[0] * item.dims[2]);
  }

  void fill_whole(const WrittenItem& item, std::int64_t elements) {
    require_plan(written(item).elements == elements,
                 "a written-out loop fills an array of another size");
    filled_[index(item.storage)] = elements;
  }

  const WrittenBody& body_;
  std::vector<State> state_;
  std::vector<std::int64_t> filled_;
};

}  // namespace

std::optional<std::string> find_fault(const WrittenLoop& loop, std::vector<ArraySize> operands,
                                      std::vector<std::optional<ArraySize>> results) {
  try {
    require_plan(loop.condition.has_value() == loop.plan.conditional,
                 "a written-out loop has a condition that its plan does not know, or none");
    BodyChecker(loop.body).run();
    PlanArrays arrays{.operands = std::move(operands),
                      .results = std::move(results),
                      .body_inputs = sizes(loop.body, loop.body.inputs),
                      .body_outputs = sizes(loop.body, loop.body.outputs),
                      .condition_inputs = {}};
    if (loop.condition) {
      BodyChecker(*loop.condition).run();
      arrays.condition_inputs = sizes(*loop.condition, loop.condition->inputs);
      require_plan(loop.condition->outputs.size() == 1,
                   "the condition of a written-out loop does not give one array");
    }
    return find_fault(loop.plan, arrays);
  } catch (const PlanFault& fault) {
    return fault.what;
  }
}

}  // namespace ricci::loop
