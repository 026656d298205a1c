#include "backend/cpu/codegen/random_lanes.h"

#include <array>
#include <limits>
#include <numbers>

#include <llvm/IR/Intrinsics.h>

#include "backend/cpu/math/vector_math.h"
#include "support/philox.h"
#include "type/small_dtype.h"

namespace ricci::cpu {
namespace {

using llvm::Value;
using loop::RandomKind;

constexpr int Rounds = 10;
constexpr int WordsOfBlock = 4;

int words_each(const loop::Instr& i) {
  const int numbers = i.random() == RandomKind::Normal ? 2 : 1;
  return i.dtype == DType::F64 ? 2 * numbers : numbers;
}

// u·width + low in float is what double rounds to: the product of two floats is exact in double. A
// negative width would make a zero of the other sign.
bool is_float_enough(const loop::Instr& i) {
  const double high = i.range[1];
  return i.dtype != DType::F64 && i.range[0] == 0 && high > 0 &&
         static_cast<double>(static_cast<float>(high)) == high;
}

}  // namespace

llvm::Type* RandomLanes::like(Value* shape, llvm::Type* element) const {
  const int n = lanes_of(shape);
  return n == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(n));
}

RandomLanes::Key RandomLanes::key_of(Stream stream) {
  Value* spread = b_.CreateMul(stream.key, b_.getInt64(PhiloxStream::KeyFactor));
  Value* s = b_.CreateAdd(stream.seed, spread);
  return {b_.CreateAnd(s, b_.getInt64(0xffffffff)), b_.CreateLShr(s, b_.getInt64(32))};
}

Value* RandomLanes::counted(Value* first, std::int64_t stride, int lanes) {
  if (lanes == 1) return first;
  std::vector<llvm::Constant*> steps;
  for (int i = 0; i < lanes; ++i) {
    steps.push_back(b_.getInt64(static_cast<std::uint64_t>(i * stride)));
  }
  return b_.CreateAdd(lanes_.spread(first, lanes), llvm::ConstantVector::get(steps));
}

RandomLanes::Words RandomLanes::blocks(Key key, Value* counters) {
  const int n = lanes_of(counters);
  llvm::Type* type = counters->getType();
  const auto constant = [&](std::uint64_t v) { return llvm::ConstantInt::get(type, v); };
  // The upper halves are left as they are: what multiplies reads the lower ones.
  const auto product = [&](Value* x, std::uint32_t by) {
    return b_.CreateMul(b_.CreateAnd(x, constant(0xffffffff)), constant(by));
  };
  std::array<Value*, WordsOfBlock> c = {counters, b_.CreateLShr(counters, constant(32)),
                                        constant(0), constant(0)};
  for (int round = 0; round < Rounds; ++round) {
    const auto round_key = [&](Value* k, std::uint32_t weyl) {
      const std::uint64_t more = std::uint64_t{weyl} * static_cast<std::uint64_t>(round);
      return lanes_.spread(
          b_.CreateAnd(b_.CreateAdd(k, b_.getInt64(more)), b_.getInt64(0xffffffff)), n);
    };
    Value* p0 = product(c[0], PhiloxMultipliers[0]);
    Value* p1 = product(c[2], PhiloxMultipliers[1]);
    Value* k0 = round_key(key.low, PhiloxWeyl[0]);
    Value* k1 = round_key(key.high, PhiloxWeyl[1]);
    c = {b_.CreateXor(b_.CreateXor(b_.CreateLShr(p1, constant(32)), c[1]), k0), p1,
         b_.CreateXor(b_.CreateXor(b_.CreateLShr(p0, constant(32)), c[3]), k1), p0};
  }
  return {c.begin(), c.end()};
}

