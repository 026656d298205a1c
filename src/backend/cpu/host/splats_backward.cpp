// The derivative of images of Gaussian splats. Pixels go back from their last hit: the
// transmittance in front of a hit is that of the next one divided by what the hit lets through.
// Gradients of splats are summed by groups of tiles, which depend on sizes alone, and then over
// groups in their order: so no bit depends on threads. [splat-backward-reuse]
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/splat_view.h"

namespace ricci::cpu {
namespace {

using loop::splats::Camera;
using loop::splats::CameraGradient;
using loop::splats::displayed_slope;
using loop::splats::Shape;
using loop::splats::ShapeGradient;
using loop::splats::Vec3;

constexpr std::size_t FirstKnown = 8;  // operand that says what the way there has found

// Sums over the pixels that see a splat, with G = dα·α: G e (3), G e eᵀ (xx, xy, xz, yy, yz, zz),
// G, and dc (3). All that a splat gets follows from them, as e = A·(camera + t·d - μ).
constexpr std::size_t SumCount = 13;
using Sums = std::array<double, SumCount>;

// The way back of a block's pixels.
template <class N>
struct BlockGradient {
  Lanes<N> red{};  // of C + T·background
  Lanes<N> green{};
  Lanes<N> blue{};
  Lanes<N> behind{};  // of the transmittance behind the splat at hand
  Lanes<N> front{};   // the transmittance in front of it
  Lanes<N> ray_x{};
  Lanes<N> ray_y{};
  Lanes<N> ray_z{};
  bool asks_rays;  // of those somebody wants to know

  explicit BlockGradient(bool rays) : asks_rays(rays) {}

  // `u` is C + T·background of lane l, and `left` its T.
  void begin(std::size_t l, const Vec3<N>& u, N left, const Vec3<N>& background, N gamma,
             const N* drgba, CameraGradient<double>& dcamera) {
    const Vec3<N> du{drgba[0] * displayed_slope(u.x, gamma), drgba[1] * displayed_slope(u.y, gamma),
                     drgba[2] * displayed_slope(u.z, gamma)};
    red[l] = du.x;
    green[l] = du.y;
    blue[l] = du.z;
    behind[l] = dot(du, background) - drgba[3];
    const Vec3<N> dbackground = du * left;
    dcamera.background += {dbackground.x, dbackground.y, dbackground.z};
  }

  // One splat back, entry k of the list: dα = T·(w - dT), dT ← α·w + (1 - α)·dT with w = du·c, and
  // what follows. False when no pixel sees it.
  bool step_back(const CompactSplat<N>& s, std::int32_t k, const PixelBlock<N>& b, N cutoff,
                 Sums& sums) {
    bool any = false;
    vectorised([&]() RICCI_INLINE {
      const Meeting<N> m(s, b);
      Lanes<N> alpha;
      if (!m.opacities(s, cutoff, alpha)) return;
      for (std::size_t l = 0; l < alpha.size(); ++l) alpha[l] = k < b.last[l] ? alpha[l] : N(0);
      N largest = 0;
      for (std::size_t l = 0; l < alpha.size(); ++l) largest = std::max(largest, alpha[l]);
      if (!(largest > 0)) return;
      any = true;
      Lanes<N> weight;
      Lanes<N> whole;
      for (std::size_t l = 0; l < alpha.size(); ++l) {
        // Only the last hit may let nothing through.
        const N earlier = k + 1 == b.last[l] ? b.before[l] : front[l] / (1 - alpha[l]);
        front[l] = alpha[l] > 0 ? earlier : front[l];
        const N w = red[l] * s.color.x + green[l] * s.color.y + blue[l] * s.color.z;
        weight[l] = alpha[l] > 0 ? front[l] * alpha[l] : N(0);
        whole[l] = weight[l] * (w - behind[l]);
        behind[l] = alpha[l] * w + (1 - alpha[l]) * behind[l];
      }
      add_shape(s, m, alpha, whole, sums);
      sums[9] = total(whole);
      sums[10] = total_of_products(weight, red);
      sums[11] = total_of_products(weight, green);
      sums[12] = total_of_products(weight, blue);
    });
    return any;
  }

