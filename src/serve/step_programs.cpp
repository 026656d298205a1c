#include "serve/step_programs.h"

#include <algorithm>

#include "ricci/array/more.h"
#include "ricci/support/error.h"

namespace ricci::serve {

StepProgram::StepProgram(CompiledGraph graph, const StepSize& size, std::size_t params,
                         const Past& past, std::int64_t vocabulary)
    : tokens(static_cast<std::size_t>(size.rows * size.next)),
      first(static_cast<std::size_t>(size.rows)),
      count(static_cast<std::size_t>(size.rows)),
      graph_(std::move(graph)),
      context_(graph_.make_context()),
      size_(size),
      params_(params),
      logits_(static_cast<std::size_t>(size.rows * vocabulary)),
      inputs_(graph_.inputs().size(), nullptr),
      outputs_(graph_.outputs().size(), nullptr) {
  const Type wanted{DType::F32, {size.rows, vocabulary}};
  if (graph_.outputs()[0] != wanted || inputs_.size() != params + 3 + past.leaves() ||
      outputs_.size() != 1 + past.leaves()) {
    throw UserError(ErrorCode::Shape, "a model's step is not what a generator asks for",
                    "it gives logits " + wanted.to_string() + " and what the past goes on with");
  }
  inputs_[params] = tokens.data();
  inputs_[params + 1] = first.data();
  inputs_[params + 2] = count.data();
  outputs_[0] = logits_.data();
  for (std::size_t i = 0; i < past.leaves(); ++i) {
    given_.emplace_back(past.given_bytes(i, size.next) * static_cast<std::size_t>(size.rows));
    outputs_[1 + i] = given_.back().data();
  }
}

void StepProgram::run(Past& past, std::int64_t row, const StopToken& stop) {
  for (std::size_t i = 0; i < past.leaves(); ++i) inputs_[params_ + 3 + i] = past.data(i, row);
  graph_.run(context_, inputs_, outputs_, {.stop = stop});
  for (std::int64_t r = 0; r < size_.rows; ++r) {
    const std::int64_t counted = count[static_cast<std::size_t>(r)];
    if (counted == 0) continue;
    for (std::size_t i = 0; i < past.leaves(); ++i) {
      const std::byte* given =
          given_[i].data() + past.given_bytes(i, size_.next) * static_cast<std::size_t>(r);
      past.take(i, row + r, first[static_cast<std::size_t>(r)], counted, given);
    }
  }
}

std::span<const float> StepProgram::logits(std::int64_t row) const {
  const std::size_t width = logits_.size() / static_cast<std::size_t>(size_.rows);
  return std::span(logits_).subspan(static_cast<std::size_t>(row) * width, width);
}

void StepProgram::set_params(std::span<const Tensor> params) {
  for (std::size_t i = 0; i < params.size(); ++i) graph_.set_param(i, params[i]);
}

StepPrograms::StepPrograms(detail::StepModel model, const Device& device)
    : model_(std::move(model)), session_(device) {}

StepProgram& StepPrograms::at(const StepSize& size, const Past& past) {
  if (const auto it = programs_.find(size); it != programs_.end()) return it->second;
  // Params as they are: beside each program's own copies of them there would soon be no room.
  CompiledGraph graph =
      session_.compile(model_.trace(size.rows, size.next, size.places), {.pack_params = false});
  for (std::size_t i = 0; i < model_.params.size(); ++i) graph.set_param(i, model_.params[i]);
  return programs_
      .try_emplace(size, std::move(graph), size, model_.params.size(), past, model_.vocabulary)
      .first->second;
}

void StepPrograms::set_params(std::vector<Tensor> params) {
  const auto same = [](const Tensor& a, const Tensor& b) { return a.type() == b.type(); };
  if (!std::ranges::equal(params, model_.params, same)) {
    throw UserError(ErrorCode::Shape, "the params are those of another model",
                    "give a model of the same structure");
  }
  model_.params = std::move(params);
  for (auto& [size, program] : programs_) program.set_params(model_.params);
}

}  // namespace ricci::serve
