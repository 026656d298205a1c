// Builds the op table by walking the one list: the only file that instantiates something per op
// for everything that is not a rule.
#include "ricci/op/table.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "ricci/op/ops.h"
#include "ricci/support/checked.h"
#include "ricci/support/hash.h"
#include "ricci/support/limits.h"
#include "ricci/support/text.h"

#include "op/attr_ranges.h"
#include "op/infer_rules.h"

namespace ricci {
namespace {

std::vector<Parameter> parse_signature(std::string_view list) {
  std::vector<Parameter> out;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view entry = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    Parameter p;
    if (entry.ends_with('?')) {
      p.optional = true;
      entry.remove_suffix(1);
    }
    if (entry.ends_with("...")) {
      p.variadic = true;
      entry.remove_suffix(3);
    }
    p.name = entry;
    if (!p.name.empty()) out.push_back(std::move(p));
  }
  return out;
}

ErrorCode constraint_code(std::string_view text) {
  for (const ErrorCode c :
       {ErrorCode::Shape, ErrorCode::DType, ErrorCode::Attr, ErrorCode::Name,
        ErrorCode::IndexOutOfRange, ErrorCode::SingularMatrix, ErrorCode::NeedsStaticDim}) {
    if (text == name(c)) return c;
  }
  throw InternalError(fmt::format("unknown constraint code '{}'", text));
}

std::vector<Constraint> parse_constraints(std::string_view lines) {
  std::vector<Constraint> out;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const std::size_t space = line.find(' ');
    const std::size_t colon = line.find(": ");
    check_internal(space < colon && colon != std::string_view::npos, "malformed constraint line");
    out.push_back({std::string(line.substr(0, space)),
                   constraint_code(line.substr(space + 1, colon - space - 1)),
                   std::string(line.substr(colon + 2))});
  }
  return out;
}

[[noreturn]] void reject_attr(const OpInfo& info, std::string_view label, std::string message,
                              std::string help = {}) {
  throw Rejection{ErrorCode::Attr, fmt::format("{}_{}", info.name, label), std::move(message),
                  std::move(help)};
}

const NamedAttr* find_attr(std::span<const NamedAttr> attrs, std::string_view name) {
  const auto it = std::ranges::find(attrs, name, &NamedAttr::name);
  return it == attrs.end() ? nullptr : &*it;
}

// Attributes the op does not have are refused, not ignored.
void check_known(const OpDescriptor& d, std::span<const NamedAttr> attrs) {
  for (const NamedAttr& a : attrs) {
    if (std::ranges::count(attrs, a.name, &NamedAttr::name) > 1) {
      reject_attr(*d.info, "twice",
                  fmt::format("the attribute '{}' of '{}' is given twice", a.name, d.info->name));
    }
    if (d.field(a.name) != nullptr) continue;
    std::vector<std::string> known;
    known.reserve(d.fields.size());
    for (const FieldInfo& f : d.fields) known.push_back(f.name);
    const auto close = nearest(a.name, known);
    reject_attr(*d.info, "unknown",
                fmt::format("'{}' has no attribute '{}'", d.info->name, shortened(a.name)),
                close           ? fmt::format("did you mean '{}'?", *close)
                : known.empty() ? "it has none"
                                : "it has: " + join(known, ", "));
  }
}

void check_arity(const OpDescriptor& d, const Op& op, std::size_t given) {
  std::size_t required = 0;
  std::size_t most = 0;
  bool variadic = false;
  for (const Parameter& p : d.operands) {
    variadic = variadic || p.variadic;
    required += p.variadic || p.optional ? 0 : 1;
    most += p.variadic ? 0 : 1;
  }
  if (given >= required && (variadic || given <= most)) return;
  const std::string range = variadic           ? fmt::format("at least {}", required)
                            : required == most ? std::to_string(required)
                                               : fmt::format("{} to {}", required, most);
  throw Rejection{
      ErrorCode::Attr,
      fmt::format("{}_arity", d.info->name),
      fmt::format("'{}' takes {} operand{}{}, but is given {}", op.mnemonic(), range,
                  range == "1" ? "" : "s",
                  d.operands.empty() ? "" : fmt::format(" ({})", d.info->operands), given),
      {}};
}

