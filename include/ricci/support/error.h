// Every failure Ricci reports is one of three exceptions, kept apart on purpose:
//   UserError      the program or the arguments are wrong; says what, where and how to mend it
//   DeviceError    a compiler, driver or library below us refused; carries its log
//   InternalError  we are wrong; carries our own file and line
// The library never prints and never aborts.
//
//   try { add(x, y); }
//   catch (const ricci::UserError& e) { std::puts(e.what()); }   // error[shape.add_c2]: ...
#pragma once

#include <cstdint>
#include <exception>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace ricci {

/// What kind of fault an error reports. The text code (`shape.concat_c2`) starts with this name.
enum class ErrorCode : std::uint8_t {
  Shape,
  DType,
  Attr,
  Name,
  Parse,
  Refused,
  NoGradient,
  IndexOutOfRange,
  SingularMatrix,
  NeedsStaticDim,
  UnboundedLoop,
  WrongStage,
  LowerFailed,
  UnsupportedOnBackend,
  OutOfMemory,
  Busy,     ///< what serves one caller at a time is in use by another
  Stopped,  ///< on request, see stop.h
  File,
  Device,
  Internal,
};

/// The snake_case name of a code, as messages print it.
[[nodiscard]] std::string_view name(ErrorCode code) noexcept;

/// A place in the user's source: a C++ file (from std::source_location) or a text graph.
struct SourcePosition {
  std::string file;
  std::uint32_t line = 0;    ///< 1-based; 0 means unknown
  std::uint32_t column = 0;  ///< 1-based; 0 means unknown
  std::string text;          ///< the offending line, when it is at hand

  [[nodiscard]] bool known() const noexcept { return line != 0; }
  /// `file:line:column`, leaving out what is not known.
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] static SourcePosition from(const std::source_location& where);
};

/// The parts of a message; `Error::what()` is their rendering.
struct Diagnostic {
  ErrorCode code = ErrorCode::Internal;
  std::string detail;   ///< after the code: `concat_c2` in `shape.concat_c2`; may be empty
  std::string message;  ///< one sentence of fact, lower case, no final period
  SourcePosition where;
  std::vector<std::string> notes;
  std::string help;

  /// `shape.concat_c2`
  [[nodiscard]] std::string full_code() const;
  /// The whole message, several lines, as users see it.
  [[nodiscard]] std::string to_string() const;
};

/// Base of all exceptions thrown by Ricci.
class Error : public std::exception {
 public:
  explicit Error(std::vector<Diagnostic> diagnostics);
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] ErrorCode code() const noexcept { return diagnostics_.front().code; }
  [[nodiscard]] const Diagnostic& diagnostic() const noexcept { return diagnostics_.front(); }
  /// All faults found; the verifier reports every one it sees.
  [[nodiscard]] const std::vector<Diagnostic>& diagnostics() const noexcept { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
  std::string text_;
};

class UserError : public Error {
 public:
  explicit UserError(Diagnostic d) : Error({std::move(d)}) {}
  explicit UserError(std::vector<Diagnostic> ds) : Error(std::move(ds)) {}
  UserError(ErrorCode code, std::string message, std::string help = {});
};

class DeviceError : public Error {
 public:
  explicit DeviceError(std::string message, std::string log = {});
};

class InternalError : public Error {
 public:
  explicit InternalError(std::string message,
                         std::source_location where = std::source_location::current());
};

/// Throws InternalError unless a claim about our own code holds.
inline void check_internal(bool claim, const char* message,
                           std::source_location where = std::source_location::current()) {
  if (!claim) throw InternalError(message, where);
}

}  // namespace ricci
