// Singular points of factorisations, of complex functions, of codes, of scatters and of spectra.
// The numbers were derived by hand.
#include <cmath>
#include <limits>
#include <numbers>

#include "ricci/build/build.h"
#include "ricci/build/elementwise.h"
#include "ricci/build/linalg.h"
#include "ricci/build/spectrum.h"

#include "support/singular_points.h"

namespace ricci::testing {
namespace {

constexpr double Unbounded = std::numeric_limits<double>::infinity();
constexpr double NoNumber = std::numeric_limits<double>::quiet_NaN();

using Function = std::function<Value(Value)>;

Value square_of_two(Value x) { return reshape_to(x, {2, 2}); }

Value determinant(Value x) { return det(square_of_two(x)); }
Value eigenvalues(Value x) { return eigh(square_of_two(x))[0]; }
Value singular_values(Value x) { return std::get<1>(svd(square_of_two(x))); }

SingularSection factorizations() {
  return {"Factorisations",
          {{"det X",
            determinant,
            {1, 2, 2, 4},
            0,
            {4, -2, -2, 1},
            {{1, -1, -1, 1}},
            "cofactors, whatever the rank"},
           {"det X",
            determinant,
            {0, 0, 0, 0},
            0,
            {0, 0, 0, 0},
            {{1, -1, -1, 1}},
            "cofactors, whatever the rank"},
           {"Σ eigenvalues of (X + Xᵀ)/2",
            eigenvalues,
            {1, 0, 0, 1},
            2,
            {1, 0, 0, 1},
            {{0, 0, 0, 0}},
            "equal values: what does not depend on their basis has its true slope"},
           {"Σ eigenvalues² of (X + Xᵀ)/2",
            [](Value x) {
              const Value w = eigenvalues(x);
              return w * w;
            },
            {1, 0, 0, 1},
            2,
            {2, 0, 0, 2},
            {},
            "equal values: what does not depend on their basis has its true slope"},
           {"Σ singular values of X",
            singular_values,
            {0, -1, 1, 0},
            2,
            {0, -1, 1, 0},
            {},
            "equal values: u vh does not depend on their basis"},
           {"Σ pinv(X)",
            [](Value x) { return sum(pinv(square_of_two(x))); },
            {1, 0, 0, 0},
            1,
            {-1, 1, 1, 0},
            {},
            "among matrices of the same rank"},
           {"Σ cholesky(X)",
            [](Value x) { return sum(cholesky(square_of_two(x))); },
            {-1, 0, 0, -1},
            NoNumber,
            {NoNumber, NoNumber, NoNumber, NoNumber},
            {},
            "not positive definite: nothing hides it"}}};
}

// A function of z = x₀ + i·x₁, of which one part is looked at.
Value complex_of(Value x) { return make_complex(element(x, 0), element(x, 1)); }
Function real_part(Value (*f)(Value)) {
  return [f](Value x) { return real(f(complex_of(x))); };
}
Function imaginary_part(Value (*f)(Value)) {
  return [f](Value x) { return imag(f(complex_of(x))); };
}
Value root(Value z) { return sqrt(z); }
Value logarithm(Value z) { return log(z); }

SingularSection complex_functions() {
  return {
      "Complex functions",
      {{"|z|", [](Value x) { return abs(complex_of(x)); }, {0, 0}, 0, {0, 0}, {{0, 0}}, "a kink"},
       {"angle(z)",
        [](Value x) { return angle(complex_of(x)); },
        {-1, 0},
        std::numbers::pi,
        {0, -1},
        {{-1, -1}},
        "smooth across the cut"},
       {"angle(z)",
        [](Value x) { return angle(complex_of(x)); },
        {0, 0},
        0,
        {0, 0},
        {{0, 0}},
        "no angle at the origin"},
       {"Im log z",
        imaginary_part(logarithm),
        {-1, 0},
        std::numbers::pi,
        {0, -1},
        {{-1, -1}},
        "1/z, on the side of the cut where its values are"},
       {"Im sqrt z",
        imaginary_part(root),
        {-1, 0},
        1,
        {-0.5, 0},
        {{-0.25, 0.25}},
        "1/(2 sqrt z), on the side of the cut where its values are"},
       {"Re sqrt z", real_part(root), {0, 0}, 0, {0, 0}, {{0, 0}}, "a kink, as of real numbers"},
       {"Re log z",
        real_part(logarithm),
        {0, 0},
        -Unbounded,
        {Unbounded, NoNumber},
        {},
        "1/0, which has no direction"}}};
}

// Codes of 4 bits with a scale of 1: -7 … 7.
Function rounded(SteKind ste) {
  return [ste](Value x) {
    const Value state = numbers_for(x, {1});
    return fake_quantize(x, state, {.bits = 4, .ste = ste, .scale_mode = ScaleMode::Fixed});
  };
}

SingularSection codes() {
  const auto clipped = rounded(SteKind::ClippedIdentity);
  return {"Codes",
          {{"fake_quantize(x), clipped", clipped, {7}, 7, {1}, {{0}}, "the edge is in range"},
           {"fake_quantize(x), clipped", clipped, {-7}, -7, {1}, {{0}}, "the edge is in range"},
           {"fake_quantize(x), clipped", clipped, {7.25}, 7, {0}, {{0}}, "beyond the edge"},
           {"fake_quantize(x)",
            rounded(SteKind::Identity),
            {7.25},
            7,
            {1},
            {{0}},
            "straight through, everywhere"},
           {"fake_quantize(x), hard_tanh",
            rounded(SteKind::HardTanh),
            {7},
            7,
            {0},
            {},
            "1 - |x/q|, which is 0 at the edge"}}};
}

// x₀ meets the other two in one place.
Function scattered(ScatterKind kind) {
  return [kind](Value x) {
    const Value places = x.graph().constant(Tensor::zeros({DType::I32, {2}}));
    return scatter(element(x, 0), narrow(x, {.axis = 0, .start = 1, .len = 2}), places,
                   {.kind = kind});
  };
}

SingularSection scatters() {
  const std::string shared = "shared equally, with what was there";
  return {"Scattered into one place",
          {{"scatter max",
            scattered(ScatterKind::Max),
            {3, 3, 1},
            3,
            {0.5, 0.5, 0},
            {{0, 0, 0}},
            shared},
           {"scatter max",
            scattered(ScatterKind::Max),
            {1, 3, 3},
            3,
            {0, 0.5, 0.5},
            {{0, 0, 0}},
            shared},
           {"scatter min",
            scattered(ScatterKind::Min),
            {2, 2, 2},
            2,
            {1.0 / 3, 1.0 / 3, 1.0 / 3},
            {{0, 0, 0}},
            shared},
           {"scatter mul",
            scattered(ScatterKind::Mul),
            {0, 2, 3},
            0,
            {6, 0, 0},
            {{5, 3, 2}},
            "the product of the others, never y/x"},
           {"scatter set",
            scattered(ScatterKind::Set),
            {1, 2, 3},
            3,
            {0, 0, 1},
            {{0, 0, 0}},
            "the last stays"}}};
}

// x is the power in two bands; no offset, no scale.
Value bands(Value x) {
  const Value filters = reshape_to(numbers_for(x, {1, 0, 0, 1}), {2, 2});
  return log_mel(x, filters, {.floor = 1, .base = 10, .least = 1e-10, .offset = 0, .scale = 1});
}

SingularSection spectra() {
  const double slope = 1 / (100 * std::numbers::ln10);
  return {"Bands of a spectrum",
          {{"Σ log_mel(x), floor 1",
            bands,
            {100, 1},
            3,
            {2 * slope, 0},
            {},
            "at the floor a band moves with the largest"},
           {"Σ log_mel(x), floor 1",
            bands,
            {100, 0},
            3,
            {2 * slope, 0},
            {},
            "no power: the floor, and no slope"},
           {"Σ log_mel(x), floor 1",
            bands,
            {0, 0},
            -20,
            {0, 0},
            {},
            "below the least power there is nothing to move"}}};
}

}  // namespace

std::vector<SingularSection> singular_structures() {
  return {factorizations(), complex_functions(), codes(), scatters(), spectra()};
}

}  // namespace ricci::testing