void check_roles(const OpDescriptor& d, std::span<const BodySignature> bodies) {
  const auto fail = [&](std::string message) {
    reject_attr(*d.info, "bodies", std::move(message));
  };
  for (const Parameter& role : d.bodies) {
    const auto given = std::ranges::count(bodies, role.name, &BodySignature::role);
    if (given == 0 && !role.optional) {
      fail(fmt::format("'{}' needs a body '{}'", d.info->name, role.name));
    }
    if (given > 1) fail(fmt::format("body '{}' of '{}' is given twice", role.name, d.info->name));
  }
  for (const BodySignature& body : bodies) {
    if (std::ranges::find(d.bodies, body.role, &Parameter::name) == d.bodies.end()) {
      fail(fmt::format("'{}' has no body '{}'", d.info->name, body.role));
    }
  }
}

// A type is written behind every value of it, so that a long one makes long text and messages.
void check_length(const OpDescriptor& d, const Type& t) {
  if (t.rank() > MostRank) {
    throw Rejection{ErrorCode::Shape, fmt::format("{}_rank", d.info->name),
                    fmt::format("'{}' would give a value of rank {}", d.info->name, t.rank()),
                    fmt::format("a value has at most {} axes", MostRank)};
  }
  if (t.is_static()) return;
  const std::size_t bytes = t.to_string().size();
  if (bytes <= MostTypeBytes) return;
  throw Rejection{
      ErrorCode::Shape, fmt::format("{}_type", d.info->name),
      fmt::format("'{}' would give a type of {} characters", d.info->name, bytes),
      fmt::format("a type has at most {}; give the sizes shorter names", MostTypeBytes)};
}

// Results are refused where they are made when a size is out of range, or when 64 bits cannot count
// their bytes. An empty one counts as if its zeros were ones: its strides are computed like that.
void check_sizes(const OpDescriptor& d, const Inferred& inferred) {
  constexpr std::int64_t MostBytes = std::int64_t{1} << 62;  // rounded up it still fits
  const auto refuse = [&](std::string message, std::string help = {}) {
    throw Rejection{ErrorCode::Shape, fmt::format("{}_size", d.info->name), std::move(message),
                    std::move(help)};
  };
  for (const Type& t : inferred.types) {
    check_length(d, t);
    std::optional<std::int64_t> bytes = size_of(t.dtype);
    for (const Dim& n : t.dims) {
      const auto size = n.try_value();
      if (!size) continue;
      if (*size < 0) refuse(fmt::format("{} has a negative size", t.to_string()));
      if (*size > LargestSize) {
        refuse(fmt::format("{} has a size that is too large", t.to_string()),
               fmt::format("a size is at most {}", LargestSize));
      }
      if (bytes) bytes = try_mul(*bytes, std::max<std::int64_t>(*size, 1));
    }
    if (!bytes || *bytes > MostBytes) {
      refuse(fmt::format("{} has more bytes than 64 bits can count", t.to_string()));
    }
  }
}

// A fault of arithmetic on sizes knows neither op nor place; a rejection learns both.
template <class F>
decltype(auto) named(const OpDescriptor& d, F&& f) {
  try {
    return f();
  } catch (const UserError& e) {
    const Diagnostic& fault = e.diagnostic();
    if (!fault.detail.empty() || fault.where.known()) throw;
    throw Rejection{fault.code, std::string(d.info->name), fault.message, fault.help};
  }
}

// Fills one struct's fields from named values.
struct FieldReader {
  const OpInfo& info;
  std::span<const NamedAttr> attrs;

