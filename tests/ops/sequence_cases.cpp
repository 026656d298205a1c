#include <cmath>

#include <fmt/format.h>

#include "ops/cases.h"

namespace ricci::testing {
namespace {

const DTypeSet NarrowFloats = {DType::F32, DType::F16, DType::BF16};

// States are f32 for the narrower floats: a case with states comes once per state dtype.
template <OpStruct O>
void add_with_states(std::vector<CaseOf<O>>& list, CaseOf<O> c, std::vector<std::size_t> states) {
  CaseOf<O> narrow = c;
  narrow.dtypes = NarrowFloats;
  for (const std::size_t k : states) narrow.in[k].dtype = DType::F32;
  list.push_back(std::move(narrow));
  c.name += "_f64";
  c.dtypes = {DType::F64};
  list.push_back(std::move(c));
}

struct ScanSizes {
  Dim batch;
  Dim steps;
  Dim channels;
  Dim state;
};
std::vector<In> scan_operands(const ScanSizes& s) {
  return {T({s.batch, s.steps, s.channels}), T({s.batch, s.steps, s.channels}).between(0.1, 1),
          T({s.channels, s.state}).between(-1, -0.1), T({s.batch, s.steps, s.state}),
          T({s.batch, s.steps, s.state})};
}

// The same with an `a` for every row.
std::vector<In> own_rates(std::vector<In> list, const ScanSizes& s) {
  list[2] = T({s.batch, s.channels, s.state}).between(-1, -0.1);
  return list;
}

struct NetSizes {
  Dim batch;
  Dim steps;
  Dim key_heads;
  Dim heads;
  Dim key_width;
  Dim value_width;
};
std::vector<In> net_operands(const NetSizes& s) {
  const In key = T({s.batch, s.steps, s.key_heads, s.key_width}).between(-0.7, 0.7);
  return {key, key, T({s.batch, s.steps, s.heads, s.value_width}),
          T({s.batch, s.steps, s.heads}).between(-1, 0),
          T({s.batch, s.steps, s.heads}).between(0, 1)};
}

std::vector<In> operator+(std::vector<In> a, const std::vector<In>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// `list` with operand k replaced.
std::vector<In> replaced(std::vector<In> list, std::size_t k, In by) {
  list[k] = std::move(by);
  return list;
}

}  // namespace

Cases cases(const op::SelectiveScan*) {
  const std::vector<bool> with_state = {true, true};
  std::vector<CaseOf<op::SelectiveScan>> list;
  // a = 0 keeps the state whole: H = 1·2·3 = 6, then 6 + 2·1·(-1) = 4; y = C·H.
  list.push_back({.name = "running_sum",
                  .in = {T({1, 2, 1}).with({3, -1}), T({1, 2, 1}).with({1, 2}), T({1, 1}).with({0}),
                         T({1, 2, 1}).with({2, 1}), T({1, 2, 1}).with({1, 0.5})},
                  .op = {1},
                  .wanted = with_state,
                  .out = {{6, 2}, {4}}});
  // Δ·a = -ln 2 halves the state at every step.
  list.push_back({.name = "halving",
                  .in = {T({1, 2, 1}).with({8, 0}), T({1, 2, 1}).with({1, 1}),
                         T({1, 1}).with({-std::log(2.0)}), T({1, 2, 1}).with({1, 1}),
                         T({1, 2, 1}).with({1, 1})},
                  .op = {1},
                  .out = {{8, 4}}});
  list.push_back({.name = "all_sizes_differ",
                  .in = scan_operands({2, 3, 5, 4}),
                  .op = {4},
                  .wanted = with_state});
  list.push_back({.name = "one_step", .in = scan_operands({2, 1, 3, 2}), .op = {2}});
  list.push_back(
      {.name = "no_steps", .in = scan_operands({2, 0, 3, 2}), .op = {2}, .wanted = with_state});
  list.push_back(
      {.name = "no_rows", .in = scan_operands({0, 3, 3, 2}), .op = {2}, .wanted = with_state});
  list.push_back({.name = "many_channels", .in = scan_operands({1, 2, 67, 1}), .op = {1}});
  list.push_back({.name = "only_the_state",
                  .in = scan_operands({2, 3, 2, 3}),
                  .op = {3},
                  .wanted = {false, true}});
  const auto symbol = [](const char* s) { return Dim::symbol(s); };
  list.push_back({.name = "symbolic",
                  .in = scan_operands({symbol("b"), symbol("s"), symbol("h"), symbol("n")}),
                  .op = {symbol("n")}});
  add_with_states<op::SelectiveScan>(list,
                                     {.name = "continued",
                                      .in = scan_operands({2, 3, 2, 4}) + std::vector{T({2, 2, 4})},
                                      .op = {4},
                                      .wanted = with_state},
                                     {5});
  add_with_states<op::SelectiveScan>(
      list,
      {.name = "continued_for_no_steps",
       .in = scan_operands({1, 0, 1, 2}) + std::vector{T({1, 1, 2}).with({3, 4})},
       .op = {2},
       .wanted = with_state,
       .out = {{}, {3, 4}}},
      {5});
  // One row keeps its state whole, the other halves it at every step.
  list.push_back({.name = "rates_of_rows_by_hand",
                  .in = {T({2, 2, 1}).with({8, 0, 8, 0}), T({2, 2, 1}).with({1, 1, 1, 1}),
                         T({2, 1, 1}).with({0, -std::log(2.0)}), T({2, 2, 1}).with({1, 1, 1, 1}),
                         T({2, 2, 1}).with({1, 1, 1, 1})},
                  .op = {1},
                  .out = {{8, 8, 8, 4}}});
  for (const ScanSizes& sizes :
       {ScanSizes{3, 2, 5, 4}, {2, 0, 3, 2}, {0, 3, 2, 2}, {2, 2, 67, 1}}) {
    list.push_back(
        {.name = fmt::format("rates_of_rows_{}_{}", sizes.batch.value(), sizes.steps.value()),
         .in = own_rates(scan_operands(sizes), sizes),
         .op = {sizes.state},
         .wanted = with_state});
  }
  const auto good = scan_operands({2, 3, 5, 4});
  list.push_back({.name = "ints", .in = good, .op = {4}, .dtypes = dtypes::ints, .rejects = "c1"});
  list.push_back(
      {.name = "delta", .in = replaced(good, 1, T({2, 3, 1})), .op = {4}, .rejects = "c2"});
  list.push_back({.name = "a", .in = replaced(good, 2, T({4, 5})), .op = {4}, .rejects = "c3"});
  list.push_back(
      {.name = "a_of_rows", .in = replaced(good, 2, T({3, 5, 4})), .op = {4}, .rejects = "c3"});
  list.push_back({.name = "state_size", .in = good, .op = {3}, .rejects = "c3"});
  list.push_back({.name = "c", .in = replaced(good, 4, T({2, 3, 5})), .op = {4}, .rejects = "c4"});
  list.push_back(
      {.name = "h0", .in = good + std::vector{T({2, 4, 5})}, .op = {4}, .rejects = "c5"});
  return cases_of<op::SelectiveScan>(std::move(list));
}

Cases cases(const op::SelectiveScanBackward*) {
  std::vector<CaseOf<op::SelectiveScanBackward>> list;
  const auto with_dy = [](const ScanSizes& s) {
    return scan_operands(s) + std::vector{T({s.batch, s.steps, s.channels})};
  };
  // One step from zero: y = C·Δ·B·x = 5·2·3·7; each gradient is the product of the others.
  list.push_back({.name = "one_product",
                  .in = {T({1, 1, 1}).with({7}), T({1, 1, 1}).with({2}), T({1, 1}).with({-1}),
                         T({1, 1, 1}).with({3}), T({1, 1, 1}).with({5}), T({1, 1, 1}).with({1})},
                  .op = {1},
                  .out = {{30}, {105}, {0}, {70}, {42}}});
  list.push_back({.name = "all_sizes_differ", .in = with_dy({2, 3, 5, 4}), .op = {4}});
  list.push_back({.name = "one_step", .in = with_dy({2, 1, 3, 2}), .op = {2}});
  list.push_back({.name = "no_steps", .in = with_dy({2, 0, 3, 2}), .op = {2}});
  list.push_back({.name = "only_a",
                  .in = with_dy({2, 3, 2, 3}),
                  .op = {3},
                  .wanted = {false, false, true, false, false}});
  // Without the gradient of a, which all rows share.
  list.push_back({.name = "all_but_a",
                  .in = with_dy({2, 3, 2, 3}),
                  .op = {3},
                  .wanted = {true, true, false, true, true}});
  list.push_back({.name = "no_rows", .in = with_dy({0, 2, 2, 3}), .op = {3}});
  for (const ScanSizes& sizes :
       {ScanSizes{3, 2, 5, 4}, {2, 0, 3, 2}, {0, 3, 2, 2}, {2, 2, 67, 1}}) {
    list.push_back(
        {.name = fmt::format("rates_of_rows_{}_{}", sizes.batch.value(), sizes.steps.value()),
         .in = own_rates(with_dy(sizes), sizes),
         .op = {sizes.state}});
  }
  list.push_back({.name = "all_but_the_rates_of_rows",
                  .in = own_rates(with_dy({2, 3, 2, 3}), {2, 3, 2, 3}),
                  .op = {3},
                  .wanted = {true, true, false, true, true}});
  list.push_back(
      {.name = "symbolic", .in = with_dy({Dim("b"), Dim("s"), Dim("h"), Dim("n")}), .op = {"n"}});
  const std::vector<bool> all(6, true);
  add_with_states<op::SelectiveScanBackward>(
      list,
      {.name = "final_cotangent",
       .in = with_dy({2, 3, 2, 4}) + std::vector{T({2, 2, 4})},
       .op = {4, false, true}},
      {6});
  add_with_states<op::SelectiveScanBackward>(
      list,
      {.name = "both_states_and_rates_of_rows",
       .in = own_rates(scan_operands({2, 3, 2, 4}), {2, 3, 2, 4}) +
             std::vector{T({2, 2, 4}), T({2, 3, 2}), T({2, 2, 4})},
       .op = {4, true, true},
       .wanted = all},
      {5, 7});
  add_with_states<op::SelectiveScanBackward>(
      list,
      {.name = "both_states",
       .in = scan_operands({2, 3, 2, 4}) + std::vector{T({2, 2, 4}), T({2, 3, 2}), T({2, 2, 4})},
       .op = {4, true, true},
       .wanted = all},
      {5, 7});
  // Nothing happens between the two states.
  add_with_states<op::SelectiveScanBackward>(
      list,
      {.name = "both_states_and_no_steps",
       .in = scan_operands({1, 0, 1, 2}) +
             std::vector{T({1, 1, 2}), T({1, 0, 1}), T({1, 1, 2}).with({3, 4})},
       .op = {2, true, true},
       .wanted = all,
       .out = {{}, {}, {0, 0}, {}, {}, {3, 4}}},
      {5, 7});
  const auto good = with_dy({2, 3, 5, 4});
  list.push_back({.name = "ints", .in = good, .op = {4}, .dtypes = dtypes::ints, .rejects = "c1"});
  list.push_back(
      {.name = "delta", .in = replaced(good, 1, T({2, 3, 1})), .op = {4}, .rejects = "c2"});
  list.push_back({.name = "a", .in = replaced(good, 2, T({4, 5})), .op = {4}, .rejects = "c3"});
  list.push_back(
      {.name = "a_of_rows", .in = replaced(good, 2, T({3, 5, 4})), .op = {4}, .rejects = "c3"});
  list.push_back({.name = "c", .in = replaced(good, 4, T({2, 3, 5})), .op = {4}, .rejects = "c4"});
  list.push_back({.name = "h0",
                  .in = scan_operands({2, 3, 5, 4}) + std::vector{T({2, 4, 5}), T({2, 3, 5})},
                  .op = {4, true},
                  .rejects = "c5"});
  list.push_back({.name = "h0_missing", .in = good, .op = {4, true}, .rejects = "c6"});
  list.push_back({.name = "dy", .in = replaced(good, 5, T({2, 3, 4})), .op = {4}, .rejects = "c7"});
  list.push_back({.name = "dh_final",
                  .in = good + std::vector{T({2, 4, 5})},
                  .op = {4, false, true},
                  .rejects = "c8"});
  return cases_of<op::SelectiveScanBackward>(std::move(list));
}

Cases cases(const op::GatedDeltaNet*) {
  const std::vector<bool> with_state = {true, true};
  std::vector<CaseOf<op::GatedDeltaNet>> list;
  const In none = T({1, 2, 1}).with({0, 0});
  const In whole = T({1, 2, 1}).with({1, 1});
  // κ = 1. Step 1 writes 3 under the key 1; step 2 recalls 3 and replaces it by 5.
  list.push_back({.name = "rewrites_what_it_recalls",
                  .in = {T({1, 2, 1, 1}).with({1, 2}), T({1, 2, 1, 1}).with({1, 1}),
                         T({1, 2, 1, 1}).with({3, 5}), none, whole},
                  .op = {1},
                  .wanted = with_state,
                  .out = {{3, 10}, {5}}});
  list.push_back({.name = "all_sizes_differ",
                  .in = net_operands({2, 3, 5, 5, 4, 6}),
                  .op = {4},
                  .wanted = with_state});
  list.push_back({.name = "square", .in = net_operands({1, 3, 2, 2, 4, 4}), .op = {4}});
  list.push_back({.name = "grouped_heads",  // [gdn-limits]
                  .in = net_operands({2, 3, 2, 6, 3, 2}),
                  .op = {3},
                  .wanted = with_state});
  list.push_back({.name = "one_step", .in = net_operands({2, 1, 2, 2, 3, 3}), .op = {3}});
  list.push_back({.name = "no_steps",
                  .in = net_operands({2, 0, 2, 2, 3, 2}),
                  .op = {3},
                  .wanted = with_state});
  list.push_back({.name = "wide_values", .in = net_operands({1, 2, 1, 1, 2, 67}), .op = {2}});
  list.push_back({.name = "a_chunk",  // [gdn-chunked]
                  .in = net_operands({1, 17, 1, 2, 2, 3}),
                  .op = {2},
                  .wanted = with_state});
  const auto symbol = [](const char* s) { return Dim::symbol(s); };
  list.push_back({.name = "symbolic",
                  .in = net_operands({symbol("b"), symbol("s"), 2, 4, symbol("n"), symbol("m")}),
                  .op = {symbol("n")}});
  add_with_states<op::GatedDeltaNet>(
      list,
      {.name = "carried",
       .in = net_operands({2, 3, 2, 4, 3, 2}) + std::vector{T({2, 4, 3, 2})},
       .op = {3, true},
       .wanted = with_state},
      {5});
  add_with_states<op::GatedDeltaNet>(
      list,
      {.name = "carried_over_no_steps",
       .in = net_operands({1, 0, 1, 1, 2, 1}) + std::vector{T({1, 1, 2, 1}).with({3, 4})},
       .op = {2, true},
       .wanted = with_state,
       .out = {{}, {3, 4}}},
      {5});
  const auto good = net_operands({2, 3, 2, 4, 3, 5});
  list.push_back({.name = "ints", .in = good, .op = {3}, .dtypes = dtypes::ints, .rejects = "c1"});
  list.push_back({.name = "state_size", .in = good, .op = {4}, .rejects = "c2"});
  list.push_back(
      {.name = "v", .in = replaced(good, 2, T({2, 2, 4, 5})), .op = {3}, .rejects = "c3"});
  list.push_back({.name = "groups_uneven",
                  .in = net_operands({2, 3, 2, 3, 3, 5}),
                  .op = {3},
                  .rejects = "c4"});
  list.push_back(
      {.name = "gates", .in = replaced(good, 3, T({2, 3, 2})), .op = {3}, .rejects = "c5"});
  list.push_back({.name = "state_missing", .in = good, .op = {3, true}, .rejects = "c6"});
  list.push_back({.name = "state_unasked",
                  .in = good + std::vector{T({2, 4, 3, 5})},
                  .op = {3},
                  .rejects = "c6"});
  list.push_back({.name = "state",
                  .in = good + std::vector{T({2, 4, 5, 3})},
                  .op = {3, true},
                  .rejects = "c7"});
  return cases_of<op::GatedDeltaNet>(std::move(list));
}

Cases cases(const op::GatedDeltaNetBackward*) {
  std::vector<CaseOf<op::GatedDeltaNetBackward>> list;
  const auto with_do = [](const NetSizes& s) {
    return net_operands(s) + std::vector{T({s.batch, s.steps, s.heads, s.value_width})};
  };
  // One step from zero: o = q·k·β·v = 2·3·0.5·5; each gradient is the product of the others.
  list.push_back(
      {.name = "one_product",
       .in = {T({1, 1, 1, 1}).with({2}), T({1, 1, 1, 1}).with({3}), T({1, 1, 1, 1}).with({5}),
              T({1, 1, 1}).with({0}), T({1, 1, 1}).with({0.5}), T({1, 1, 1, 1}).with({1})},
       .op = {1},
       .out = {{7.5}, {5}, {3}, {0}, {30}}});
  list.push_back({.name = "all_sizes_differ", .in = with_do({2, 3, 5, 5, 4, 6}), .op = {4}});
  list.push_back({.name = "grouped_heads", .in = with_do({2, 3, 2, 6, 3, 2}), .op = {3}});
  list.push_back({.name = "one_step", .in = with_do({2, 1, 2, 2, 3, 3}), .op = {3}});
  list.push_back({.name = "no_steps", .in = with_do({2, 0, 2, 2, 3, 2}), .op = {3}});
  list.push_back({.name = "a_chunk", .in = with_do({1, 17, 1, 2, 2, 3}), .op = {2}});
  list.push_back({.name = "symbolic",
                  .in = with_do({Dim("b"), Dim("s"), 2, 4, Dim("n"), Dim("m")}),
                  .op = {"n"}});
  list.push_back(
      {.name = "only_the_state",
       .in = net_operands({2, 3, 1, 2, 3, 2}) + std::vector{T({2, 2, 3, 2}), T({2, 3, 2, 2})},
       .op = {3, true},
       .dtypes = {DType::F64},
       .wanted = {false, false, false, false, false, true}});
  list.push_back({.name = "only_keys",
                  .in = with_do({2, 3, 2, 2, 3, 2}),
                  .op = {3},
                  .wanted = {false, true, false, false, false}});
  const std::vector<bool> all(6, true);
  add_with_states<op::GatedDeltaNetBackward>(
      list,
      {.name = "final_cotangent",
       .in = with_do({2, 3, 2, 4, 3, 2}) + std::vector{T({2, 4, 3, 2})},
       .op = {3, false, true}},
      {6});
  add_with_states<op::GatedDeltaNetBackward>(
      list,
      {.name = "both_states",
       .in = net_operands({2, 3, 2, 4, 3, 2}) +
             std::vector{T({2, 4, 3, 2}), T({2, 3, 4, 2}), T({2, 4, 3, 2})},
       .op = {3, true, true},
       .wanted = all},
      {5, 7});
  add_with_states<op::GatedDeltaNetBackward>(
      list,
      {.name = "both_states_and_no_steps",
       .in = net_operands({1, 0, 1, 1, 2, 1}) +
             std::vector{T({1, 1, 2, 1}), T({1, 0, 1, 1}), T({1, 1, 2, 1}).with({3, 4})},
       .op = {2, true, true},
       .wanted = all,
       .out = {{}, {}, {}, {}, {}, {3, 4}}},
      {5, 7});
  const auto good = with_do({2, 3, 2, 4, 3, 5});
  list.push_back({.name = "ints", .in = good, .op = {3}, .dtypes = dtypes::ints, .rejects = "c1"});
  list.push_back({.name = "state_size", .in = good, .op = {4}, .rejects = "c2"});
  list.push_back(
      {.name = "v", .in = replaced(good, 2, T({2, 2, 4, 5})), .op = {3}, .rejects = "c3"});
  list.push_back(
      {.name = "groups_uneven", .in = with_do({2, 3, 2, 3, 3, 5}), .op = {3}, .rejects = "c4"});
  list.push_back(
      {.name = "gates", .in = replaced(good, 3, T({2, 3, 2})), .op = {3}, .rejects = "c5"});
  list.push_back({.name = "state_missing", .in = good, .op = {3, true}, .rejects = "c6"});
  list.push_back(
      {.name = "state",
       .in = net_operands({2, 3, 2, 4, 3, 5}) + std::vector{T({2, 4, 5, 3}), T({2, 3, 4, 5})},
       .op = {3, true},
       .rejects = "c7"});
  list.push_back(
      {.name = "do", .in = replaced(good, 5, T({2, 3, 4, 4})), .op = {3}, .rejects = "c8"});
  list.push_back({.name = "dstate_final",
                  .in = good + std::vector{T({2, 4, 5, 3})},
                  .op = {3, false, true},
                  .rejects = "c9"});
  return cases_of<op::GatedDeltaNetBackward>(std::move(list));
}

}  // namespace ricci::testing