 private:
  RICCI_INLINE void add_shape(const CompactSplat<N>& s, const Meeting<N>& m, const Lanes<N>& alpha,
                              const Lanes<N>& whole, Sums& sums) {
    Lanes<N> ex;
    Lanes<N> ey;
    Lanes<N> ez;
    for (std::size_t l = 0; l < ex.size(); ++l) {
      // Where nothing is hit, e may be no number.
      const bool hit = alpha[l] > 0;
      const N over = hit ? 1 / m.rr[l] : N(0);
      ex[l] = hit ? over * (m.ry[l] * m.cz[l] - m.rz[l] * m.cy[l]) : N(0);
      ey[l] = hit ? over * (m.rz[l] * m.cx[l] - m.rx[l] * m.cz[l]) : N(0);
      ez[l] = hit ? over * (m.rx[l] * m.cy[l] - m.ry[l] * m.cx[l]) : N(0);
    }
    Lanes<N> gx;
    Lanes<N> gy;
    Lanes<N> gz;
    for (std::size_t l = 0; l < ex.size(); ++l) {
      gx[l] = whole[l] * ex[l];
      gy[l] = whole[l] * ey[l];
      gz[l] = whole[l] * ez[l];
    }
    if (asks_rays) {
      for (std::size_t l = 0; l < ex.size(); ++l) {
        const N t = alpha[l] > 0 ? m.t[l] : N(0);
        ray_x[l] -= t * (s.a[0] * gx[l] + s.a[3] * gy[l] + s.a[6] * gz[l]);
        ray_y[l] -= t * (s.a[1] * gx[l] + s.a[4] * gy[l] + s.a[7] * gz[l]);
        ray_z[l] -= t * (s.a[2] * gx[l] + s.a[5] * gy[l] + s.a[8] * gz[l]);
      }
    }
    sums[0] = total(gx);
    sums[1] = total(gy);
    sums[2] = total(gz);
    sums[3] = total_of_products(gx, ex);
    sums[4] = total_of_products(gx, ey);
    sums[5] = total_of_products(gx, ez);
    sums[6] = total_of_products(gy, ey);
    sums[7] = total_of_products(gy, ez);
    sums[8] = total_of_products(gz, ez);
  }
  RICCI_INLINE static double total(const Lanes<N>& v) {
    Lanes<N> copy = v;
    return sum_lanes(copy);
  }
  RICCI_INLINE static double total_of_products(const Lanes<N>& a, const Lanes<N>& b) {
    Lanes<N> product;
    for (std::size_t l = 0; l < product.size(); ++l) product[l] = a[l] * b[l];
    return sum_lanes(product);
  }
};

// With x = camera + t·d - μ = R S e: Σ x (S⁻¹ g_p)ᵀ = -R S (Σ G e eᵀ) S⁻¹ is what turns the splat,
// and Σ G e_j² what stretches it.
ShapeGradient<double> in_shape(const Sums& t, const Shape<double>& shape) {
  const auto& [sx, sy, sz] = shape.inverse;
  // An axis without end has no length to be measured by.
  const auto over = [](double v, double s) { return s > 0 ? v / s : 0; };
  const auto column = [&](const Vec3<double>& g, double inverse) {
    const Vec3<double> x{over(g.x, sx), over(g.y, sy), over(g.z, sz)};
    return rotate(shape.rotation, x * -inverse);
  };
  ShapeGradient<double> d;
  d.pushed = {-t[0], -t[1], -t[2]};
  d.stretched = {-t[3], -t[6], -t[8]};
  d.turned = {column({t[3], t[4], t[5]}, sx), column({t[4], t[6], t[7]}, sy),
              column({t[5], t[7], t[8]}, sz)};
  d.opacity = t[9] / shape.opacity;
  d.color = {t[10], t[11], t[12]};
  return d;
}

// What pixels have found on the way there: operands 8 to 10, then what was prepared.
template <class N>
struct KnownPixels {
  NumberOperand<N> rgba;
  NumberOperand<N> before;
  DenseOperand last;
  PreparedOperands prepared;

  KnownPixels(const HostArguments& call, Scratch& scratch)
      : rgba(call, FirstKnown, scratch),
        before(call, FirstKnown + 1, scratch),
        last(call, FirstKnown + 2, scratch),
        prepared(call, FirstKnown + 3, scratch) {}
  void pack(const HostArguments& call, const loop::Splats& s) const {
    rgba.pack(call.pool);
    before.pack(call.pool);
    last.pack(call.pool);
    prepared.pack(s);
  }
};

// The sums of a group of tiles, for the splats that its pixels see.
struct GroupSums {
  std::int32_t* slots;    // of every splat; -1: none yet
  std::int32_t* touched;  // splats by slot
  Sums* sums;             // by slot
  std::int32_t count = 0;

