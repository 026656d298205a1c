// Convolution of f32 by oneDNN. Every tile reorders its images into the layout the primitive likes,
// convolves them, and reorders the result back; weights are reordered once. Gradients of weights
// are summed over tiles in order, so that their bits do not depend on who ran which.
#include <algorithm>
#include <vector>

#include <dnnl.hpp>

#include "ricci/support/checked.h"

#include "backend/cpu/run/library_parts.h"
#include "backend/cpu/structured/conv.h"
#include "backend/cpu/structured/library_threads.h"
#include "support/align.h"
#include "support/fork.h"

namespace ricci::cpu {
namespace {

using Of = loop::Convolution::Of;

using dnnl::memory;

constexpr std::int64_t MostTiles = 16;
constexpr std::int64_t MostPartials = 8;  // of dw, each the size of dw

const dnnl::engine& engine() {
  static const dnnl::engine only(dnnl::engine::kind::cpu, 0);
  return only;
}

std::int64_t bytes_of(const memory::desc& desc) {
  return aligned(static_cast<std::int64_t>(desc.get_size()));
}

memory::desc plain(const memory::dims& dims) {
  const auto tag = dims.size() == 5 ? memory::format_tag::abcde : memory::format_tag::abcd;
  return {dims, memory::data_type::f32, tag};
}
memory::desc any(const memory::dims& dims) {
  return {dims, memory::data_type::f32, memory::format_tag::any};
}

// An array in the caller's layout and in the primitive's, with the reorder between them.
struct Reordered {
  memory::desc caller;
  memory::desc packed;
  dnnl::reorder reorder;
  bool same = false;
  std::int64_t scratch = 0;  // bytes of the reorder's own scratchpad

  Reordered() = default;
  Reordered(const memory::desc& in_caller, const memory::desc& in_packed, bool to_packed)
      : caller(in_caller), packed(in_packed), same(in_caller == in_packed) {
    if (same) return;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const memory::desc& from = to_packed ? caller : packed;
    const memory::desc& to = to_packed ? packed : caller;
    const dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, attributes);
    scratch = bytes_of(pd.scratchpad_desc());
    pad_ = pd.scratchpad_desc();
    reorder = dnnl::reorder(pd);
  }
  [[nodiscard]] std::int64_t bytes() const { return same ? 0 : bytes_of(packed) + scratch; }

  void run(void* from, const memory::desc& from_desc, void* to, const memory::desc& to_desc,
           std::byte* own_scratch) const {
    dnnl::stream stream(engine());
    reorder.execute(stream, {{DNNL_ARG_FROM, memory(from_desc, engine(), from)},
                             {DNNL_ARG_TO, memory(to_desc, engine(), to)},
                             {DNNL_ARG_SCRATCHPAD, memory(pad_, engine(), own_scratch)}});
  }
  // The packed form, at `space` unless it is the caller's.
  void* pack(void* data, std::byte* space) const {
    if (same) return data;
    run(data, caller, space, packed, space + bytes_of(packed));
    return space;
  }
  void unpack(std::byte* space, void* data) const {
    if (!same) run(space, packed, data, caller, space + bytes_of(packed));
  }

 private:
  memory::desc pad_;
};

// The primitive for a number of images.
struct Primitive {
  dnnl::primitive primitive;
  memory::desc scratchpad;
  Reordered lhs;
  Reordered rhs;
  Reordered out;
  std::int64_t images = 0;

  Primitive(const loop::Convolution& g, std::int64_t count);
  [[nodiscard]] std::int64_t scratch() const { return bytes_of(scratchpad); }

