#include "schedule/program_bytes.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "ricci/compiler/schedule/verify.h"
#include "ricci/op/ops.h"
#include "ricci/op/table.h"
#include "ricci/support/checked.h"

#include "schedule/archive.h"
#include "schedule/calls.h"
#include "schedule/loop_fields.h"

namespace ricci::schedule {

// Descriptions of all that a program is made of, found by their arguments' types.

template <class A>
static void fields(A& a, Either<DType> auto& d) {
  a.bounded(d, static_cast<std::int64_t>(AllDTypes.size()) - 1);
}

template <class A>
static void fields(A& a, Either<Type> auto& t) {
  StaticDims dims;
  if constexpr (!A::reading) dims = t.static_dims();
  a(t.dtype, dims);
  if constexpr (A::reading) {
    std::optional<std::int64_t> bytes = size_of(t.dtype);
    for (const std::int64_t n : dims) {
      if (n < 0) a.fail("a size is negative");
      if (bytes) bytes = try_mul(*bytes, std::max<std::int64_t>(n, 1));
    }
    if (!bytes) a.fail("an array is larger than any memory");
    t.dims.assign(dims.begin(), dims.end());
  }
}

// Elements of an array, where they lie when that is aligned well enough.
static Tensor read_elements(ArchiveReader& a, const Type& type) {
  const auto count = static_cast<std::size_t>(*type.numel() * size_of(type.dtype));
  const std::span<const std::byte> bytes = a.raw(count);
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % ArchiveAlignment != 0) {
    return Tensor::from_bytes(type, bytes);
  }
  return Tensor::borrow(type, bytes.data(), row_major_strides(type.static_dims()), nullptr);
}

static void fields(ArchiveWriter& a, const std::shared_ptr<const Tensor>& t) {
  a(t->type());
  a.raw(t->contiguous().bytes());
}
static void fields(ArchiveReader& a, std::shared_ptr<const Tensor>& t) {
  Type type;
  a(type);
  t = std::make_shared<const Tensor>(read_elements(a, type));
}

template <class A>
static void fields(A& a, Either<Dim> auto& d) {
  std::int64_t value = 0;
  if constexpr (!A::reading) value = d.value();
  a(value);
  if constexpr (A::reading) d = value;
}
template <class A>
static void fields(A& a, Either<Real> auto& r) {
  a(r.value);
}
static void fields(ArchiveWriter& a, const Bytes& b) {
  a(b.data.size());
  a.raw(b.data);
}
static void fields(ArchiveReader& a, Bytes& b) {
  std::size_t count = 0;
  a(count);
  const auto bytes = a.raw(count);
  b.data.assign(bytes.begin(), bytes.end());
}
template <class A>
static void fields(A&, Either<std::monostate> auto&) {}

template <class A>
static void fields(A& a, Either<AttrValue> auto& v);
template <class A>
static void fields(A& a, Either<Enumerator> auto& e) {
  a(e.name, e.args);
}
template <class A>
static void fields(A& a, Either<NamedAttr> auto& n) {
  a(n.name, n.value);
}

// Which alternative, then the alternative.
template <class... T>
static void write_variant(ArchiveWriter& a, const std::variant<T...>& v) {
  a(v.index());
  std::visit([&](const auto& alternative) { a(alternative); }, v);
}
template <class... T>
static void read_variant(ArchiveReader& a, std::variant<T...>& v) {
  std::size_t index = 0;
  a.bounded(index, sizeof...(T) - 1);
  std::size_t i = 0;
  const auto take = [&]<class Alternative>() {
    if (i++ != index) return;
    Alternative value{};
    a(value);
    v = std::move(value);
  };
  (take.template operator()<T>(), ...);
}

template <class A>
static void either_of(A& a, auto& variant) {
  if constexpr (A::reading) {
    read_variant(a, variant);
  } else {
    write_variant(a, variant);
  }
}

template <class A>
static void fields(A& a, Either<AttrValue> auto& v) {
  either_of(a, v.value);
}

