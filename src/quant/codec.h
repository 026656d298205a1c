// What the table of formats is made of: a decoder and an encoder per format, for one block.
#pragma once

#include <cstddef>

#include "quant/layout.h"

namespace ricci::quant {

inline constexpr PlainLayout LayoutQ4_0 = {4, false, 8};
inline constexpr PlainLayout LayoutQ4_1 = {4, true, 0};
inline constexpr PlainLayout LayoutQ5_0 = {5, false, 16};
inline constexpr PlainLayout LayoutQ5_1 = {5, true, 0};
inline constexpr PlainLayout LayoutQ8_0 = {8, false, 0};
inline constexpr PlainLayout LayoutQ8_1 = {8, true, 0};

void decode_q4_0(const std::byte* block, float* values);
void decode_q4_1(const std::byte* block, float* values);
void decode_q5_0(const std::byte* block, float* values);
void decode_q5_1(const std::byte* block, float* values);
void decode_q8_0(const std::byte* block, float* values);
void decode_q8_1(const std::byte* block, float* values);
void decode_q2_k(const std::byte* block, float* values);
void decode_q3_k(const std::byte* block, float* values);
void decode_q4_k(const std::byte* block, float* values);
void decode_q5_k(const std::byte* block, float* values);
void decode_q6_k(const std::byte* block, float* values);
void decode_q8_k(const std::byte* block, float* values);
void decode_mxfp4(const std::byte* block, float* values);
void decode_nvfp4(const std::byte* block, float* values);
void decode_fp8_e4m3(const std::byte* block, float* values);
void decode_fp8_e5m2(const std::byte* block, float* values);

void encode_q4_0(const float* values, const float* importance, std::byte* block);
void encode_q4_1(const float* values, const float* importance, std::byte* block);
void encode_q5_0(const float* values, const float* importance, std::byte* block);
void encode_q5_1(const float* values, const float* importance, std::byte* block);
void encode_q8_0(const float* values, const float* importance, std::byte* block);
void encode_q8_1(const float* values, const float* importance, std::byte* block);
void encode_q2_k(const float* values, const float* importance, std::byte* block);
void encode_q3_k(const float* values, const float* importance, std::byte* block);
void encode_q4_k(const float* values, const float* importance, std::byte* block);
void encode_q5_k(const float* values, const float* importance, std::byte* block);
void encode_q6_k(const float* values, const float* importance, std::byte* block);
void encode_q8_k(const float* values, const float* importance, std::byte* block);
void encode_mxfp4(const float* values, const float* importance, std::byte* block);
void encode_nvfp4(const float* values, const float* importance, std::byte* block);
void encode_fp8_e4m3(const float* values, const float* importance, std::byte* block);
void encode_fp8_e5m2(const float* values, const float* importance, std::byte* block);

}  // namespace ricci::quant