  template <class T>
  void operator()(std::string_view name, T& member, std::string_view,
                  Presence presence = Presence::Defaulted, Range = Range::Usual) const {
    const NamedAttr* given = find_attr(attrs, name);
    if (given == nullptr) {
      if (presence == Presence::Defaulted) return;
      reject_attr(info, "missing", fmt::format("'{}' needs the attribute '{}'", info.name, name),
                  fmt::format("add {{{} = …}} ({})", name, AttrCodec<T>::describe()));
    }
    try {
      member = from_attr<T>(given->value);
    } catch (const AttrMismatch& mismatch) {
      reject_attr(info, "type",
                  fmt::format("attribute '{}' of '{}' cannot be {}", name, info.name,
                              shortened(given->value.to_string())),
                  fmt::format("it is {}", mismatch.expected));
    }
  }
};

// `rank_of(field)` is the rank the field's axes count in.
template <class RankOf>
struct AxisNormalizer {
  const OpInfo& info;
  RankOf rank_of;

  template <class T>
  void operator()(std::string_view name, T& member, std::string_view,
                  Presence = Presence::Defaulted, Range = Range::Usual) const {
    if constexpr (std::is_same_v<T, Axis>) {
      fix(name, member);
    } else if constexpr (std::is_same_v<T, Axes>) {
      for (Axis& a : member) fix(name, a);
    } else if constexpr (std::is_same_v<T, std::optional<Axis>>) {
      if (member) fix(name, *member);
    }
  }
  void fix(std::string_view name, Axis& axis) const {
    const std::size_t rank = rank_of(name);
    const auto fixed = normalized_axis(axis.value, rank);
    if (!fixed) {
      reject_attr(
          info, "axis",
          fmt::format("{} {} of '{}' is outside rank {}", name, axis.value, info.name, rank),
          rank == 0
              ? std::string("a rank-0 value has no axes")
              : fmt::format("axes run from {} to {}", -static_cast<std::int64_t>(rank), rank - 1));
    }
    axis = *fixed;
  }
};

template <class T>
OpDescriptor describe(OpClass op_class) {
  OpDescriptor d;
  d.kind = kind_of<T>;
  d.op_class = op_class;
  d.info = &T::info;
  d.operands = parse_signature(T::info.operands);
  d.results = parse_signature(T::info.results);
  d.bodies = parse_signature(T::info.bodies);
  d.constraints = parse_constraints(T::info.constraints);
  d.vjp = vjp_source(op_class, T::info);
  d.jvp = jvp_source(op_class, T::info);
  d.batch = batch_source(op_class, T::info);
  T defaults{};
  T::fields(defaults,
            [&]<class F>(std::string_view name, F& member, std::string_view help,
                         Presence presence = Presence::Defaulted, Range range = Range::Usual) {
              d.fields.push_back({std::string(name), std::string(help), AttrCodec<F>::describe(),
                                  presence, to_attr(member),
                                  std::is_same_v<F, Axis> || std::is_same_v<F, Axes> ||
                                      std::is_same_v<F, std::optional<Axis>>,
                                  range});
            });
  if constexpr (requires { T::named_by_kind; }) {
    for (const std::string_view n : enumerator_names(T{}.kind)) d.family.emplace_back(n);
  }
  d.make = [](std::span<const NamedAttr> attrs) {
    check_known(descriptor(kind_of<T>), attrs);
    T value{};
    T::fields(value, FieldReader{T::info, attrs});
    return Op(std::move(value));
  };
  d.attrs = [](const Op& op) {
    std::vector<NamedAttr> out;
    T::fields(*op.as<T>(), [&](std::string_view name, const auto& member, std::string_view,
                               Presence = Presence::Defaulted, Range = Range::Usual) {
      out.push_back({std::string(name), to_attr(member)});
    });
    return out;
  };
  d.equal = [](const Op& a, const Op& b) { return *a.as<T>() == *b.as<T>(); };
  d.normalize = [](const Op& op, std::span<const Type> operands) {
    T value = *op.as<T>();
    const auto rank_of = [&](std::string_view field) -> std::size_t {
      if constexpr (requires { T::axis_rank(value, operands, field); }) {
        return T::axis_rank(value, operands, field);
      } else if constexpr (requires { T::axis_rank(value, operands); }) {
        return T::axis_rank(value, operands);
      } else {
        return operands.empty() ? 0 : operands[0].rank();
      }
    };
    T::fields(value, AxisNormalizer<decltype(rank_of)>{T::info, rank_of});
    if constexpr (requires { value.normalize(operands); }) value.normalize(operands);
    return Op(std::move(value));
  };
  d.check_ranges = [](const Op& op, std::span<const Type> operands) {
    T::fields(*op.as<T>(), RangeCheck{T::info, operands});
  };
  d.infer = [](const Op& op, const InferContext& context) { return infer(*op.as<T>(), context); };
  return d;
}

