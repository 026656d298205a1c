// Searches, graphs, spectra, trees, masks: programs as somebody writes them who knows JAX. They
// compile as they stand and give what JAX gives (make_whole_programs_reference.py).
#include <thread>

#include "array/whole_programs.h"

// Lambdas take what they capture under the same names, as people write them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"

namespace ricci::more_programs_test {
namespace {

namespace beam {
struct Beam {
  Array tokens, score, alive;
};
}  // namespace beam
TEST(ArrayPrograms, BeamSearch) {
  using namespace beam;
  WholeProgram program("beam");

  constexpr int V = 7, T = 6, K = 3;
  Array table = log_softmax(reshape(sin(1.7 * arange(V * V, {.dtype = float32})) * 2, {V, V}));
  auto search = [&](Array table) {
    Beam b{zeros({K, T}, {.dtype = int32}), array({0.0, -1e9, -1e9}), ones({K}, {.dtype = bool_})};
    Beam out = fori_loop(
        1, T,
        [&](Array t, Beam b) {
          Array last = take_along_axis(b.tokens, broadcast_to(reshape(t - 1, {1, 1}), {K, 1}), 1)(
              slice(), 0);
          Array logits = table[last] + expand_dims(b.score, 1);
          auto [s, i] = topk(flatten(logits), K);
          Array parent = floor_divide(i, V), tok = i % V;
          Array tokens = b.tokens[parent].at(slice(), t).set(tok);
          return Beam{tokens, s, b.alive[parent] & (tok != 0)};
        },
        b);
    return out;
  };
  Beam r = jit(search)(table);
  program.check("tok", r.tokens);
  program.check("score", r.score);
  program.check("alive", r.alive);
}

namespace graphconv {
struct GNN {
  Array w1, w2;
};
}  // namespace graphconv
TEST(ArrayPrograms, GraphConvolution) {
  using namespace graphconv;
  WholeProgram program("graphconv");

  Array src = array({0, 1, 2, 3, 4, 0, 2, 4}), dst = array({1, 2, 3, 4, 0, 2, 4, 1});
  const int N = 5;
  Array x = reshape(cos(arange(N * 3, {.dtype = float32})), {N, 3});
  auto conv = [&](Array h, Array w) {
    Array msg = matmul(h, w)[src];
    Array deg = zeros({N}).at(dst).add(1.0);
    Array agg = zeros({N, w.dim(1)}).at(dst).add(msg);
    return agg / expand_dims(maximum(deg, 1), -1);
  };
  auto net = [&](const GNN& g) { return sum(square(conv(relu(conv(x, g.w1)), g.w2))); };
  GNN g{reshape(sin(arange(12, {.dtype = float32})), {3, 4}),
        reshape(sin(arange(8, {.dtype = float32})), {4, 2})};
  program.check("f", net(g));
  auto d = jit(grad(net))(g);
  program.check("w1", d.w1);
  program.check("w2", d.w2);

  program.check("seg", segment_sum(x, array({0, 0, 1, 1, 1}), 2));

  program.check("segm", segment_max(x, array({0, 0, 1, 1, 1}), 2));

  // attention over neighbours: segment softmax
  auto gat = [&](Array h) {
    Array e = sum(h[src] * h[dst], 1);
    Array m = full({N}, -INFINITY).at(dst).max(e);
    Array p = exp(e - m[dst]);
    Array z = zeros({N}).at(dst).add(p);
    return zeros({N, 3}).at(dst).add(expand_dims(p / z[dst], 1) * h[src]);
  };
  program.check("gat", gat(x));
  program.check("ggat", grad([&](Array h) { return sum(sin(gat(h))); })(x));
}

namespace attention {
struct Attn {
  Array wq, wk, wv, wo;
};
}  // namespace attention
TEST(ArrayPrograms, AttentionByEinsum) {
  using namespace attention;
  WholeProgram program("attention");

  const int B = 2, T = 5, D = 8, H = 2;
  auto w = [&](double s) {
    return reshape(0.3 * sin(s * arange(D * D, {.dtype = float32})), {D, H, D / H});
  };
  Attn p{w(1.1), w(1.3), w(1.7), reshape(w(1.9), {H, D / H, D})};
  Array x = reshape(cos(arange(B * T * D, {.dtype = float32})), {B, T, D});
  auto attn = [&](const Attn& p, Array x) {
    Array q = einsum("btd,dhk->bthk", {x, p.wq}), k = einsum("btd,dhk->bthk", {x, p.wk}),
          v = einsum("btd,dhk->bthk", {x, p.wv});
    Array s = einsum("bthk,bshk->bhts", {q, k}) / std::sqrt(D / H);
    Array mask = tril(ones({T, T}, {.dtype = bool_}));
    s = where(mask, s, -INFINITY);
    return einsum("bhts,bshk,hkd->btd", {softmax(s), v, p.wo});
  };
  program.check("y", attn(p, x));
  auto g = jit(grad([&](const Attn& p, Array x) { return sum(sin(attn(p, x))); }))(p, x);
  program.check("gq", g.wq);
  program.check("gk", g.wk);
  program.check("gv", g.wv);
  program.check("go", g.wo);
  Array q = transpose(einsum("btd,dhk->bthk", {x, p.wq}), {0, 2, 1, 3}),
        k = moveaxis(einsum("btd,dhk->bthk", {x, p.wk}), 2, 1),
        v = swapaxes(einsum("btd,dhk->bthk", {x, p.wv}), 1, 2);
  program.check("y2", einsum("bhtk,hkd->btd",
                             {scaled_dot_product_attention(q, k, v, {.causal = true}), p.wo}));
  program.check("e1", einsum("ii", {eye(3) * 2}));
  program.check("e2", einsum("ij->j", {reshape(arange(6, {.dtype = float32}), {2, 3})}));
  program.check("e3",
                einsum("i,j", {arange(3, {.dtype = float32}), arange(2, {.dtype = float32})}));
  program.check("e4", einsum("...ij,...jk->...ik", {ones({2, 3, 4}), ones({4, 2})}));

  program.check("e5", einsum("ij,jk", eye(2), ones({2, 3})));
}

TEST(ArrayPrograms, PhaseRetrieval) {
  WholeProgram program("phase");

  Array x = reshape(sin(0.7 * arange(64, {.dtype = float32})), {8, 8});
  Array X = fft2(x);
  program.check("mag", abs(X));
  auto loss = [&](Array g) { return mean(square(abs(fft2(g)) - abs(X))); };
  Array g0 = cos(1.1 * x) + 0.3;
  program.check("l", loss(g0));
  program.check("dl", grad(loss)(g0));
  // Gerchberg-Saxton, complex arithmetic
  auto gs = jit([&](Array g) {
    return fori_loop(
        0, 10,
        [&](Array, Array g) {
          Array G = fft2(g);
          Array phase = G / maximum(abs(G), 1e-9);
          return real(ifft2(abs(X) * phase));
        },
        g);
  });
  program.check("gs", gs(g0));
  // complex gradients: holomorphic-free
  auto f = [](Array z) { return sum(square(abs(fft(z * exp(std::complex<double>(0, 1) * z))))); };
  Array z = make_complex(array({0.1, 0.2, 0.3, -0.4}), array({1.0, -0.5, 0.25, 0.0}));
  Array dz = grad(f)(z);
  program.check("dzr", 2 * real(dz));
  program.check("dzi", -2 * imag(dz));
  program.check("ang", angle(z));
  program.check("rf", abs(rfft(x[0])));
  program.check("irf", irfft(rfft(x[0])));
  program.check("fs", fftshift(arange(8)));
  program.check("ff", fftfreq(8));
  program.check("conv", real(ifft(fft(x[0]) * fft(x[1]))));
  Array zz = array({std::complex<double>(1, 2), std::complex<double>(3, -1)});
}

namespace trees {
enum class Act { Tanh, Relu };
struct Block {
  Array w;
  std::optional<Array> b;
  Array operator()(Array x, Act act) const {
    x = matmul(x, w);
    if (b) x = x + *b;
    return act == Act::Tanh ? tanh(x) : relu(x);
  }
};
struct Model {
  std::map<std::string, Block> blocks;
  std::vector<Block> stack;
  std::array<Array, 2> scale;
  std::pair<Array, std::tuple<Array, Array>> misc;
  Act act = Act::Tanh;
  Array operator()(Array x) const {
    x = blocks.at("in")(x, act);
    for (auto& s : stack) x = s(x, act);
    auto& [a, bc] = misc;
    auto& [b, c] = bc;
    return scale[0] * x * a + scale[1] * b - c;
  }
};
struct Empty {};
}  // namespace trees
TEST(ArrayPrograms, NestedTrees) {
  using namespace trees;
  WholeProgram program("trees");

  auto M = [](double s) { return reshape(sin(s * arange(9, {.dtype = float32})), {3, 3}); };
  Model m{{{"in", {M(1), {}}}},
          {{M(2), ones({3})}, {M(3), {}}},
          {array(1.5), array(0.5)},
          {array(2.0), {array(0.1), array(0.2)}}};
  Array x = reshape(cos(arange(6, {.dtype = float32})), {2, 3});
  auto f = [&](const Model& m) { return sum(square(m(x))); };
  auto [v, g] = jit(value_and_grad(f))(m);
  program.check("v", v);
  program.check("in", g.blocks["in"].w);
  program.check("s0", g.stack[0].w);
  program.check("s0b", *g.stack[0].b);
  program.check("s1", g.stack[1].w);
  program.check("sc", stack({g.scale[0], g.scale[1]}));
  program.check("m", stack({g.misc.first, std::get<0>(g.misc.second), std::get<1>(g.misc.second)}));
  // scan with struct carry of vectors and maps; layers stacked by vmap'd init then scanned
  auto init = [](Key k) { return Block{normal(k, {3, 3}), zeros({3})}; };

  auto blocks = vmap(init)(split(Key(0), 4));
  auto [y, _] =
      scan(x, blocks, [](Array x, const Block& b) { return tanh(matmul(x, b.w) + *b.b); });

  // tree utilities
  auto total = sum(stack([&] {
    std::vector<Array> n;
    for (auto& l : leaves(g)) n.push_back(sum(square(l)));
    return n;
  }()));
  program.check("norm", sqrt(total));

  program.check("tr", tree_reduce([](Array a, Array b) { return a + b; },
                                  tree_map([](Array x) { return sum(x); }, g)));
  auto [flat, unravel] = ravel_tree(m);
  program.check("flat", flat);
  Model back = unravel(flat * 2);
  program.check("back", back.scale[0]);
  auto z = zeros_like(m);
  program.check("z", z.scale[0]);

  // jit that returns nothing but optional, tuple with static
  auto h = jit([](std::optional<Array> a, std::vector<Array> b) {
    return std::tuple{a ? *a + 1 : array(0.0),
                      b.size() > 1 ? std::optional<Array>(b[1]) : std::nullopt};
  });
  auto [p, q] = h(std::nullopt, std::vector<Array>{ones({2}), zeros({2})});
}

TEST(ArrayPrograms, MasksAndPlaces) {
  WholeProgram program("masks_at");

  Array x = reshape(arange(12, {.dtype = float32}), {3, 4});
  program.check("a", x.at(0).set(9.0));
  program.check("b", x.at(slice(), 1).add(100));
  program.check("c", x.at(array({0, 2}), array({1, 3})).multiply(2));
  program.check("d", x.at(slice(0, 2), slice(1, 3)).set(ones({2, 2})));
  program.check("e", x.at(-1, slice({}, {}, 2)).min(3.0));
  program.check("f", where(x > 5, x, 0));
  program.check("g", x.at(array({0, 0, 1})).add(1.0));
  program.check("h", x[array({{0, 1}, {2, 0}})]);
  program.check("i", x(array({0, 1}), array({2, 3})));
  program.check("j", x(ellipsis, -1));
  program.check("k", x(newaxis, 1, slice(3, 0, -1)));
  program.check("l", sum(where(x % 2 == 0, 1, 0)));
  // boolean mask indexing
  Array m = x > 5;
  program.check("m", x[m]);
  program.check("n", x.at(m).set(0.0));
  program.check("o", sum(x, {0, 1}));
  program.check("p", x.T());
  program.check("q", x.reshape({2, 6})[1]);
  program.check("r", x.at(0, 0).get());
  program.check("s", jit([](Array x, Array m) { return x.at(m).set(-1.0); })(x, m));
  program.check("t", grad([&](Array x) { return sum(square(x.at(m).multiply(3.0))); })(x));
  // iterating
  Array total = 0;
  for (const Array& row : unbind(x)) total = total + sum(row);
  program.check("u", total);

  for (Array row : x) total += sum(row);
  program.check("v", total);

  program.check("w", x[slice(1)] + x(slice(), newaxis, 0));
  auto [vals, idx] = topk(x[0], 2);
  program.check("x", vals);
  program.check("y", idx);

  program.check("z", x.at(1).divide(2.0));
  program.check("aa", x.at(1).subtract(2.0));
  program.check("ab", x.at(1).power(2.0));

  program.check("ac", x.at(1).apply([](Array v) { return sin(v); }));
}

TEST(ArrayPrograms, BranchesPullbacksThreads) {
  WholeProgram program("vdp_misc");

  Array x = array({0.5, -1.0, 2.0});
  auto f = [&](Array a) {
    auto inner = [&](Array b) {
      return cond(sum(b) > sum(a), [&] { return sum(a * b * b); }, [&] { return sum(sin(a) * b); });
    };
    return sum(grad(inner)(a * 2) * a);
  };
  program.check("a", f(x));
  program.check("ga", grad(f)(x));
  program.check("ha", hessian(f)(x));
  auto sw = [&](Array i, Array v) {
    return switch_(
        i, [&] { return sin(v); }, [&] { return v * v; }, [&] { return stop_gradient(v) * v; });
  };
  program.check("sw", vmap([&](Array i) {
                  return grad([&](Array v) { return sum(sw(i, v)); })(x);
                })(arange(3)));
  auto ck = checkpoint([&](Array v) {
    return tanh(matmul(v, reshape(arange(9, {.dtype = float32}) * 0.1, {3, 3})));
  });
  program.check("ck", grad([&](Array v) { return sum(ck(ck(v))); })(x));
  program.check("ckj", jit(jacrev([&](Array v) { return ck(ck(v)); }))(x));
  program.check("ckh", hessian([&](Array v) { return sum(ck(ck(v))); })(x));
  // vjp many cotangents
  auto [y, pull] = vjp([](Array a, Array b) { return std::pair{a * b, sum(a) * b}; }, x, x * 2);
  for (int i = 0; i < 3; i++) {
    auto [da, db] = pull({x * i, ones({3})});
    program.check("da", da);
    program.check("db", db);
  }
  auto [y2, push] = linearize([](Array a) { return sin(a) * a; }, x);
  for (int i = 0; i < 3; i++) program.check("push", push(x * i));
  // vmap of vjp pulled
  program.check("vp", std::get<0>(vmap(pull)(std::pair{eye(3), zeros({3, 3})})));
  // scan inside cond inside while inside vmap
  auto weird = [&](Array n) {
    return while_loop(
               std::pair{array(0), n}, [](std::pair<Array, Array> s) { return s.first < 3; },
               [&](std::pair<Array, Array> s) {
                 auto [i, v] = s;
                 Array w = cond(
                     v > 1,
                     [&] { return scan(v, x, [](Array c, Array e) { return c + e * 0.1; }).last; },
                     [&] { return v * 2; });
                 return std::pair{i + 1, w};
               },
               {.max_iterations = 5})
        .second;
  };
  program.check("w", vmap(weird)(x));
  program.check("gw", vmap(grad(weird))(x));
  // threads
  auto g = jit(grad([](Array v) { return sum(exp(sin(v))); }));
  std::vector<std::thread> ts;
  std::vector<Array> out(4);
  for (int t = 0; t < 4; t++)
    ts.emplace_back([&, t] {
      for (int i = 0; i < 50; i++) out[t] = g(x + t) + exp(x) * i;
    });
  for (auto& t : ts) t.join();
  program.check("th", stack(out));
  // eager loop never looked at
  Array acc = zeros({3});
  for (int i = 0; i < 10000; i++) acc = acc * 0.999 + x * i;
  program.check("acc", acc);
}

}  // namespace
}  // namespace ricci::more_programs_test

#pragma GCC diagnostic pop
