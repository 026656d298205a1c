#include "ricci/support/error.h"

#include <fmt/format.h>

#include "ricci/support/text.h"

namespace ricci {
namespace {

// Types and names of thousands of values say no more than those of the first. Notes may be logs.
constexpr std::size_t MostShown = 2000;
constexpr std::size_t MostNoteShown = 20'000;

}  // namespace

std::string_view name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::Shape: return "shape";
    case ErrorCode::DType: return "dtype";
    case ErrorCode::Attr: return "attr";
    case ErrorCode::Name: return "name";
    case ErrorCode::Parse: return "parse";
    case ErrorCode::Refused: return "refused";
    case ErrorCode::NoGradient: return "no_gradient";
    case ErrorCode::IndexOutOfRange: return "index_out_of_range";
    case ErrorCode::SingularMatrix: return "singular_matrix";
    case ErrorCode::NeedsStaticDim: return "needs_static_dim";
    case ErrorCode::UnboundedLoop: return "unbounded_loop";
    case ErrorCode::WrongStage: return "wrong_stage";
    case ErrorCode::LowerFailed: return "lower_failed";
    case ErrorCode::UnsupportedOnBackend: return "unsupported_on_backend";
    case ErrorCode::OutOfMemory: return "out_of_memory";
    case ErrorCode::Busy: return "busy";
    case ErrorCode::Stopped: return "stopped";
    case ErrorCode::File: return "file";
    case ErrorCode::Device: return "device";
    case ErrorCode::Internal: return "internal";
  }
  return "unknown";
}

std::string SourcePosition::to_string() const {
  if (!known()) return file;
  if (column == 0) return fmt::format("{}:{}", file, line);
  return fmt::format("{}:{}:{}", file, line, column);
}

SourcePosition SourcePosition::from(const std::source_location& where) {
  return {.file = where.file_name(), .line = where.line(), .column = where.column(), .text = {}};
}

std::string Diagnostic::full_code() const {
  return detail.empty() ? std::string(name(code)) : fmt::format("{}.{}", name(code), detail);
}

std::string Diagnostic::to_string() const {
  std::string out = fmt::format("error[{}]: {}", full_code(), shortened(message, MostShown));
  if (where.known() || !where.file.empty()) {
    out += fmt::format("\n  --> {}", where.to_string());
    if (!where.text.empty()) out += fmt::format("    {}", where.text);
  }
  for (const std::string& note : notes) {
    out += fmt::format("\n  note: {}", shortened(note, MostNoteShown));
  }
  if (!help.empty()) out += fmt::format("\n  help: {}", shortened(help, MostShown));
  return out;
}

Error::Error(std::vector<Diagnostic> diagnostics) : diagnostics_(std::move(diagnostics)) {
  if (diagnostics_.empty()) diagnostics_.emplace_back();
  for (const Diagnostic& d : diagnostics_) {
    if (!text_.empty()) text_ += '\n';
    text_ += d.to_string();
  }
}

UserError::UserError(ErrorCode code, std::string message, std::string help)
    : UserError(Diagnostic{.code = code,
                           .detail = {},
                           .message = std::move(message),
                           .where = {},
                           .notes = {},
                           .help = std::move(help)}) {}

DeviceError::DeviceError(std::string message, std::string log)
    : Error({Diagnostic{.code = ErrorCode::Device,
                        .detail = {},
                        .message = std::move(message),
                        .where = {},
                        .notes = log.empty() ? std::vector<std::string>{}
                                             : std::vector<std::string>{std::move(log)},
                        .help = {}}}) {}

InternalError::InternalError(std::string message, std::source_location where)
    : Error({Diagnostic{.code = ErrorCode::Internal,
                        .detail = {},
                        .message = std::move(message),
                        .where = SourcePosition::from(where),
                        .notes = {},
                        .help = "this is a fault in Ricci; please report it with the program"}}) {}

}  // namespace ricci