static void fields(ArchiveWriter& a, const Op& op) {
  if (op.op_class() == OpClass::Custom) {
    throw UserError(ErrorCode::Refused,
                    fmt::format("'{}' is an op of this process and cannot be stored in a program",
                                op.mnemonic()),
                    "write it with the built-in ops");
  }
  a(std::string(op.info().name), op.attrs());
}
static void fields(ArchiveReader& a, Op& op) {
  std::string name;
  std::vector<NamedAttr> attrs;
  a(name, attrs);
  const auto found = std::ranges::find(
      all_ops(), name, [](const OpDescriptor& d) { return std::string(d.info->name); });
  if (found == all_ops().end()) a.fail(fmt::format("no op is called '{}'", name));
  try {
    op = found->make(attrs);
  } catch (const Rejection& rejection) {
    a.fail(rejection.message);
  } catch (const UserError& error) {
    a.fail(error.diagnostic().message);
  }
}

template <class A>
static void fields(A& a, Either<Buffer> auto& b) {
  a.bounded(b.role, static_cast<std::int64_t>(Buffer::Role::Seed));
  a(b.dtype);
  a.bounded(b.elements, std::numeric_limits<std::int64_t>::max() / 64);
  a(b.index, b.offset);
  if (b.role != Buffer::Role::Constant) return;
  if constexpr (A::reading) {
    b.constant = read_elements(a, {b.dtype, {b.elements}});
  } else {
    a.raw({b.constant.data(), static_cast<std::size_t>(b.bytes())});
  }
}

template <class A>
static void fields(A& a, Either<loop::Layout> auto& l) {
  a(l.offset, l.strides);
}
template <class A>
static void fields(A& a, Either<BufferView> auto& v) {
  a(v.buffer, v.type, v.layout);
}

template <class A>
static void fields(A& a, Either<loop::Argument> auto& arg) {
  a(arg.dtype);
  a.bounded(arg.role, static_cast<std::int64_t>(loop::ArgumentRole::Local));
  a.bounded(arg.elements, std::numeric_limits<std::int64_t>::max() / 64);
}

// Where, for the verifier; what is added up is machine code.
template <class A>
static void fields(A& a, Either<loop::Accumulator> auto& acc) {
  a(acc.per_element, acc.argument, acc.local, acc.running);
}

// How the work of a kernel is cut and what it is given; what it computes is machine code.
template <class A>
static void fields(A& a, Either<loop::Kernel> auto& k) {
  a(k.name, k.extents, k.kept, k.outer, k.arguments, k.chunks, k.flat, k.work, k.accumulators);
}

template <class A>
static void fields(A& a, Either<SourcePosition> auto& p) {
  a(p.file, p.line, p.column);
}
// Nodes are those of a graph that is not kept, and reasons are for reports.
template <class A>
static void fields(A& a, Either<Origin> auto& o) {
  a(o.label, o.where);
}

template <class A>
static void fields(A& a, Either<Launch> auto& l) {
  a(l.kernel, l.buffers, l.from);
}
template <class A>
static void fields(A& a, Either<KernelStep> auto& s) {
  a(s.launches);
}
template <class A>
static void attached(A& a, bool there, auto& launch) {
  if constexpr (A::reading) {
    if (there) launch.emplace();
  }
  if (there) a(*launch);
}

static void reference_fields(ArchiveWriter& a, const std::vector<loop::Reference>& all) {
  a(all.size());
  for (const loop::Reference& r : all) a(op_of(r));
}
static void reference_fields(ArchiveReader& a, std::vector<loop::Reference>& all) {
  std::size_t count = 0;
  a(count);
  for (std::size_t i = 0; i < count; ++i) {
    Op op{op::Iota{}};
    a(op);
    all.emplace_back(std::move(op));
  }
}

// Until the roles are found: any that is not the host's.
using SomeRole = loop::MatrixProduct;

