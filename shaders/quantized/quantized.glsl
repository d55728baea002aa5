// Arguments of the kernels over quantised matrices, and eight weights at a time of every format. What the bits mean
// says engine/tensor/quantized_format.h, whose numbers FORMAT has (quantized_formats.glsl is made of it).
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_control_flow_attributes : require
#include "../memory/words.glsl"
#include "quantized_formats.glsl"

layout(constant_id = 1) const int FORMAT = 0;
layout(constant_id = 2) const int SCALE_TYPE = 0;  // 0 f32, 1 f16, 2 bf16
layout(constant_id = 3) const int BIAS_TYPE = 0;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Indices { int v[]; };

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments {
  Floats x;
  Indices which;
  uvec2 codes, scales, biases;  // biases: of codebook4 its table
  Floats result;
  int m, n, k;
  int matrices, rows;       // of a matrix; its columns are k
  int group, group_rows;
  int code_bytes;           // of a row of codes
  int groups;               // of a row of scales
  int scale_rows;           // of a matrix
  int x_row, x_column, which_stride, result_row;
  int indexed;  // not 0: `which` says what is picked
  int x_bias, which_bias;  // of element numbers, which are never negative
};
layout(push_constant) uniform Push { Arguments a; uint all_groups; };
#define INDEXED (a.indexed != 0)

#define NOT_A_NUMBER uintBitsToFloat(0x7fc00000u)

uvec2 moved(uvec2 address, uint bytes) {
  uint carry;
  const uint low = uaddCarry(address.x, bytes, carry);
  return uvec2(low, address.y + carry);
}
uvec2 moved(uvec2 address, uint count, uint bytes) {
  uint high, low, carry;
  umulExtended(count, bytes, high, low);
  const uint sum = uaddCarry(address.x, low, carry);
  return uvec2(sum, address.y + high + carry);
}

uint byte_at(uvec2 address, uint i) {
  const uvec2 at = moved(address, i);
  return bitfieldExtract(Words(uvec2(at.x & ~3u, at.y)).word, int(at.x & 3u) * 8, 8);
}
// Four bytes from any address on. Reads no word without one of them.
uint four_bytes(uvec2 address, uint i) {
  const uvec2 at = moved(address, i);
  const uvec2 first = uvec2(at.x & ~3u, at.y);
  const uint low = Words(first).word;
  const uint shift = (at.x & 3u) * 8u;
  if (shift == 0u) return low;
  return low >> shift | Words(moved(first, 4u)).word << (32u - shift);
}
uvec2 eight_bytes(uvec2 address, uint i) {
  const uvec2 at = moved(address, i);
  const uvec2 first = uvec2(at.x & ~3u, at.y);
  const uint low = Words(first).word, middle = Words(moved(first, 4u)).word;
  const uint shift = (at.x & 3u) * 8u;
  if (shift == 0u) return uvec2(low, middle);
  return uvec2(low >> shift | middle << (32u - shift),
               middle >> shift | Words(moved(first, 8u)).word << (32u - shift));
}

// No subnormal number comes up that a device may take for 0.
float from_half(uint h) {
  const uint magnitude = h & 0x7fffu;
  float value = float(magnitude) * 5.9604644775390625e-8;
  if (magnitude >= 0x400u) value = uintBitsToFloat((magnitude << 13) + 0x38000000u);
  if (magnitude >= 0x7c00u) value = uintBitsToFloat(0x7f800000u | (magnitude & 0x3ffu) << 13);
  return (h & 0x8000u) != 0u ? -value : value;
}
float half_at(uvec2 address, uint i) {
  const uvec2 at = moved(address, i);
  if ((at.x & 1u) != 0u) return from_half(byte_at(address, i) | byte_at(address, i + 1u) << 8);
  return from_half(bitfieldExtract(Words(uvec2(at.x & ~3u, at.y)).word, int(at.x & 2u) * 8, 16));
}

