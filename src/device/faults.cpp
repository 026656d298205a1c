#include "device/faults.h"

#include <new>
#include <stdexcept>

#include <fmt/format.h>

#include "ricci/support/error.h"

namespace ricci::device {

namespace {

std::string words_for(const KernelFault& fault) {
  switch (fault.kind) {
    case loop::FaultKind::Division: return "integer division by zero";
    case loop::FaultKind::Remainder: return "integer remainder by zero";
    case loop::FaultKind::Exponent:
      return fmt::format("integer power with exponent {}", fault.number);
    case loop::FaultKind::None:
    case loop::FaultKind::Index: break;
  }
  return fmt::format("index {} is outside [0, {})", fault.number, fault.limit);
}

}  // namespace

void fail_launch(const KernelFault& fault, const Origin& launch) {
  const bool index = fault.kind == loop::FaultKind::Index;
  Diagnostic d{index ? ErrorCode::IndexOutOfRange : ErrorCode::Attr,
               {},
               words_for(fault),
               launch.where,
               {},
               {}};
  d.notes.push_back("in " + launch.label);
  throw UserError(std::move(d));
}

void fail_kernel(const std::exception& error, std::string_view op, const Origin& step) {
  // A container that was to have more elements than any memory is another want of memory.
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                      dynamic_cast<const std::length_error*>(&error) != nullptr;
  Diagnostic d{memory ? ErrorCode::OutOfMemory : ErrorCode::Refused,
               std::string(op),
               memory ? fmt::format("there is no room to compute {}", step.label)
                      : fmt::format("the kernel of '{}' failed: {}", op, error.what()),
               step.where,
               {},
               {}};
  throw UserError(std::move(d));
}

void fail_call(const Program& program, const CallStep& call, const Origin& step) {
  const std::string_view op = program.reference_of(call).name();
  try {
    throw;
  } catch (const UserError& error) {
    if (error.code() == ErrorCode::Stopped) throw;
    std::vector<Diagnostic> ds = error.diagnostics();
    Diagnostic& d = ds.front();
    // What is attached has named itself; the ops it is attached to report nothing of their own.
    const bool own = !call.before && !call.after;
    if (own && d.detail.empty()) d.detail = op;
    if (!d.where.known()) d.where = step.where;
    throw UserError(std::move(ds));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail_kernel(error, op, step);
  }
}

}  // namespace ricci::device