// The role of a call is not kept: it follows from the op and the types, so that bytes cannot say
// one thing and mean another. One number says whether a kernel runs first, and whether the host
// runs the call; which role it has otherwise is found when all is read.
template <class A>
static void fields(A& a, Either<CallStep> auto& s) {
  a(s.reference, s.operands, s.results);
  const bool on_host = std::holds_alternative<loop::HostCall>(s.call);
  int how = (s.before ? 1 : 0) + (on_host ? 2 : 0);
  a.bounded(how, 3);
  attached(a, how % 2 == 1, s.before);
  bool after = s.after.has_value();
  a(after);
  attached(a, after, s.after);
  if constexpr (A::reading) {
    if (how < 2) s.call.template emplace<SomeRole>();
  }
}

// Finds the roles of calls that have been read.
static void find_roles(Program& program) {
  for (Step& step : program.steps) {
    auto* call = std::get_if<CallStep>(&step.what);
    if (call == nullptr) continue;
    if (call->reference >= program.references.size()) {
      ArchiveReader::fail("a call computes what nothing says");
    }
    const Op& op = op_of(program.reference_of(*call));
    if (auto fault = find_type_fault(op, call->operands, call->results, program.registry())) {
      ArchiveReader::fail(std::move(*fault));
    }
    if (std::holds_alternative<loop::HostCall>(call->call)) continue;
    call->call = call_on(op, call->operands, call->results);
  }
}

template <class A>
static void fields(A& a, Either<Program> auto& p);
static void fields(ArchiveWriter& a, const std::shared_ptr<const Program>& p) { a(*p); }
static void fields(ArchiveReader& a, std::shared_ptr<const Program>& p) {
  auto made = std::make_shared<Program>();
  a(*made);
  p = std::move(made);
}

template <class A>
static void fields(A&, Either<Branch> auto&) {}
template <class A>
static void fields(A& a, Either<loop::Read> auto& r) {
  either_of(a, r);
}
template <class A>
static void fields(A& a, Either<loop::Storage> auto& s) {
  a(s.dtype);
  a.bounded(s.elements, std::numeric_limits<std::int64_t>::max() / 64);
  bool constant = s.constant.has_value();
  a(constant);
  if (!constant) return;
  if constexpr (A::reading) {
    s.constant = read_elements(a, {s.dtype, {s.elements}});
  } else {
    a.raw(s.constant->contiguous().bytes());
  }
}
template <class A>
static void fields(A& a, Either<LoopStep> auto& s) {
  a(s.loop, s.operands, s.results);
}
template <class A>
static void fields(A& a, Either<ControlStep> auto& s) {
  either_of(a, s.how);
  a(s.operands, s.results, s.bodies, s.workspace, s.carries);
}

template <class A>
static void fields(A& a, Either<Step> auto& s) {
  a(s.label, s.where);
  if constexpr (A::reading) {
    std::size_t kind = 0;
    a.bounded(kind, 3);
    if (kind == 0) s.what = KernelStep{};
    if (kind == 1) s.what = CallStep{};
    if (kind == 2) s.what = ControlStep{};
    if (kind == 3) s.what = LoopStep{};
  } else {
    a.bounded(s.what.index(), 3);
  }
  std::visit([&](auto& what) { a(what); }, s.what);
}

template <class A>
static void fields(A& a, Either<Program> auto& p) {
  a(p.name, p.buffers, p.kernels);
  reference_fields(a, p.references);
  a(p.steps, p.inputs, p.outputs, p.arena_bytes, p.live_bytes);
  if constexpr (A::reading) find_roles(p);
}

std::vector<std::byte> to_bytes(const Program& program) {
  ArchiveWriter archive;
  archive(program);
  return sealed(ProgramSeal, archive.take());
}

Program program_from_bytes(std::span<const std::byte> bytes) {
  ArchiveReader archive(opened(ProgramSeal, bytes));
  Program program;
  archive(program);
  if (archive.left() > 0) ArchiveReader::fail("something follows it");
  if (std::optional<std::string> fault = find_fault(program)) {
    ArchiveReader::fail(std::move(*fault));
  }
  return program;
}

}  // namespace ricci::schedule
