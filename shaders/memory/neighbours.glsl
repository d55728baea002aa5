// Neighbouring elements as 32-bit words, up to 16 bytes in one load or store.
#ifndef COHERENT
#define COHERENT
#endif
layout(buffer_reference, std430, buffer_reference_align = 4) COHERENT buffer OneWord { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 8) COHERENT buffer TwoWords { uvec2 v; };
layout(buffer_reference, std430, buffer_reference_align = 16) COHERENT buffer FourWords { uvec4 v; };

// The address of the element's first byte.
uvec2 element_at(uvec2 address, int element, uint bytes) {
  uint carry;
  const uint low = uaddCarry(address.x, uint(element) * bytes, carry);
  return uvec2(low, address.y + (bytes == 1u ? 0u : uint(element) >> (32u - uint(findLSB(bytes)))) + carry);
}

uvec2 further(uvec2 address, uint bytes) {
  uint carry;
  const uint low = uaddCarry(address.x, bytes, carry);
  return uvec2(low, address.y + carry);
}
