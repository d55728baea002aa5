// Elements of 8 and 16 bits where the device has no storage of such: parts of 32-bit words. A store changes its own
// bits of the word alone, so neighbours may be stored by other invocations at the same time. One element has one
// invocation that stores it: in between the two atomics it is zero.
#ifndef COHERENT
#define COHERENT
#endif
layout(buffer_reference, std430, buffer_reference_align = 4) COHERENT buffer Words { uint word; };

// The address of the element's first byte.
uvec2 small_at(uvec2 address, int element, uint bytes) {
  uint carry;
  const uint low = uaddCarry(address.x, uint(element) * bytes, carry);
  return uvec2(low, address.y + (bytes == 1u ? 0u : uint(element) >> (32u - uint(findLSB(bytes)))) + carry);
}

uint load_small(uvec2 address, int element, uint bytes) {
  const uvec2 at = small_at(address, element, bytes);
  return bitfieldExtract(Words(uvec2(at.x & ~3u, at.y)).word, int(at.x & 3u) * 8, int(bytes) * 8);
}

void store_small(uvec2 address, int element, uint bytes, uint value) {
  const uvec2 at = small_at(address, element, bytes);
  const int shift = int(at.x & 3u) * 8;
  const uint mask = ((1u << (bytes * 8u)) - 1u) << shift;
  Words words = Words(uvec2(at.x & ~3u, at.y));
  atomicAnd(words.word, ~mask);
  atomicOr(words.word, (value << shift) & mask);
}