  void add(std::int32_t splat, const Sums& more) {
    std::int32_t& slot = slots[splat];
    if (slot < 0) {
      slot = count++;
      touched[slot] = splat;
      sums[slot] = more;
      return;
    }
    for (std::size_t k = 0; k < SumCount; ++k) sums[slot][k] += more[k];
  }
};

template <class N>
class SplatsBackward {
 public:
  SplatsBackward(const HostArguments& call, Scratch& scratch)
      : call_(call),
        scene_(call, scratch),
        drgba_(call, 7, scratch),
        view_(call, call.as<loop::Splats>().known, scratch),
        groups_(view_.tiles(), most_groups(view_.count)),
        lists_(scratch.take<std::int32_t>(view_.known ? 0 : groups_.tiles * view_.count)),
        slots_(scratch.take<std::int32_t>(groups_.tiles * view_.count)),
        touched_(scratch.take<std::int32_t>(groups_.tiles * view_.count)),
        sums_(scratch.take<Sums>(groups_.tiles * view_.count)),
        counts_(scratch.take<std::int32_t>(groups_.tiles)),
        cameras_(scratch.take<CameraGradient<double>>(groups_.tiles)),
        totals_(scratch.take<Sums>(view_.count)),
        moved_(scratch.take<Vec3<double>>(view_.count)) {
    if (view_.known) known_.emplace(call, scratch);
  }

  void run() {
    scene_.pack();
    drgba_.pack(call_.pool);
    if (known_) known_->pack(call_, view_);
    for (std::int64_t image = 0; image < view_.batch; ++image) {
      const Camera<double> camera = scene_.camera(image, view_);
      if (known_) {
        view_.load(known_->prepared, scene_, image, camera);
      } else {
        view_.look(scene_, image, camera);
      }
      call_.pool.run(groups_.tiles, [&](std::int64_t group) { run_group(group, image, camera); });
      finish(image, camera);
    }
  }

 private:
  // Each has room for all splats, so many splats make few groups.
  static std::int64_t most_groups(std::int64_t count) {
    constexpr std::int64_t Most = 32;
    constexpr std::int64_t MostSplats = std::int64_t{1} << 20;
    return std::clamp<std::int64_t>(MostSplats / std::max<std::int64_t>(count, 1), 1, Most);
  }

  void run_group(std::int64_t group, std::int64_t image, const Camera<double>& camera) {
    const std::int64_t room = group * view_.count;
    GroupSums sums{slots_ + room, touched_ + room, sums_ + room};
    std::fill_n(sums.slots, view_.count, -1);
    CameraGradient<double> dcamera;
    const std::int64_t end = std::min(groups_.items, (group + 1) * groups_.per_tile);
    for (std::int64_t tile = group * groups_.per_tile; tile < end; ++tile) {
      const SplatIds ids = view_.list(tile, lists_ + room);
      view_.blocks_of(tile, [&](PixelBlock<N>& block) {
        BlockGradient<N> d(call_.results[6].data != nullptr);
        begin(block, d, image, ids, camera, dcamera);
        go_back(block, d, ids, sums);
        if (!d.asks_rays) return;
        for (std::size_t l = 0; l < block.size; ++l) {
          dcamera.add_ray(camera, block.pixel[l] % view_.width, block.pixel[l] / view_.width,
                          {d.ray_x[l], d.ray_y[l], d.ray_z[l]});
        }
      });
    }
    counts_[group] = sums.count;
    cameras_[group] = dcamera;
  }

