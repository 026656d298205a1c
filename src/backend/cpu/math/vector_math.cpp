// Which function a kind is.
#include "backend/cpu/math/vector_math.h"

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "backend/cpu/math/vector_math_functions.h"

namespace ricci::cpu {
namespace {

using vm::Real;

/// Our functions say themselves where a multiplication and an addition may fuse: flags the builder
/// carries for the code around them do not apply.
class PlainArithmetic {
 public:
  explicit PlainArithmetic(llvm::IRBuilderBase& builder) : guard_(builder) {
    builder.clearFastMathFlags();
  }

 private:
  llvm::IRBuilderBase::FastMathFlagGuard guard_;
};

[[noreturn]] void not_defined(std::string_view name) {
  throw InternalError(fmt::format("'{}' is not defined for real numbers", name));
}

vm::Lanes lanes_for(llvm::IRBuilderBase& builder, llvm::Value* x, const TargetInfo& target) {
  llvm::Type* scalar = x->getType()->getScalarType();
  check_internal(scalar->isFloatTy() || scalar->isDoubleTy(), "vector math works on f32 and f64");
  return {builder, target, x->getType(), scalar->isFloatTy()};
}

llvm::Value* finite_lanes(Real x) { return (vm::abs(x) < vm::Infinity).v; }

}  // namespace

llvm::Value* emit_unary(llvm::IRBuilderBase& builder, UnaryKind kind, llvm::Value* value,
                        const TargetInfo& target) {
  const PlainArithmetic plain(builder);
  const vm::Lanes lanes = lanes_for(builder, value, target);
  const Real x(lanes, value);
  switch (kind) {
    case UnaryKind::Gelu: return vm::gelu(x).v;
    case UnaryKind::GeluApprox: return vm::gelu_approx(x).v;
    case UnaryKind::Silu: return vm::silu(x).v;
    case UnaryKind::Relu: return vm::relu(x).v;
    case UnaryKind::Sigmoid: return vm::sigmoid(x).v;
    case UnaryKind::Tanh: return vm::tanh(x).v;
    case UnaryKind::Exp: return vm::exp(x).v;
    case UnaryKind::Log: return vm::log(x).v;
    case UnaryKind::Sqrt: return vm::sqrt(x).v;
    case UnaryKind::Rsqrt: return (1.0 / vm::sqrt(x)).v;
    case UnaryKind::Neg: return (-x).v;
    case UnaryKind::Abs: return vm::abs(x).v;
    case UnaryKind::Sin: return vm::sin(x).v;
    case UnaryKind::Cos: return vm::cos(x).v;
    case UnaryKind::Tan: return vm::tan(x).v;
    case UnaryKind::Atan: return vm::atan(x).v;
    case UnaryKind::Round: return vm::round(x).v;
    case UnaryKind::Erf: return vm::erf(x).v;
    case UnaryKind::Erfc: return vm::erfc(x).v;
    case UnaryKind::Expm1: return vm::expm1(x).v;
    case UnaryKind::Log1p: return vm::log1p(x).v;
    case UnaryKind::Exp2: return vm::exp2(x).v;
    case UnaryKind::Log2: return vm::log2(x).v;
    case UnaryKind::Sinh: return vm::sinh(x).v;
    case UnaryKind::Cosh: return vm::cosh(x).v;
    case UnaryKind::Asin: return vm::asin(x).v;
    case UnaryKind::Acos: return vm::acos(x).v;
    case UnaryKind::Asinh: return vm::asinh(x).v;
    case UnaryKind::Acosh: return vm::acosh(x).v;
    case UnaryKind::Atanh: return vm::atanh(x).v;
    case UnaryKind::Softplus: return vm::softplus(x).v;
    case UnaryKind::LogSigmoid: return (-vm::softplus(-x)).v;
    case UnaryKind::Elu: return vm::elu(x).v;
    case UnaryKind::Selu: return vm::selu(x).v;
    case UnaryKind::HardSigmoid: return vm::hard_sigmoid(x).v;
    case UnaryKind::HardSwish: return vm::hard_swish(x).v;
    case UnaryKind::Mish: return vm::mish(x).v;
    case UnaryKind::Softsign: return vm::softsign(x).v;
    case UnaryKind::Square: return (x * x).v;
    case UnaryKind::Reciprocal: return (1.0 / x).v;
    case UnaryKind::Sign: return vm::sign(x).v;
    case UnaryKind::Floor: return vm::floor(x).v;
    case UnaryKind::Ceil: return vm::ceil(x).v;
    case UnaryKind::Trunc: return vm::trunc(x).v;
    case UnaryKind::Conjugate: return value;
    case UnaryKind::IsNan: return x.is_nan().v;
    case UnaryKind::IsFinite: return finite_lanes(x);
    case UnaryKind::Imag:
    case UnaryKind::LogicalNot:
    case UnaryKind::BitwiseNot: break;
  }
  not_defined(name_of(kind));
}

llvm::Value* emit_exp_not_positive(llvm::IRBuilderBase& builder, llvm::Value* value,
                                   const TargetInfo& target) {
  const PlainArithmetic plain(builder);
  const vm::Lanes lanes = lanes_for(builder, value, target);
  return vm::exp_not_positive(Real(lanes, value)).v;
}

llvm::Value* emit_binary(llvm::IRBuilderBase& builder, BinaryKind kind, llvm::Value* left,
                         llvm::Value* right, const TargetInfo& target) {
  const PlainArithmetic plain(builder);
  const vm::Lanes lanes = lanes_for(builder, left, target);
  const Real a(lanes, left);
  const Real b(lanes, right);
  switch (kind) {
    case BinaryKind::Add: return (a + b).v;
    case BinaryKind::Sub: return (a - b).v;
    case BinaryKind::Mul: return (a * b).v;
    case BinaryKind::Div: return (a / b).v;
    case BinaryKind::Max: return vm::maximum(a, b).v;
    case BinaryKind::Min: return vm::minimum(a, b).v;
    case BinaryKind::Pow: return vm::pow(a, b).v;
    case BinaryKind::Rem: return vm::rem(a, b).v;
    case BinaryKind::Atan2: return vm::atan2(a, b).v;
    case BinaryKind::Hypot: return vm::hypot(a, b).v;
    case BinaryKind::MakeComplex:
    case BinaryKind::LogicalAnd:
    case BinaryKind::LogicalOr:
    case BinaryKind::LogicalXor:
    case BinaryKind::BitwiseAnd:
    case BinaryKind::BitwiseOr:
    case BinaryKind::BitwiseXor:
    case BinaryKind::ShiftLeft:
    case BinaryKind::ShiftRight: break;
  }
  not_defined(name_of(kind));
}

}  // namespace ricci::cpu