// Every lane its own block, and its words among the four.
RandomLanes::Words RandomLanes::words_alone(Key key, Elements e, int each) {
  Value* numbers = counted(e.first, e.stride, e.lanes);
  llvm::Type* type = numbers->getType();
  const auto constant = [&](int v) {
    return llvm::ConstantInt::get(type, static_cast<std::uint64_t>(v));
  };
  const int elements = WordsOfBlock / each;  // of a block
  Value* counters = numbers;
  if (elements > 1) counters = b_.CreateLShr(numbers, constant(elements == 4 ? 2 : 1));
  const Words all = blocks(key, counters);
  Value* which = b_.CreateAnd(numbers, constant(elements - 1));
  Words out;
  for (int w = 0; w < each; ++w) {
    Value* word = all[static_cast<std::size_t>(w)];
    for (int k = 1; k < elements; ++k) {
      Value* here = b_.CreateICmpEQ(which, constant(k));
      word = b_.CreateSelect(here, all[static_cast<std::size_t>(k * each + w)], word);
    }
    out.push_back(b_.CreateTrunc(word, like(word, b_.getInt32Ty())));
  }
  return out;
}

// Neighbours from the beginning of a block on: its words, dealt out.
RandomLanes::Words RandomLanes::words_in_step(Key key, Elements e, int each) {
  const int elements = WordsOfBlock / each;  // of a block
  const int count = e.lanes / elements;
  Value* first = b_.CreateLShr(e.first, b_.getInt64(elements == 4 ? 2 : 1));
  Words all = blocks(key, counted(first, 1, count));
  Words out;
  for (Value*& word : all) word = b_.CreateTrunc(word, like(word, b_.getInt32Ty()));
  // Blocks one behind the other: those of the first element of each, of the second, …
  const auto joined = [&](Value* x, Value* y) {
    if (lanes_of(x) == 1) {
      Value* pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(b_.getInt32Ty(), 2));
      return b_.CreateInsertElement(b_.CreateInsertElement(pair, x, std::uint64_t{0}), y,
                                    std::uint64_t{1});
    }
    std::vector<int> both(static_cast<std::size_t>(2 * lanes_of(x)));
    for (std::size_t i = 0; i < both.size(); ++i) both[i] = static_cast<int>(i);
    return b_.CreateShuffleVector(x, y, both);
  };
  for (int w = 0; w < each; ++w) {
    Value* behind = all[static_cast<std::size_t>(w)];
    if (elements == 2) {
      behind = joined(behind, all[static_cast<std::size_t>(each + w)]);
    } else {
      behind = joined(joined(all[0], all[1]), joined(all[2], all[3]));
    }
    std::vector<int> dealt;
    for (int lane = 0; lane < e.lanes; ++lane) {
      dealt.push_back(lane % elements * count + lane / elements);
    }
    out.push_back(b_.CreateShuffleVector(behind, dealt));
  }
  return out;
}

RandomLanes::Words RandomLanes::words(Key key, Elements e, int each) {
  const int elements = WordsOfBlock / each;
  if (elements == 1 || e.stride != 1 || e.lanes % elements != 0) return words_alone(key, e, each);
  Value* off = b_.CreateAnd(e.first, b_.getInt64(static_cast<std::uint64_t>(elements - 1)));
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  const auto block = [&](const char* name) {
    return llvm::BasicBlock::Create(b_.getContext(), name, function);
  };
  llvm::BasicBlock* in_step = block("in_step");
  llvm::BasicBlock* alone = block("alone");
  llvm::BasicBlock* done = block("drawn");
  b_.CreateCondBr(b_.CreateICmpEQ(off, b_.getInt64(0)), in_step, alone);
  b_.SetInsertPoint(in_step);
  const Words fast = words_in_step(key, e, each);
  llvm::BasicBlock* fast_end = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(alone);
  const Words slow = words_alone(key, e, each);
  llvm::BasicBlock* slow_end = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  Words out;
  for (std::size_t w = 0; w < fast.size(); ++w) {
    llvm::PHINode* either = b_.CreatePHI(fast[w]->getType(), 2);
    either->addIncoming(fast[w], fast_end);
    either->addIncoming(slow[w], slow_end);
    out.push_back(either);
  }
  return out;
}