// Number i of a row of scales or biases, as the bits of an f32: a subnormal one may be 0 to whoever computes with it.
uint number_bits_at(uvec2 row, uint i, int type) {
  if (type == 0) return Words(moved(row, 4u * i)).word;
  const uvec2 at = moved(row, 2u * i);
  const uint bits = bitfieldExtract(Words(uvec2(at.x & ~3u, at.y)).word, int(at.x & 2u) * 8, 16);
  return type == 1 ? floatBitsToUint(from_half(bits)) : bits << 16;
}
float number_at(uvec2 row, uint i, int type) { return uintBitsToFloat(number_bits_at(row, i, type)); }

// 2^64 times a number below 2^-63, so that no subnormal one is left.
const uint SMALL = 64u << 23;
bool is_small(uint bits) { return (bits & 0x7fffffffu) < SMALL; }
float lifted(uint bits) {
  const uint magnitude = bits & 0x7fffffffu;
  float value = float(magnitude) * 2.5849394142282115e-26;  // 2^-85
  if (magnitude >= 0x800000u) value = uintBitsToFloat(magnitude + SMALL);
  return (bits & 0x80000000u) != 0u ? -value : value;
}
const float LOWERED = 5.421010862427522e-20;  // 2^-64

// The product, rounded once, unless it is itself below what the device computes with.
float scaled(uint scale, float value) {
  precise const float product = uintBitsToFloat(scale) * value;
  if ((scale & 0x7f800000u) != 0u) return product;
  precise const float high = lifted(scale) * value;
  precise const float low = high * LOWERED;
  return abs(high) >= 2.168404344971009e-19 ? low : product;  // 2^-62
}

// scale * q + bias in two roundings, as the formats' references have it.
float affine(uint scale, uint bias, uint q) {
  if (is_small(scale) && is_small(bias)) {
    precise const float high = lifted(scale) * float(q);
    precise const float sum = high + lifted(bias);
    precise const float low = sum * LOWERED;
    return low;
  }
  precise const float product = uintBitsToFloat(scale) * float(q);
  precise const float sum = product + uintBitsToFloat(bias);
  return sum;
}

struct Row {
  uvec2 codes, scales, biases;
};
Row row_of(uint matrix, uint row) {
  const uint n = matrix * uint(a.rows) + row;
  Row r;
  r.codes = moved(a.codes, n, uint(a.code_bytes));
  r.scales = r.biases = a.codes;
  if (FORMAT >= AFFINE2 && FORMAT <= FP8_E4M3) {
    const uint at = matrix * uint(a.scale_rows) + row / uint(a.group_rows);
    r.scales = moved(a.scales, at, uint(a.groups) * (SCALE_TYPE == 0 ? 4u : 2u));
    r.biases = FORMAT == CODEBOOK4 ? moved(a.biases, matrix, 64u)
                                   : moved(a.biases, n, uint(a.groups) * (BIAS_TYPE == 0 ? 4u : 2u));
  }
  return r;
}

uint code_of(uvec2 bytes, int i) { return bitfieldExtract(i < 4 ? bytes.x : bytes.y, (i & 3) * 8, 8); }

// The scale and the min of six bits each.
uvec2 six_bit_pair(uvec2 p, uint j) {
  const uint low = byte_at(p, j), next = byte_at(p, j + 4u);
  if (j < 4u) return uvec2(low & 63u, next & 63u);
  const uint before = byte_at(p, j - 4u);
  return uvec2((next & 15u) | before >> 6 << 4, next >> 4 | low >> 6 << 4);
}

