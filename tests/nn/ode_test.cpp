// A neural ODE as somebody writes it down: a solver that takes any function and captures what that
// holds, a network of layers as the field, and derivatives of all of it, to second order.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "ricci/nn.h"

namespace ricci::ode_test {
namespace {

Array rk4(const auto& f, const Array& y) {
  const double dt = 0.1;
  const Array k1 = f(y);
  const Array k2 = f(y + dt / 2 * k1);
  const Array k3 = f(y + dt / 2 * k2);
  const Array k4 = f(y + dt * k3);
  return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
}

Array odeint(auto&& f, Array y0, Dim steps, const ScanSaving& save) {
  auto step = [&](Array y) {
    y = rk4(f, y);
    return carry_and(y, y);
  };
  return scan(y0, steps, step, {.save = save}).ys;
}

struct Field {
  nn::Linear in{2, 8}, out{8, 2};
  Array operator()(Array y) const { return out(tanh(in(pow(y, 3)))); }
};
struct Batch {
  Array y0, target;
};

auto error_with(const ScanSaving& save) {
  return [save](const Field& f, const Batch& b) {
    return mean(abs(odeint(f, b.y0, b.target.dim(0), save) - b.target));
  };
}

class NnOde : public ::testing::Test {
 protected:
  NnOde() {
    manual_seed(3);
    model = Field{};
    const Array a = array({{-0.1, 2.0}, {-2.0, -0.1}});
    const Array y0 = array({{2.0, 0.0}});
    batch = {y0, odeint([&](Array y) { return matmul(pow(y, 3), a); }, y0, 7, Save::all()).eval()};
  }
  Field model;
  Batch batch;
};

TEST_F(NnOde, GradientsAreThoseOfDifferencesWhateverIsKept) {
  const Field g = grad(error_with(Save::all()))(model, batch);
  for (const ScanSaving& save :
       {Save::recompute(), Save::carries(), Save::matmuls(), Save::recompute(1 << 12)}) {
    const Field other = jit(grad(error_with(save)))(model, batch);
    EXPECT_TRUE(allclose(other.in.w, g.in.w, 1e-4, 1e-6));
    EXPECT_TRUE(allclose(other.out.b, g.out.b, 1e-4, 1e-6));
  }
  const auto along = [&](double t) {
    Field moved = model;
    moved.out.w = moved.out.w + t * g.out.w;
    return error_with(Save::all())(moved, batch).item();
  };
  const double slope = (along(1e-2) - along(-1e-2)) / 2e-2;
  EXPECT_NEAR(slope, sum(square(g.out.w)).item(), 0.05 * std::abs(slope) + 1e-4);
}

TEST_F(NnOde, HessianTimesVectorIsAFieldAgain) {
  const auto loss = error_with(Save::recompute());
  const Field g = grad(loss)(model, batch);
  const Field hv = hvp(loss)(model, g, batch);
  const auto slope = [&](double t) {
    Field moved = model;
    moved.in.w = moved.in.w + t * g.in.w;
    moved.in.b = moved.in.b + t * g.in.b;
    moved.out.w = moved.out.w + t * g.out.w;
    moved.out.b = moved.out.b + t * g.out.b;
    return grad(loss)(moved, batch).out.b;
  };
  const Array differences = (slope(1e-3) - slope(-1e-3)) / 2e-3;
  EXPECT_LT(amax(abs(differences - hv.out.b)).item(), 0.05 * amax(abs(hv.out.b)).item() + 1e-3);
}

}  // namespace
}  // namespace ricci::ode_test