Value* RandomLanes::unit(const Words& words, std::size_t w, bool wide, llvm::Type* type) {
  if (!wide) {
    Value* bits = b_.CreateLShr(words[w], llvm::ConstantInt::get(words[w]->getType(), 8));
    llvm::Type* floats = like(bits, type);
    return b_.CreateFMul(b_.CreateSIToFP(bits, floats), llvm::ConstantFP::get(floats, 0x1p-24));
  }
  llvm::Type* i64 = like(words[w], b_.getInt64Ty());
  const auto constant = [&](std::uint64_t v) { return llvm::ConstantInt::get(i64, v); };
  Value* high = b_.CreateShl(b_.CreateZExt(words[w], i64), constant(32));
  Value* both = b_.CreateOr(high, b_.CreateZExt(words[w + 1], i64));
  llvm::Type* doubles = like(both, b_.getDoubleTy());
  return b_.CreateFMul(b_.CreateUIToFP(b_.CreateLShr(both, constant(11)), doubles),
                       llvm::ConstantFP::get(doubles, 0x1p-53));
}

Value* RandomLanes::as_drawn(Value* x, DType dtype) {
  if (dtype == DType::F64) return x;
  if (x->getType()->getScalarType()->isDoubleTy())
    x = b_.CreateFPTrunc(x, like(x, b_.getFloatTy()));
  return lanes_.rounded(x, dtype);
}

Value* RandomLanes::uniform(const loop::Instr& i, const Words& words) {
  const bool wide = i.dtype == DType::F64;
  if (is_float_enough(i)) {
    Value* u = unit(words, 0, false, b_.getFloatTy());
    if (i.range[1] != 1) u = b_.CreateFMul(u, llvm::ConstantFP::get(u->getType(), i.range[1]));
    return as_drawn(u, i.dtype);
  }
  Value* u = unit(words, 0, wide, b_.getDoubleTy());
  Value* part = b_.CreateFMul(u, llvm::ConstantFP::get(u->getType(), i.range[1] - i.range[0]));
  return as_drawn(b_.CreateFAdd(llvm::ConstantFP::get(u->getType(), i.range[0]), part), i.dtype);
}

Value* RandomLanes::normal(const loop::Instr& i, const Words& words) {
  const bool wide = i.dtype == DType::F64;
  Value* u1 = unit(words, 0, wide, b_.getDoubleTy());
  Value* u2 = unit(words, wide ? 2 : 1, wide, b_.getDoubleTy());
  llvm::Type* type = u1->getType();
  const auto constant = [&](double v) { return llvm::ConstantFP::get(type, v); };
  // ln 0 is not a number one can draw.
  Value* least = constant(wide ? std::numeric_limits<double>::min()
                               : static_cast<double>(std::numeric_limits<float>::min()));
  u1 = b_.CreateSelect(b_.CreateFCmpOLT(u1, least), least, u1);
  Value* log = emit_unary(b_, UnaryKind::Log, u1, target_);
  Value* root = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, b_.CreateFMul(constant(-2), log));
  Value* cos =
      emit_unary(b_, UnaryKind::Cos, b_.CreateFMul(constant(2 * std::numbers::pi), u2), target_);
  Value* scaled = b_.CreateFMul(b_.CreateFMul(constant(i.range[1]), root), cos);
  return as_drawn(b_.CreateFAdd(constant(i.range[0]), scaled), i.dtype);
}

Value* RandomLanes::draw(const loop::Instr& i, Stream stream, Elements elements) {
  const Words all = words(key_of(stream), elements, words_each(i));
  switch (i.random()) {
    case RandomKind::Bits: return all[0];
    case RandomKind::Uniform: return uniform(i, all);
    case RandomKind::Normal: return normal(i, all);
  }
  return nullptr;
}

}  // namespace ricci::cpu
