#include "ricci/model/calibration.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "ricci/ir/text.h"
#include "ricci/support/error.h"

#include "model/extract.h"
#include "model/value_range.h"
#include "op/code_range.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

// Of one value, and of each channel of one.
constexpr std::int64_t HalfOfBins = 2048;
constexpr std::int64_t HalfOfChannelBins = 256;
// Of values that are all 0, too.
constexpr double LeastScale = 1e-6;

bool is_unsigned(CodeKind kind) { return kind == CodeKind::U8 || kind == CodeKind::U4; }

void require_sense(const RangeOptions& options) {
  if (options.symmetric && is_unsigned(options.to)) {
    throw UserError(ErrorCode::Attr, "symmetric ranges need codes with a sign",
                    "take i8, or a range that is not symmetric");
  }
  if (!(options.percentile > 50 && options.percentile <= 100)) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("a percentile of {} keeps nothing", options.percentile),
                    "it is above 50 and at most 100; 99.99 is usual");
  }
}

struct Coded {
  double scale = 1;
  std::int64_t zero_point = 0;
};

double largest_float(CodeKind kind) { return kind == CodeKind::E4m3 ? 448 : 57344; }

// Scales are what f32 can say, so that every device divides by the same number.
double as_scale(double scale) {
  return static_cast<double>(static_cast<float>(std::max(scale, LeastScale)));
}

Coded coded(const NumberRange& range, const RangeOptions& options) {
  const double largest = std::max(-range.low, range.high);
  if (is_floating_code(options.to)) return {as_scale(largest / largest_float(options.to)), 0};
  const CodeRange codes = range_of(options.to);
  if (options.symmetric) return {as_scale(largest / static_cast<double>(codes.high)), 0};
  const double scale =
      as_scale((range.high - range.low) / static_cast<double>(codes.high - codes.low));
  const double zero = std::nearbyint(static_cast<double>(codes.low) - range.low / scale);
  return {scale, std::clamp(static_cast<std::int64_t>(zero), codes.low, codes.high)};
}

NumberRange chosen(const NumberCounts& counts, const RangeOptions& options) {
  const CodeRange codes =
      is_floating_code(options.to) ? CodeRange{-128, 127} : range_of(options.to);
  const std::int64_t all = codes.high - codes.low + 1;
  switch (options.method) {
    case RangeMethod::MinMax: break;
    case RangeMethod::Percentile:
      return counts.percentile(options.percentile / 100, options.symmetric);
    case RangeMethod::Mse: return counts.least_squares(static_cast<double>(all), options.symmetric);
    case RangeMethod::Entropy: {
      // Sizes have all codes where there is one sign, and half of them where there are two.
      const bool one_sign = !options.symmetric && counts.seen().low == 0;
      return counts.least_divergence(one_sign ? all : all / 2);
    }
  }
  return counts.seen();
}

}  // namespace

struct ValueStatistics::Channel {
  NumberCounts counts;
};

ValueStatistics::ValueStatistics(std::optional<Axis> axis, bool wants_counts)
    : axis_(axis), wants_counts_(wants_counts) {}
ValueStatistics::ValueStatistics(ValueStatistics&&) noexcept = default;
ValueStatistics& ValueStatistics::operator=(ValueStatistics&&) noexcept = default;
ValueStatistics::~ValueStatistics() = default;

void ValueStatistics::observe(const Tensor& values) {
  const DefaultFloatEnvironment floats;
  const auto rank = static_cast<std::int64_t>(values.rank());
  if (axis_ && (axis_->value < -rank || axis_->value >= rank)) {
    throw UserError(ErrorCode::Shape, fmt::format("{} has no axis {} of channels",
                                                  values.type().to_string(), axis_->value));
  }
  if (axis_ && axis_->value < 0) axis_ = Axis(axis_->value + rank);
  const std::size_t channels =
      axis_ ? static_cast<std::size_t>(values.dims()[axis_->index()]) : std::size_t{1};
  if (channels_.empty()) {
    const std::int64_t half = axis_ ? HalfOfChannelBins : HalfOfBins;
    channels_.assign(channels, Channel{NumberCounts(wants_counts_ ? half : 0)});
  }
  if (channels_.size() != channels) {
    throw UserError(ErrorCode::Shape,
                    fmt::format("a value with {} channels has {} in another sample",
                                channels_.size(), channels));
  }
  std::size_t inner = 1;
  for (std::size_t i = axis_ ? axis_->index() + 1 : values.rank(); i < values.rank(); ++i) {
    inner *= static_cast<std::size_t>(values.dims()[i]);
  }
  const std::vector<double> numbers = values.numbers<double>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isfinite(numbers[i]))
      channels_[axis_ ? i / inner % channels : 0].counts.add(numbers[i]);
  }
}