std::vector<OpDescriptor> build_table() {
  std::vector<OpDescriptor> table;
  table.reserve(OpCount);
#define RICCI_LEAF(Type, builder) table.push_back(describe<op::Type>(OpClass::Leaf));
#define RICCI_PRIMITIVE(Type, builder) table.push_back(describe<op::Type>(OpClass::Primitive));
#define RICCI_PRIMITIVE_FAMILY RICCI_PRIMITIVE
#define RICCI_STRUCTURED(Type, builder) table.push_back(describe<op::Type>(OpClass::Structured));
#define RICCI_STRUCTURED_FAMILY RICCI_STRUCTURED
#define RICCI_COMPOSITE(Type, builder) table.push_back(describe<op::Type>(OpClass::Composite));
#define RICCI_CONTROL(Type, builder) table.push_back(describe<op::Type>(OpClass::Control));
#define RICCI_CUSTOM(Type, builder) table.push_back(describe<op::Type>(OpClass::Custom));
#define RICCI_BLOCK(Type, builder) table.push_back(describe<op::Type>(OpClass::Block));
#include "ricci/op/list.def"
  return table;
}

const std::vector<OpDescriptor>& table() {
  static const std::vector<OpDescriptor> t = build_table();
  return t;
}

const std::map<std::string, Mnemonic, std::less<>>& mnemonics() {
  static const auto names = [] {
    std::map<std::string, Mnemonic, std::less<>> m;
    for (const OpDescriptor& d : table()) {
      if (d.family.empty()) m.emplace(d.info->name, Mnemonic{d.kind, std::nullopt});
      for (const std::string& member : d.family) m.emplace(member, Mnemonic{d.kind, member});
    }
    return m;
  }();
  return names;
}

}  // namespace

std::string_view name(OpClass c) noexcept {
  switch (c) {
    case OpClass::Leaf: return "leaf";
    case OpClass::Primitive: return "primitive";
    case OpClass::Structured: return "structured";
    case OpClass::Composite: return "composite";
    case OpClass::Control: return "control";
    case OpClass::Custom: return "custom";
    case OpClass::Block: return "block";
  }
  return "unknown";
}

std::string_view name(RuleSource s) noexcept {
  switch (s) {
    case RuleSource::Default: return "default";
    case RuleSource::Written: return "rule";
    case RuleSource::Linear: return "linear";
    case RuleSource::Multilinear: return "multilinear";
    case RuleSource::Elementwise: return "element-wise";
    case RuleSource::Expansion: return "expansion";
    case RuleSource::Zero: return "zero";
    case RuleSource::Leaf: return "leaf";
    case RuleSource::Refused: return "refused";
  }
  return "unknown";
}

const Constraint* OpDescriptor::constraint(std::string_view label) const {
  const auto it = std::ranges::find(constraints, label, &Constraint::label);
  return it == constraints.end() ? nullptr : &*it;
}

const FieldInfo* OpDescriptor::field(std::string_view field_name) const {
  const auto it = std::ranges::find(fields, field_name, &FieldInfo::name);
  return it == fields.end() ? nullptr : &*it;
}

