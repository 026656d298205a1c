#include "ricci/data/dataset.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "support/float_environment.h"

namespace ricci::detail {
namespace {

std::string named(std::span<const std::string> names, std::size_t k) {
  return names[k].empty() ? "the array" : fmt::format("'{}'", names[k]);
}

[[noreturn]] void refuse(ErrorCode code, std::string detail, std::string message,
                         std::source_location where, std::string help) {
  throw UserError(Diagnostic{.code = code,
                             .detail = std::move(detail),
                             .message = std::move(message),
                             .where = SourcePosition::from(where),
                             .notes = {},
                             .help = std::move(help)});
}

bool are_consecutive(std::span<const std::int64_t> rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] != rows[i - 1] + 1) return false;
  }
  return !rows.empty();
}

Type with_count(const Type& type, std::size_t count) {
  Type out = type;
  out.dims[0] = static_cast<std::int64_t>(count);
  return out;
}

Tensor gathered(const Tensor& from, std::span<const std::int64_t> rows) {
  if (are_consecutive(rows)) {
    return from.narrowed(0, rows[0], static_cast<std::int64_t>(rows.size()));
  }
  Tensor out = Tensor::zeros(with_count(from.type(), rows.size()));
  if (out.numel() == 0) return out;
  const auto row_bytes =
      static_cast<std::size_t>(out.numel() / out.dims()[0] * size_of(from.dtype()));
  std::byte* to = out.mutable_data();
  const bool lies_in_order = from.is_contiguous();
  for (const std::int64_t row : rows) {
    if (lies_in_order) {
      std::memcpy(to, from.data() + static_cast<std::size_t>(row) * row_bytes, row_bytes);
    } else {
      std::memcpy(to, from.narrowed(0, row, 1).contiguous().data(), row_bytes);
    }
    to += row_bytes;
  }
  return out;
}

}  // namespace

SampleArrays::SampleArrays(std::span<const Array> leaves, std::span<const std::string> names,
                           std::source_location where) {
  if (leaves.empty()) {
    refuse(ErrorCode::Shape, "dataset", "a dataset is made of a tree without arrays", where,
           "give the fields of the batch arrays");
  }
  ricci::eval(leaves, where);
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const Tensor& t = leaves[k].tensor(where);
    if (t.rank() == 0) {
      refuse(ErrorCode::Shape, "dataset",
             fmt::format("{} of a dataset is {}, without an axis that samples lie along",
                         named(names, k), t.type().to_string()),
             where, "what is the same for all samples is no part of a dataset: capture it");
    }
    if (k == 0) count = t.dims()[0];
    if (t.dims()[0] != count) {
      refuse(ErrorCode::Shape, "dataset",
             fmt::format("{} has {} samples, but {} has {}", named(names, 0), count,
                         named(names, k), t.dims()[0]),
             where, "sample i is the i-th slice of every array: their first axes are equal");
    }
    tensors.push_back(t.is_splat() ? t.contiguous() : t);
  }
}

std::vector<Array> SampleArrays::gather(std::span<const std::int64_t> rows) const {
  std::vector<Array> out;
  for (const Tensor& t : tensors) out.emplace_back(gathered(t, rows));
  return out;
}

std::vector<Array> without_first_axis(std::span<const Array> leaves) {
  std::vector<Array> out;
  for (const Array& x : leaves) {
    const Tensor& t = x.tensor();
    out.emplace_back(t.reshaped(StaticDims(t.dims().begin() + 1, t.dims().end())));
  }
  return out;
}

std::vector<Array> stacked(std::span<const std::vector<Array>> samples,
                           std::span<const std::string> names) {
  for (const std::vector<Array>& s : samples) ricci::eval(s);
  std::vector<Array> out;
  for (std::size_t k = 0; k < names.size(); ++k) {
    const Type type = samples[0][k].type();
    Type all = type;
    all.dims.insert(all.dims.begin(), static_cast<std::int64_t>(samples.size()));
    Tensor joined = Tensor::zeros(all);
    std::byte* to = joined.numel() == 0 ? nullptr : joined.mutable_data();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (samples[i].size() != names.size() || samples[i][k].type() != type) {
        refuse(
            ErrorCode::Shape, "dataset",
            fmt::format(
                "{} of a sample is {}, but that of another one in its batch is {}", named(names, k),
                samples[i].size() != names.size() ? "absent" : samples[i][k].type().to_string(),
                type.to_string()),
            std::source_location::current(), "samples of one dataset are of one type");
      }
      const Tensor t = samples[i][k].tensor().contiguous();
      if (t.numel() == 0) continue;
      std::memcpy(to, t.bytes().data(), t.bytes().size());
      to += t.bytes().size();
    }
    out.emplace_back(joined);
  }
  return out;
}

void require_rows(std::span<const std::int64_t> rows, std::int64_t count,
                  std::source_location where) {
  for (const std::int64_t row : rows) {
    if (row >= 0 && row < count) continue;
    refuse(ErrorCode::IndexOutOfRange, "dataset",
           fmt::format("there is no sample {} in a dataset of {}", row, count), where,
           "samples are numbered from 0");
  }
}

std::int64_t count_for(double fraction, std::int64_t count) {
  const DefaultFloatEnvironment floats;
  if (!(fraction >= 0 && fraction <= 1)) {
    throw UserError(ErrorCode::Attr, fmt::format("a dataset is split at {}", fraction),
                    "give what part of it comes first: 0.9");
  }
  return std::min(count,
                  static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(count))));
}

}  // namespace ricci::detail