std::int64_t ValueStatistics::count() const {
  std::int64_t total = 0;
  for (const Channel& c : channels_) total += c.counts.count();
  return total;
}

CodeParams ValueStatistics::params(const RangeOptions& options) const {
  const DefaultFloatEnvironment floats;
  require_sense(options);
  if (count() == 0) {
    throw UserError(ErrorCode::Attr, "no finite number was seen",
                    "calibrate on inputs that give some");
  }
  CodeParams out{.axis = axis_, .scales = {}, .zero_points = {}, .to = options.to};
  const bool has_zeros = !options.symmetric && !is_floating_code(options.to);
  for (const Channel& c : channels_) {
    const Coded code = coded(chosen(c.counts, options), options);
    out.scales.emplace_back(code.scale);
    if (has_zeros) out.zero_points.push_back(code.zero_point);
  }
  return out;
}

CodeParams params_for(const Tensor& values, std::optional<Axis> axis, const RangeOptions& options) {
  ValueStatistics seen(axis, options.method != RangeMethod::MinMax);
  seen.observe(values);
  return seen.params(options);
}

struct Calibration::Impl {
  struct Watched {
    ValueId id;
    std::string name;
    RangeOptions range;
    ValueStatistics seen;
  };
  std::vector<Watched> watched;
  std::optional<ValueRun> run;
};

Calibration::Calibration(const Graph& graph, std::span<const Tap> taps, const RangeOptions& range,
                         const std::optional<Device>& device)
    : impl_(std::make_unique<Impl>()) {
  const auto names = value_names(graph);
  std::vector<ValueId> values;
  for (const Tap& tap : taps) {
    const ValueId id = tap.value.in(graph);
    const std::string& name = names[id.node][id.result];
    const Type& type = graph.type(id);
    if (!is_float(type.dtype)) {
      throw UserError(ErrorCode::DType,
                      fmt::format("%{} is {}: only floats become codes", name, type.to_string()));
    }
    if (std::ranges::find(values, id) != values.end()) {
      throw UserError(ErrorCode::Name, fmt::format("%{} is tapped twice", name));
    }
    values.push_back(id);
    const RangeOptions& own = tap.range ? *tap.range : range;
    require_sense(own);
    impl_->watched.push_back(
        {id, name, own, ValueStatistics(tap.axis, own.method != RangeMethod::MinMax)});
  }
  if (!values.empty()) impl_->run.emplace(graph, values, device);
}
Calibration::Calibration(Calibration&&) noexcept = default;
Calibration& Calibration::operator=(Calibration&&) noexcept = default;
Calibration::~Calibration() = default;

void Calibration::observe(const Feeds& feeds, const SymbolBindings& symbols) {
  if (impl_->watched.empty()) return;
  const std::vector<Tensor> values = impl_->run->run(feeds, symbols);
  for (std::size_t i = 0; i < values.size(); ++i) impl_->watched[i].seen.observe(values[i]);
}

QuantRecord Calibration::record() const {
  QuantRecord out;
  for (const Impl::Watched& w : impl_->watched) {
    if (w.seen.count() == 0) {
      throw UserError(ErrorCode::Attr, fmt::format("no finite number was seen of %{}", w.name),
                      "calibrate on inputs that give some");
    }
    out.emplace(w.id, w.seen.params(w.range));
  }
  return out;
}

}  // namespace ricci