const OpDescriptor& descriptor(OpKind kind) { return table()[static_cast<std::size_t>(kind)]; }
std::span<const OpDescriptor> all_ops() { return table(); }

std::optional<Mnemonic> find_mnemonic(std::string_view name) {
  const auto it = mnemonics().find(name);
  if (it == mnemonics().end()) return std::nullopt;
  return it->second;
}

const std::vector<std::string>& all_mnemonics() {
  static const auto names = [] {
    std::vector<std::string> out;
    for (const auto& [name, unused] : mnemonics()) out.push_back(name);
    return out;
  }();
  return names;
}

std::string parameter_name(std::span<const Parameter> signature, std::size_t index,
                           std::size_t count) {
  // A variadic entry takes what the entries around it leave.
  std::size_t fixed = 0;
  for (const Parameter& p : signature) fixed += p.variadic ? 0 : 1;
  std::size_t position = 0;
  for (const Parameter& p : signature) {
    if (!p.variadic) {
      if (index == position++) return p.name;
      continue;
    }
    const std::size_t taken = count > fixed ? count - fixed : 0;
    if (index < position + taken) return fmt::format("{}[{}]", p.name, index - position);
    position += taken;
  }
  return fmt::format("operand {}", index);
}

OpClass Op::op_class() const noexcept { return descriptor(kind_).op_class; }
const OpInfo& Op::info() const noexcept { return *descriptor(kind_).info; }

std::string_view Op::mnemonic() const {
  const OpDescriptor& d = descriptor(kind_);
  if (d.family.empty()) return d.info->name;
  const std::vector<NamedAttr> fields = attrs();
  const auto* kind = find_attr(fields, "kind")->value.get<Enumerator>();
  return *std::ranges::find(d.family, kind->name);
}

std::vector<NamedAttr> Op::attrs() const { return descriptor(kind_).attrs(*this); }

std::uint64_t Op::hash() const {
  Hasher h;
  h.add(static_cast<std::uint64_t>(kind_));
  for (const NamedAttr& a : attrs()) h.add(a.value.hash());
  return h.value();
}

bool operator==(const Op& a, const Op& b) {
  if (a.kind_ != b.kind_) return false;
  return a.attrs_ == b.attrs_ || descriptor(a.kind_).equal(a, b);
}

Op normalize(const Op& op, std::span<const Type> operands) {
  const OpDescriptor& d = descriptor(op.kind());
  return named(d, [&] { return d.normalize(op, operands); });
}

const BodySignature* InferContext::body(std::string_view role) const {
  const auto it = std::ranges::find(bodies, role, &BodySignature::role);
  return it == bodies.end() ? nullptr : &*it;
}

void InferContext::reject(std::string_view label, std::string message, std::string help) const {
  const OpDescriptor& d = descriptor(op_.kind());
  const Constraint* c = d.constraint(label);
  if (c == nullptr) {
    throw InternalError(fmt::format("'{}' declares no constraint '{}'", d.info->name, label));
  }
  throw Rejection{c->code, fmt::format("{}_{}", d.info->name, label), std::move(message),
                  std::move(help)};
}

void check_signature(const Op& op, std::size_t operands, std::span<const BodySignature> bodies) {
  const OpDescriptor& d = descriptor(op.kind());
  check_arity(d, op, operands);
  check_roles(d, bodies);
}

Inferred infer_types(const Op& op, std::span<const Type> operands,
                     std::span<const BodySignature> bodies, const Registry* registry) {
  const OpDescriptor& d = descriptor(op.kind());
  d.check_ranges(op, operands);
  Inferred out =
      named(d, [&] { return d.infer(op, InferContext(op, operands, bodies, registry)); });
  check_sizes(d, out);
  if (!out.optional_from) {
    std::size_t required = 0;
    bool has_optional = false;
    for (const Parameter& p : d.results) {
      has_optional = has_optional || p.optional;
      required += p.optional ? 0 : 1;
    }
    if (has_optional) out.optional_from = required;
  }
  return out;
}

}  // namespace ricci