  // Where the pixels of a block begin: as they are known, or as they are found again.
  void begin(PixelBlock<N>& b, BlockGradient<N>& d, std::int64_t image, SplatIds ids,
             const Camera<double>& camera, CameraGradient<double>& dcamera) const {
    const N gamma = static_cast<N>(view_.gamma.value);
    const Vec3<N> background{static_cast<N>(camera.background.x),
                             static_cast<N>(camera.background.y),
                             static_cast<N>(camera.background.z)};
    const N* drgba = drgba_.data() + row_of(call_.operands[7], image);
    if (!known_) view_.compose(ids, b);
    for (std::size_t l = 0; l < b.size; ++l) {
      const std::int64_t pixel = b.pixel[l];
      Vec3<N> u{b.red[l] + background.x * b.left[l], b.green[l] + background.y * b.left[l],
                b.blue[l] + background.z * b.left[l]};
      if (known_) {
        const N* rgba = known_->rgba.data() + row_of(call_.operands[FirstKnown], image) + 4 * pixel;
        const auto shown = [&](N v) { return gamma == 1 || !(v > 0) ? v : std::pow(v, 1 / gamma); };
        u = {shown(rgba[0]), shown(rgba[1]), shown(rgba[2])};
        b.left[l] = 1 - rgba[3];
        b.before[l] = known_->before.data()[row_of(call_.operands[FirstKnown + 1], image) + pixel];
        const std::int32_t last =
            known_->last
                .template as<std::int32_t>()[row_of(call_.operands[FirstKnown + 2], image) + pixel];
        b.last[l] = std::clamp(last, 0, static_cast<std::int32_t>(ids.size()));
      }
      d.begin(l, u, b.left[l], background, gamma, drgba + 4 * pixel, dcamera);
    }
  }

  void go_back(const PixelBlock<N>& b, BlockGradient<N>& d, SplatIds ids, GroupSums& sums) const {
    const N cutoff = static_cast<N>(view_.alpha_cutoff.value);
    for (std::int32_t k = *std::ranges::max_element(b.last); k-- > 0;) {
      const std::int32_t i = ids[static_cast<std::size_t>(k)];
      if (!view_.meets(i, b)) continue;
      Sums more;
      if (d.step_back(view_.compact(i), k, b, cutoff, more)) sums.add(i, more);
    }
  }

  void give(std::size_t r, std::int64_t at, std::span<const double> numbers) const {
    if (call_.results[r].data == nullptr) return;
    N* to = call_.results[r].template as<N>() + at * static_cast<std::int64_t>(numbers.size());
    for (const double v : numbers) *to++ = static_cast<N>(v);
  }

  // Sums over groups, and through the shape of every splat.
  void finish(std::int64_t image, const Camera<double>& camera) {
    std::fill_n(totals_, view_.count, Sums{});
    CameraGradient<double> dcamera;
    for (std::int64_t g = 0; g < groups_.tiles; ++g) {
      dcamera.add(cameras_[g]);
      for (std::int64_t slot = g * view_.count; slot < g * view_.count + counts_[g]; ++slot) {
        Sums& total = totals_[touched_[slot]];
        for (std::size_t k = 0; k < SumCount; ++k) total[k] += sums_[slot][k];
      }
    }
    parallel_for(call_.pool, view_.count, grain_for(300),
                 [&](std::int64_t first, std::int64_t end) {
                   for (std::int64_t i = first; i < end; ++i) moved_[i] = write_splat(image, i);
                 });
    for (std::int64_t i = 0; i < view_.count; ++i) dcamera.position += moved_[i];
    std::array<double, SplatLensMetaLength> dmeta{};
    dcamera.add_to(camera, dmeta.data());
    const std::int64_t length = view_.lens ? SplatLensMetaLength : SplatMetaLength;
    give(6, image, std::span(dmeta).first(static_cast<std::size_t>(length)));
  }

  // Gives what the camera's position gets.
  Vec3<double> write_splat(std::int64_t image, std::int64_t i) const {
    OneSplat d;
    Vec3<double> dcamera{};
    const Shape<double>& shape = view_.shape(i);
    if (shape.valid) {
      const OneSplat one = scene_.splat(image, i, view_.coefficients);
      dcamera = d.gradient().write(one.scene(), 0, shape, in_shape(totals_[i], shape), view_);
    }
    const std::int64_t at = image * view_.count + i;
    give(0, at, d.position);
    give(1, at, d.scale);
    give(2, at, d.rotation);
    give(3, at, d.opacity);
    give(4, at, d.color);
    give(5, at, std::span(d.sh).first(static_cast<std::size_t>(3 * view_.coefficients)));
    return dcamera;
  }

  const HostArguments& call_;
  SceneOperands<N> scene_;
  NumberOperand<N> drgba_;
  SplatView<N> view_;
  Slots groups_;
  std::int32_t* lists_;
  std::int32_t* slots_;
  std::int32_t* touched_;
  Sums* sums_;
  std::int32_t* counts_;
  CameraGradient<double>* cameras_;
  Sums* totals_;
  Vec3<double>* moved_;
  std::optional<KnownPixels<N>> known_;
};

}  // namespace

HostKernel splats_backward_kernel() noexcept { return kernel_of_float<SplatsBackward>(); }

}  // namespace ricci::cpu