 private:
  template <class Pd>
  void take(const Pd& pd) {
    scratchpad = pd.scratchpad_desc();
  }
};

Primitive::Primitive(const loop::Convolution& g, std::int64_t count) : images(count) {
  using dnnl::algorithm;
  using dnnl::prop_kind;
  const memory::dims x = {count, g.channels_in, g.size_in[0], g.size_in[1]};
  const memory::dims y = {count, g.channels_out, g.size_out[0], g.size_out[1]};
  const std::int64_t inputs = g.channels_in / g.groups;
  const memory::dims w =
      g.groups == 1
          ? memory::dims{g.channels_out, inputs, g.kernel[0], g.kernel[1]}
          : memory::dims{g.groups, g.channels_out / g.groups, inputs, g.kernel[0], g.kernel[1]};
  const memory::dims stride(g.stride.begin(), g.stride.end());
  const memory::dims padding(g.padding.begin(), g.padding.end());
  const memory::dims dilation = {g.dilation[0] - 1, g.dilation[1] - 1};
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::convolution_forward::primitive_desc forward(
      {prop_kind::forward_training, algorithm::convolution_direct, any(x), any(w), any(y), stride,
       dilation, padding, padding},
      attributes, engine());
  switch (g.of) {
    case Of::Image:
      take(forward);
      primitive = dnnl::convolution_forward(forward);
      lhs = {plain(x), forward.src_desc(), true};
      rhs = {plain(w), forward.weights_desc(), true};
      out = {plain(y), forward.dst_desc(), false};
      break;
    case Of::ImageGradient: {
      const dnnl::convolution_backward_data::primitive_desc pd(
          {algorithm::convolution_direct, any(x), any(w), any(y), stride, dilation, padding,
           padding},
          attributes, engine(), forward);
      take(pd);
      primitive = dnnl::convolution_backward_data(pd);
      lhs = {plain(y), pd.diff_dst_desc(), true};
      rhs = {plain(w), pd.weights_desc(), true};
      out = {plain(x), pd.diff_src_desc(), false};
      break;
    }
    case Of::WeightGradient: {
      const dnnl::convolution_backward_weights::primitive_desc pd(
          {algorithm::convolution_direct, any(x), any(w), any(y), stride, dilation, padding,
           padding},
          attributes, engine(), forward);
      take(pd);
      primitive = dnnl::convolution_backward_weights(pd);
      lhs = {plain(x), pd.src_desc(), true};
      rhs = {plain(y), pd.diff_dst_desc(), true};
      out = {plain(w), pd.diff_weights_desc(), false};
      break;
    }
  }
}

class LibraryConv final : public ConvMethod {
 public:
  LibraryConv(const loop::Convolution& g) : g_(g), by_images_(g.of != Of::WeightGradient) {
    const UnforkedWork unforked;  // the library keeps its primitives in a cache
    const std::int64_t most = by_images_ ? MostTiles : MostPartials;
    const std::int64_t size = (g.images + most - 1) / most;
    tiles_ = (g.images + size - 1) / size;
    primitives_.emplace_back(g, size);
    if (const std::int64_t rest = g.images % size; rest != 0) primitives_.emplace_back(g, rest);
    // Scratch: packed weights, once for each primitive; then every tile's own.
    for (const Primitive& p : primitives_) {
      weights_at_.push_back(weights_bytes_);
      if (by_images_) weights_bytes_ += p.rhs.bytes();
      const std::int64_t own = p.lhs.bytes() + (by_images_ ? 0 : p.rhs.bytes()) + p.out.bytes() +
                               p.scratch() + partial_bytes();
      tile_bytes_ = std::max(tile_bytes_, own);
    }
  }

  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return checked_add(weights_bytes_, checked_mul(tiles_, tile_bytes_));
  }

  void run(ThreadPool& pool, const void* lhs, const void* rhs, void* out, std::byte* scratch,
           const ImageHooks& hooks) const override {
    auto* l = static_cast<float*>(const_cast<void*>(lhs));
    auto* r = static_cast<float*>(const_cast<void*>(rhs));
    auto* o = static_cast<float*>(out);
    std::vector<void*> weights(primitives_.size());
    if (by_images_) {
      const OneLibraryThread alone;
      for (std::size_t i = 0; i < primitives_.size(); ++i) {
        weights[i] = primitives_[i].rhs.pack(r, scratch + weights_at_[i]);
      }
    }
    std::byte* tiles = scratch + weights_bytes_;
    pool.run(tiles_, [&](std::int64_t t) {
      const std::int64_t first = t * primitives_[0].images;
      const std::int64_t end = std::min(first + primitives_[0].images, g_.images);
      if (hooks.before && by_images_) hooks.before(first, end);
      run_tile(t, l, r, o, weights, tiles + t * tile_bytes_);
      if (hooks.done && by_images_) hooks.done(first, end);
    });
    if (!by_images_) add_partials(pool, tiles, o);
  }

 private:
  [[nodiscard]] std::int64_t partial_bytes() const {
    return by_images_ ? 0 : aligned(g_.weights() * static_cast<std::int64_t>(sizeof(float)));
  }