float iq4(uint code) {
  const uvec4 table = uvec4(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
  return float(bitfieldExtract(int(table[code >> 2]), int(code & 3u) * 8, 8));
}
// Twice the value.
float e2m1(uint code) {
  const uint e = code >> 1 & 3u, f = code & 1u;
  const float value = float(e == 0u ? f : (2u + f) << (e - 1u));
  return code > 8u ? -value : value;  // both zeros are +0, as ggml has them
}
float e4m3(uint code) {
  const uint magnitude = code & 0x7fu;
  float value = float(magnitude) * 0.001953125;
  if (magnitude >= 8u) value = uintBitsToFloat((magnitude << 20) + 0x3c000000u);
  if (magnitude == 0x7fu) value = NOT_A_NUMBER;
  return (code & 0x80u) != 0u ? -value : value;
}

// Blocks of 32 columns.
void small_block(uvec2 row, uint k, out float w[8]) {
  const uint j = k & 31u, shift = j < 16u ? 0u : 4u;
  const bool has_min = FORMAT == Q4_1 || FORMAT == Q5_1, has_fifth = FORMAT == Q5_0 || FORMAT == Q5_1;
  const uint scale_bytes = FORMAT == MXFP4 ? 1u : has_min ? 4u : 2u;
  const uint head = scale_bytes + (has_fifth ? 4u : 0u);
  const uvec2 p = moved(row, k >> 5, head + (FORMAT == Q8_0 ? 32u : 16u));
  const float d = FORMAT == MXFP4 ? 0.0 : half_at(p, 0u);
  const float m = has_min ? half_at(p, 2u) : 0.0;
  const uint fifths = has_fifth ? four_bytes(p, scale_bytes) >> j : 0u;
  const uvec2 bytes = eight_bytes(p, head + (FORMAT == Q8_0 ? j : j & 15u));
  const uint e = FORMAT == MXFP4 ? byte_at(p, 0u) : 0u;
  // 2^(e - 128) in two factors, neither of which a device may take for 0.
  const float first_power = e < 2u ? uintBitsToFloat(63u << 23) : 1.0;
  const float second_power = uintBitsToFloat((e < 2u ? e + 63u : e - 1u) << 23);
  [[unroll]] for (int i = 0; i < 8; ++i) {
    const uint byte = code_of(bytes, i);
    const uint q = (byte >> shift & 15u) | (fifths >> i & 1u) << 4;
    if (FORMAT == Q4_0) w[i] = d * float(int(q) - 8);
    if (FORMAT == Q5_0) w[i] = d * float(int(q) - 16);
    if (has_min) w[i] = d * float(q) + m;
    if (FORMAT == Q8_0) w[i] = d * float(bitfieldExtract(int(byte), 0, 8));
    if (FORMAT == IQ4_NL) w[i] = d * iq4(q);
    if (FORMAT == MXFP4) {
      precise const float once = e2m1(q) * first_power;
      precise const float twice = once * second_power;
      w[i] = twice;
    }
  }
}

// Blocks of 256 columns.
void large_block(uvec2 row, uint k, out float w[8]) {
  const uint j = k & 255u, half_block = j >> 7, within = j & 127u, b = k >> 8;
  if (FORMAT == Q4_K || FORMAT == Q5_K) {
    const uint codes = FORMAT == Q4_K ? 16u : 48u;
    const uvec2 p = moved(row, b, codes + 128u);
    const uint group = j >> 5;
    const uvec2 pair = six_bit_pair(moved(p, 4u), group);
    const float d = half_at(p, 0u) * float(pair.x), m = half_at(p, 2u) * float(pair.y);
    const uvec2 bytes = eight_bytes(p, codes + (group >> 1) * 32u + (j & 31u));
    const uvec2 fifths = FORMAT == Q5_K ? eight_bytes(p, 16u + (j & 31u)) : uvec2(0u);
    [[unroll]] for (int i = 0; i < 8; ++i) {
      const uint q = (code_of(bytes, i) >> ((group & 1u) * 4u) & 15u) | (code_of(fifths, i) >> group & 1u) << 4;
      w[i] = d * float(q) - m;
    }
  } else if (FORMAT == Q6_K) {
    const uvec2 p = moved(row, b, 210u);
    const int s = bitfieldExtract(int(byte_at(p, 192u + (j >> 4))), 0, 8);
    const float d = half_at(p, 208u) * float(s);
    const uvec2 low = eight_bytes(p, half_block * 64u + (within & 63u));
    const uvec2 high = eight_bytes(p, 128u + half_block * 32u + (within & 31u));
    [[unroll]] for (int i = 0; i < 8; ++i) {
      const uint q = (code_of(low, i) >> ((within >> 6) * 4u) & 15u) |
                     (code_of(high, i) >> ((within >> 5) * 2u) & 3u) << 4;
      w[i] = d * float(int(q) - 32);
    }
  } else if (FORMAT == Q2_K) {
    const uvec2 p = moved(row, b, 84u);
    const uint pair = byte_at(p, j >> 4);
    const float d = half_at(p, 80u) * float(pair & 15u), m = half_at(p, 82u) * float(pair >> 4);
    const uvec2 bytes = eight_bytes(p, 16u + half_block * 32u + (within & 31u));
    [[unroll]] for (int i = 0; i < 8; ++i)
      w[i] = d * float(code_of(bytes, i) >> ((within >> 5) * 2u) & 3u) - m;
  } else {  // Q3_K
    const uvec2 p = moved(row, b, 110u);
    const uint g = j >> 4;
    const uint s = (byte_at(p, 96u + (g & 7u)) >> (g >> 3) * 4u & 15u) |
                   (byte_at(p, 104u + (g & 3u)) >> (g >> 2) * 2u & 3u) << 4;
    const float d = half_at(p, 108u) * float(int(s) - 32);
    const uvec2 bytes = eight_bytes(p, 32u + half_block * 32u + (within & 31u));
    const uvec2 thirds = eight_bytes(p, j & 31u);
    [[unroll]] for (int i = 0; i < 8; ++i) {
      const uint q = (code_of(bytes, i) >> ((within >> 5) * 2u) & 3u) | (code_of(thirds, i) >> (j >> 5) & 1u) << 2;
      w[i] = d * float(int(q) - 4);
    }
  }
}

void grouped(Row row, uint k, out float w[8]) {
  const uint scale = number_bits_at(row.scales, k / uint(a.group), SCALE_TYPE);
  if (FORMAT == CODEBOOK4) {
    const uint word = four_bytes(row.codes, k >> 1);
    [[unroll]] for (int i = 0; i < 8; ++i)
      w[i] = scaled(scale, number_at(row.biases, word >> (i ^ 1) * 4 & 15u, 0));
  } else if (FORMAT == FP8_E4M3) {
    // Groups may end anywhere, and so may the row, behind which there may be no memory.
    const bool whole = k + 8u <= uint(a.k) && uint(a.group) % 8u == 0u;
    const uvec2 bytes = whole ? eight_bytes(row.codes, k) : uvec2(0u);
    [[unroll]] for (int i = 0; i < 8; ++i) {
      const uint at = min(k + uint(i), uint(a.k) - 1u);
      if (whole)
        w[i] = scaled(scale, e4m3(code_of(bytes, i)));
      else
        w[i] = scaled(number_bits_at(row.scales, at / uint(a.group), SCALE_TYPE), e4m3(byte_at(row.codes, at)));
    }
  } else {
    const uint bias = number_bits_at(row.biases, k / uint(a.group), BIAS_TYPE);
    uvec2 bytes = uvec2(0u);
    if (FORMAT == AFFINE8) bytes = eight_bytes(row.codes, k);
    if (FORMAT == AFFINE4) bytes.x = four_bytes(row.codes, k >> 1);
    if (FORMAT == AFFINE2) bytes.x = four_bytes(row.codes, k >> 4 << 2) >> (k & 8u) * 2u;
    [[unroll]] for (int i = 0; i < 8; ++i) {
      uint q = code_of(bytes, i);
      if (FORMAT == AFFINE4) q = bytes.x >> 4 * i & 15u;
      if (FORMAT == AFFINE2) q = bytes.x >> 2 * i & 3u;
      w[i] = affine(scale, bias, q);
    }
  }
}

// Columns k to k + 7 of a row, k a multiple of 8; those behind the last column are anything.
void weights_at(Row row, uint k, out float w[8]) {
  if (FORMAT >= F32) {  // the row may end anywhere
    [[unroll]] for (uint i = 0u; i < 8u; ++i)
      w[i] = number_at(row.codes, min(k + i, uint(a.k) - 1u), FORMAT - F32);
  } else if (FORMAT >= AFFINE2)
    grouped(row, k, w);
  else if (FORMAT >= Q2_K && FORMAT <= Q6_K)
    large_block(row.codes, k, w);
  else
    small_block(row.codes, k, w);
}

// The matrix of row m of x; at least `matrices` where there is none.
uint matrix_of(int m) { return INDEXED ? uint(a.which.v[a.which_bias + m * a.which_stride]) : 0u; }
