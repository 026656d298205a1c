#include "ops/cases.h"

namespace ricci::testing {
namespace {

constexpr DTypeSet Spectra = dtypes::floats | dtypes::complexes;

// Rounding moves every result of a transform by what the largest one is rounded by.
In small(Dims dims) { return T(std::move(dims)).between(-0.25, 0.25); }

}  // namespace

// [fft-dtypes]
Cases cases(const op::Fft*) {
  return cases_of<op::Fft>({
      {.name = "four_by_hand",
       .in = {T({4}).with({1, 2, 0, 2})},
       .dtypes = dtypes::complexes,
       .out = {{5, 1, -3, 1}}},
      {.name = "two_blocks",
       .in = {T({4}).with({1, 2, 3, 5})},
       .out = {{3, -1, 8, -2}}},  // (1 + 3i, 2 + 5i)
      {.name = "plain", .in = {T({3, 8})}, .dtypes = Spectra},
      {.name = "odd", .in = {T({2, 7})}, .dtypes = dtypes::complexes},
      {.name = "odd_blocks", .in = {small({2, 14})}},
      {.name = "prime", .in = {small({101})}, .dtypes = dtypes::complexes},
      {.name = "mixed", .in = {small({2, 60})}, .dtypes = Spectra},
      {.name = "first_axis", .in = {T({6, 5})}, .op = {.axis = 0}, .dtypes = Spectra},
      {.name = "middle_axis", .in = {small({2, 10, 3})}, .op = {.axis = 1}, .dtypes = Spectra},
      {.name = "inverse", .in = {T({3, 10})}, .op = {.inverse = true}, .dtypes = Spectra},
      {.name = "inverse_forward",
       .in = {T({3, 6})},
       .op = {.inverse = true, .norm = FftNorm::Forward},
       .dtypes = Spectra},
      {.name = "forward", .in = {T({4, 2})}, .op = {.norm = FftNorm::Forward}, .dtypes = Spectra},
      {.name = "ortho", .in = {T({12})}, .op = {.norm = FftNorm::Ortho}, .dtypes = Spectra},
      {.name = "ortho_inverse",
       .in = {T({2, 6, 2})},
       .op = {.axis = 1, .inverse = true, .norm = FftNorm::Ortho},
       .dtypes = Spectra},
      {.name = "one", .in = {T({3, 1})}, .dtypes = dtypes::complexes},
      {.name = "one_in_blocks", .in = {T({3, 2})}},
      {.name = "no_lines", .in = {T({0, 4})}, .dtypes = Spectra},
      {.name = "nothing", .in = {T({3, 0})}, .dtypes = Spectra},
      {.name = "rank_six", .in = {T({1, 2, 1, 4, 2, 2})}, .op = {.axis = 3}, .dtypes = Spectra},
      {.name = "symbolic", .in = {T({Symbol, 4})}, .op = {.axis = 0}, .dtypes = Spectra},
      {.name = "ints", .in = {T({4})}, .dtypes = dtypes::ints | dtypes::booleans, .rejects = "c1"},
      {.name = "no_blocks", .in = {T({2, 5})}, .rejects = "c2"},
  });
}

// [fft-native-real] [fft-helpers-exact]
Cases cases(const op::Rfft*) {
  return cases_of<op::Rfft>({
      {.name = "by_hand", .in = {T({4}).with({1, 2, 0, 2})}, .out = {{5, 1, -3}}},
      {.name = "even", .in = {T({3, 8})}},
      {.name = "odd", .in = {T({3, 9})}},
      {.name = "prime", .in = {small({101})}},
      {.name = "mixed", .in = {small({2, 60})}},
      {.name = "first_axis", .in = {T({6, 5})}, .op = {.axis = 0}},
      {.name = "middle_axis", .in = {T({2, 7, 3})}, .op = {.axis = 1}},
      {.name = "ortho", .in = {T({2, 6})}, .op = {.norm = FftNorm::Ortho}},
      {.name = "forward", .in = {T({5})}, .op = {.norm = FftNorm::Forward}},
      {.name = "padded", .in = {T({2, 5})}, .op = {.n = 8}},
      {.name = "cut", .in = {T({2, 9, 2})}, .op = {.n = 6, .axis = 1}},
      {.name = "same_length", .in = {T({2, 5})}, .op = {.n = 5}},
      {.name = "padded_nothing", .in = {T({2, 0})}, .op = {.n = 3}},
      {.name = "one", .in = {T({3, 1})}},
      {.name = "two", .in = {T({3, 2})}},
      {.name = "no_lines", .in = {T({0, 4})}},
      {.name = "symbolic", .in = {T({Symbol, 4})}},
      {.name = "symbolic_axis", .in = {T({Symbol * 2})}},
      {.name = "complex", .in = {T({4})}, .dtypes = dtypes::complexes, .rejects = "c1"},
      {.name = "nothing", .in = {T({3, 0})}, .rejects = "c2"},
      {.name = "cut_to_nothing", .in = {T({3})}, .op = {.n = 0}, .rejects = "c2"},
      {.name = "unknown_parity", .in = {T({Symbol})}, .rejects = "c3"},
  });
}

// [fft-native-real] [fft-helpers-exact]
Cases cases(const op::Irfft*) {
  const DTypeSet z = dtypes::complexes;
  return cases_of<op::Irfft>({
      {.name = "by_hand",
       .in = {T({3}).with({10, -2, -2})},
       .op = {.n = 4},
       .dtypes = z,
       .out = {{4, 12, 12, 12}}},
      {.name = "even", .in = {T({3, 5})}, .op = {.n = 8}, .dtypes = z},
      {.name = "odd", .in = {T({3, 5})}, .op = {.n = 9}, .dtypes = z},
      {.name = "prime", .in = {small({51})}, .op = {.n = 101}, .dtypes = z},
      {.name = "mixed", .in = {small({2, 31})}, .op = {.n = 60}, .dtypes = z},
      {.name = "first_axis", .in = {T({4, 5})}, .op = {.n = 6, .axis = 0}, .dtypes = z},
      {.name = "middle_axis", .in = {T({2, 4, 3})}, .op = {.n = 7, .axis = 1}, .dtypes = z},
      {.name = "ortho", .in = {T({2, 4})}, .op = {.n = 6, .norm = FftNorm::Ortho}, .dtypes = z},
      {.name = "forward", .in = {T({3})}, .op = {.n = 5, .norm = FftNorm::Forward}, .dtypes = z},
      {.name = "one", .in = {T({3, 1})}, .op = {.n = 1}, .dtypes = z},
      {.name = "two", .in = {T({3, 2})}, .op = {.n = 2}, .dtypes = z},
      {.name = "no_lines", .in = {T({0, 3})}, .op = {.n = 4}, .dtypes = z},
      {.name = "symbolic", .in = {T({Symbol, 3})}, .op = {.n = 4}, .dtypes = z},
      {.name = "symbolic_axis", .in = {T({Symbol + 1})}, .op = {.n = Symbol * 2}, .dtypes = z},
      {.name = "real", .in = {T({3})}, .op = {.n = 4}, .rejects = "c1"},
      {.name = "nothing", .in = {T({1})}, .op = {.n = 0}, .dtypes = z, .rejects = "c2"},
      {.name = "bins", .in = {T({2, 4})}, .op = {.n = 5}, .dtypes = z, .rejects = "c3"},
      {.name = "unknown_parity", .in = {T({3})}, .op = {.n = Symbol}, .dtypes = z, .rejects = "c4"},
  });
}

Cases cases(const op::Frame*) {
  return cases_of<op::Frame>({
      {.name = "by_hand",
       .in = {T({5}).with({1, 2, 3, 4, 5})},
       .op = {.frame_len = 3, .hop = 2},
       .dtypes = dtypes::all,
       .out = {{1, 2, 3, 3, 4, 5}}},
      {.name = "rest_left", .in = {T({2, 11})}, .op = {.frame_len = 4, .hop = 3}},
      {.name = "every_one", .in = {T({2, 6})}, .op = {.frame_len = 3, .hop = 1}},
      {.name = "apart", .in = {T({2, 9})}, .op = {.frame_len = 2, .hop = 3}},
      {.name = "whole", .in = {T({2, 5})}, .op = {.frame_len = 5, .hop = 7}},
      {.name = "first_axis",
       .in = {T({7, 3})},
       .op = {.frame_len = 3, .hop = 2, .axis = 0},
       .dtypes = dtypes::floats | dtypes::complexes},
      {.name = "middle_axis", .in = {T({2, 6, 2})}, .op = {.frame_len = 2, .hop = 2, .axis = 1}},
      {.name = "no_lines", .in = {T({0, 6})}, .op = {.frame_len = 2, .hop = 2}},
      {.name = "empty_frames", .in = {T({2, 5})}, .op = {.frame_len = 0, .hop = 2}},
      {.name = "symbolic", .in = {T({Symbol, 6})}, .op = {.frame_len = 2, .hop = 2}},
      {.name = "symbolic_axis", .in = {T({Symbol * 4 + 3})}, .op = {.frame_len = 3, .hop = 4}},
      {.name = "no_hop", .in = {T({6})}, .op = {.frame_len = 2, .hop = 0}, .rejects = "c1"},
      {.name = "no_length", .in = {T({6})}, .op = {.frame_len = -1, .hop = 1}, .rejects = "c1"},
      {.name = "too_long", .in = {T({6})}, .op = {.frame_len = 7, .hop = 1}, .rejects = "c2"},
      {.name = "unknown_count",
       .in = {T({Symbol})},
       .op = {.frame_len = 3, .hop = 2},
       .rejects = "c3"},
  });
}

Cases cases(const op::OverlapAdd*) {
  return cases_of<op::OverlapAdd>({
      {.name = "by_hand",
       .in = {T({2, 3}).with({1, 2, 3, 4, 5, 6})},
       .op = {.hop = 2},
       .dtypes = Numbers,
       .out = {{1, 2, 7, 5, 6}}},
      {.name = "every_one", .in = {T({2, 4, 3})}, .op = {.hop = 1}, .dtypes = Fields},
      {.name = "not_a_multiple", .in = {T({5, 7})}, .op = {.hop = 3}},
      {.name = "apart", .in = {T({3, 2})}, .op = {.hop = 4}},
      {.name = "one_frame", .in = {T({1, 5})}, .op = {.hop = 2}},
      {.name = "few_frames", .in = {T({2, 16})}, .op = {.hop = 1}},
      {.name = "first_axis", .in = {T({4, 3, 2})}, .op = {.hop = 2, .axis = 0}},
      {.name = "middle_axis", .in = {T({2, 3, 4, 3})}, .op = {.hop = 2, .axis = 1}},
      {.name = "no_lines", .in = {T({0, 3, 4})}, .op = {.hop = 2}},
      {.name = "empty_frames", .in = {T({3, 0})}, .op = {.hop = 2}},
      {.name = "symbolic", .in = {T({Symbol, 4})}, .op = {.hop = 2}},
      {.name = "no_hop", .in = {T({2, 3})}, .op = {.hop = 0}, .rejects = "c1"},
      {.name = "no_frames", .in = {T({0, 3})}, .op = {.hop = 1}, .rejects = "c2"},
      {.name = "last_axis", .in = {T({2, 3})}, .op = {.hop = 1, .axis = 1}, .rejects = "c2"},
      {.name = "bools",
       .in = {T({2, 3})},
       .op = {.hop = 1},
       .dtypes = dtypes::booleans,
       .rejects = "c3"},
  });
}

namespace {

// Bins that are far from silence, and filters that overlap.
In filters(Dims dims) { return T(std::move(dims)).between(0.1, 1); }

}  // namespace

// [logmel-grad] [logmel-options]
Cases cases(const op::LogMel*) {
  const DTypeSet wide = {DType::F64, DType::F32};
  return cases_of<op::LogMel>({
      {.name = "by_hand",
       .in = {T({2}).with({1, 1e-3}), T({2, 2}).with({1, 0, 0, 1})},
       .op = {.floor = 2},
       .dtypes = wide,
       .out = {{1, 0.5}}},  // L = 0, -3, floored at -2
      {.name = "blocks", .in = {T({3, 16}), filters({4, 5})}},
      {.name = "half_blocks", .in = {T({3, 10}), filters({4, 5})}},
      {.name = "power", .in = {T({3, 5}).between(0.5, 4), filters({4, 5})}},
      {.name = "odd_length", .in = {T({2, 14}), filters({3, 4})}},
      {.name = "complex_whole",
       .in = {Fixed(DType::C128, {3, 8}), Fixed(DType::F64, {4, 5}).between(0.1, 1)},
       .dtypes = {DType::F64}},
      {.name = "complex_half",
       .in = {Fixed(DType::C128, {2, 3, 5}), Fixed(DType::F64, {4, 5}).between(0.1, 1)},
       .dtypes = {DType::F64}},
      {.name = "one_frame", .in = {T({10}), filters({4, 5})}},
      {.name = "close_floor", .in = {T({4, 16}), filters({6, 5})}, .op = {.floor = 0.05}},
      {.name = "utterance",
       .in = {T({2, 4, 16}), filters({3, 5})},
       .op = {.scope = MelScope::Utterance, .floor = 0.3}},
      {.name = "other_numbers",
       .in = {T({3, 10}), filters({4, 5})},
       .op = {.floor = 1, .base = 2.718281828459045, .least = 1e-5, .offset = 0, .scale = -2}},
      {.name = "equal_maxima",
       .in = {T({4}).with({1, 1, 1, 1e-9}),
              T({4, 4}).with({1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1})},
       .op = {.floor = 2},
       .dtypes = wide,
       .out = {{1, 1, 1, 0.5}}},
      {.name = "silence",
       .in = {T({2, 3}).with({0, 0, 0, 1, 0, 0}), T({2, 3}).with({1, 1, 0, 0, 0, 1})},
       .dtypes = wide,
       .out = {{-1.5, -1.5, 1, -1}}},
      {.name = "not_a_number",
       .in = {T({2, 2}).with({NaN, 1, 1, 1}), T({2, 2}).with({1, 0, 0, 1})},
       .dtypes = wide,
       .out = {{NaN, NaN, 1, 1}}},
      {.name = "no_frames", .in = {T({0, 10}), filters({4, 5})}},
      {.name = "symbolic", .in = {T({Symbol, 10}), filters({4, 5})}},
      {.name = "filters_dtype",
       .in = {Fixed(DType::F32, {10}), Fixed(DType::F64, {4, 5})},
       .rejects = "c1"},
      {.name = "ints", .in = {T({10}), T({4, 5})}, .dtypes = dtypes::ints, .rejects = "c1"},
      {.name = "no_utterance",
       .in = {T({10}), T({4, 5})},
       .op = {.scope = MelScope::Utterance},
       .rejects = "c2"},
      {.name = "no_filters", .in = {T({10}), T({0, 5})}, .rejects = "c2"},
      {.name = "rank_of_filters", .in = {T({10}), T({5})}, .rejects = "c2"},
      {.name = "bins", .in = {T({12}), T({4, 5})}, .rejects = "c3"},
      {.name = "base", .in = {T({10}), T({4, 5})}, .op = {.base = 1}, .rejects = "c4"},
      {.name = "least", .in = {T({10}), T({4, 5})}, .op = {.least = 0}, .rejects = "c4"},
      {.name = "floor", .in = {T({10}), T({4, 5})}, .op = {.floor = -1}, .rejects = "c4"},
      {.name = "scale", .in = {T({10}), T({4, 5})}, .op = {.scale = 0}, .rejects = "c4"},
  });
}

Cases cases(const op::LogMelBackward*) {
  const DTypeSet wide = {DType::F64, DType::F32};
  return cases_of<op::LogMelBackward>({
      // The second is at the floor, which the first moves: dE_0 = (1 + 1) / 4 / ln 10.
      {.name = "by_hand",
       .in = {T({2}).with({1, 1e-3}), T({2, 2}).with({1, 0, 0, 1}), T({2}).with({1, 1})},
       .op = {.floor = 2},
       .dtypes = wide,
       .out = {{0.21714724095162588, 0}, {0.21714724095162588, 2.1714724095162588e-4, 0, 0}}},
      {.name = "blocks", .in = {T({3, 16}), filters({4, 5}), T({3, 4})}},
      {.name = "half_blocks", .in = {T({3, 10}), filters({4, 5}), T({3, 4})}},
      {.name = "power", .in = {T({3, 5}).between(0.5, 4), filters({4, 5}), T({3, 4})}},
      {.name = "complex",
       .in = {Fixed(DType::C128, {3, 8}), Fixed(DType::F64, {4, 5}).between(0.1, 1),
              Fixed(DType::F64, {3, 4})},
       .dtypes = {DType::F64}},
      {.name = "close_floor",
       .in = {T({4, 16}), filters({6, 5}), T({4, 6})},
       .op = {.floor = 0.05}},
      {.name = "utterance",
       .in = {T({2, 4, 10}), filters({3, 5}), T({2, 4, 3})},
       .op = {.scope = MelScope::Utterance, .floor = 0.3}},
      // The first of the equal maxima takes what is at the floor.
      {.name = "equal_maxima",
       .in = {T({3}).with({1, 1, 1e-9}), T({3, 3}).with({1, 0, 0, 0, 1, 0, 0, 0, 1}),
              T({3}).with({0, 0, 1})},
       .op = {.floor = 2},
       .dtypes = wide,
       .out = {{0.10857362047581294, 0, 0}}},
      {.name = "silence",
       .in = {T({1, 2}).with({0, 0}), T({2, 2}).with({1, 0, 0, 1}), T({1, 2}).with({1, 1})},
       .dtypes = wide,
       .out = {{0, 0}, {0, 0, 0, 0}}},
      {.name = "no_frames", .in = {T({0, 10}), filters({4, 5}), T({0, 4})}},
      {.name = "symbolic", .in = {T({Symbol, 10}), filters({4, 5}), T({Symbol, 4})}},
      {.name = "only_filters",
       .in = {T({3, 10}), filters({4, 5}), T({3, 4})},
       .wanted = {false, true}},
      {.name = "filters_dtype",
       .in = {Fixed(DType::F32, {10}), Fixed(DType::F64, {4, 5}), Fixed(DType::F32, {4})},
       .rejects = "c1"},
      {.name = "no_filters", .in = {T({10}), T({0, 5}), T({0})}, .rejects = "c2"},
      {.name = "bins", .in = {T({12}), T({4, 5}), T({4})}, .rejects = "c3"},
      {.name = "base", .in = {T({10}), T({4, 5}), T({4})}, .op = {.base = 0.5}, .rejects = "c4"},
      {.name = "gradient_shape", .in = {T({10}), T({4, 5}), T({5})}, .rejects = "c5"},
      {.name = "gradient_dtype",
       .in = {Fixed(DType::F32, {10}), Fixed(DType::F32, {4, 5}), Fixed(DType::F64, {4})},
       .rejects = "c6"},
  });
}

}  // namespace ricci::testing
