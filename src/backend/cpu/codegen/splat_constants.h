// Constants of vector code, kept in memory as whole vectors.
#pragma once

namespace llvm {
class Module;
}

namespace ricci::cpu {

/// Makes splat constants loads of whole vectors. Before AVX-512 a broadcast is an instruction of
/// its own, while a whole vector in memory is an operand of the instruction that needs it: code
/// full of polynomials becomes a third shorter. Run last, or the constants are folded again.
void keep_splats_in_memory(llvm::Module& module);

}  // namespace ricci::cpu