  void run_tile(std::int64_t tile, float* lhs, float* rhs, float* out,
                const std::vector<void*>& weights, std::byte* space) const {
    const OneLibraryThread alone;
    const std::int64_t first = tile * primitives_[0].images;
    const std::size_t which = first + primitives_[0].images <= g_.images ? 0 : 1;
    const Primitive& p = primitives_[which];
    const std::int64_t x = first * g_.x_image();
    const std::int64_t y = first * g_.y_image();
    const bool forward = g_.of == Of::Image;
    float* partial = reinterpret_cast<float*>(space);  // dw's tiles begin with their share
    space += partial_bytes();
    void* l = p.lhs.pack(lhs + (g_.of == Of::ImageGradient ? y : x), space);
    space += p.lhs.bytes();
    void* r = by_images_ ? weights[which] : p.rhs.pack(rhs + y, space);
    if (!by_images_) space += p.rhs.bytes();
    float* to = by_images_ ? out + (forward ? y : x) : partial;
    std::byte* packed = p.out.same ? reinterpret_cast<std::byte*>(to) : space;
    space += p.out.bytes();
    const auto at = [](const Reordered& a, void* data) { return memory(a.packed, engine(), data); };
    dnnl::stream stream(engine());
    const memory pad(p.scratchpad, engine(), space);
    switch (g_.of) {
      case Of::Image:
        p.primitive.execute(stream, {{DNNL_ARG_SRC, at(p.lhs, l)},
                                     {DNNL_ARG_WEIGHTS, at(p.rhs, r)},
                                     {DNNL_ARG_DST, at(p.out, packed)},
                                     {DNNL_ARG_SCRATCHPAD, pad}});
        break;
      case Of::ImageGradient:
        p.primitive.execute(stream, {{DNNL_ARG_DIFF_DST, at(p.lhs, l)},
                                     {DNNL_ARG_WEIGHTS, at(p.rhs, r)},
                                     {DNNL_ARG_DIFF_SRC, at(p.out, packed)},
                                     {DNNL_ARG_SCRATCHPAD, pad}});
        break;
      case Of::WeightGradient:
        p.primitive.execute(stream, {{DNNL_ARG_SRC, at(p.lhs, l)},
                                     {DNNL_ARG_DIFF_DST, at(p.rhs, r)},
                                     {DNNL_ARG_DIFF_WEIGHTS, at(p.out, packed)},
                                     {DNNL_ARG_SCRATCHPAD, pad}});
        break;
    }
    p.out.unpack(packed, to);
  }

  void add_partials(ThreadPool& pool, const std::byte* tiles, float* dw) const {
    constexpr std::int64_t Chunk = 1 << 13;
    const std::int64_t count = g_.weights();
    pool.run((count + Chunk - 1) / Chunk, [&](std::int64_t chunk) {
      const std::int64_t first = chunk * Chunk;
      const std::int64_t end = std::min(first + Chunk, count);
      for (std::int64_t t = 0; t < tiles_; ++t) {
        const auto* share = reinterpret_cast<const float*>(tiles + t * tile_bytes_);
        for (std::int64_t i = first; i < end; ++i) dw[i] = t == 0 ? share[i] : dw[i] + share[i];
      }
    });
  }

  loop::Convolution g_;
  bool by_images_;                     // tiles write images, not shares of dw
  std::vector<Primitive> primitives_;  // for a whole tile and, if there is one, for the rest
  std::int64_t tiles_ = 0;
  std::vector<std::int64_t> weights_at_;
  std::int64_t weights_bytes_ = 0;
  std::int64_t tile_bytes_ = 0;
};

std::shared_ptr<const ConvMethod> library_conv(const loop::Convolution& g) {
  if (g.images == 0 || g.weights() == 0 || g.x_image() == 0 || g.y_image() == 0) return nullptr;
  // It multiplies these in 32 bits.
  constexpr std::int64_t Most = 1 << 14;
  const auto is_far = [](const std::array<std::int64_t, 2>& pair) {
    return pair[0] > Most || pair[1] > Most;
  };
  if (is_far(g.stride) || is_far(g.padding) || is_far(g.dilation)) return nullptr;
  const OneLibraryThread alone;
  try {
    return std::make_shared<LibraryConv>(g);
  } catch (const dnnl::error&) {
    return nullptr;  // a geometry it has no kernel for
  }
}

}  // namespace
}  // namespace ricci::cpu

ricci::cpu::LibraryConvolution* ricci_cpu_convolution() noexcept {
  return &ricci::cpu::library_conv;
}
