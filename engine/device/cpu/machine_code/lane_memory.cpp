#include "engine/device/cpu/machine_code/lane_memory.h"

#include <array>

namespace caldera::cpu {
namespace {

using asmjit::imm;
using asmjit::x86::Gp;
using asmjit::x86::Mem;
using Id = Lanes::Id;
using Vec = Lanes::Vec;

bool is_byte(DType type) { return type == DType::boolean; }

}  // namespace

bool LaneMemory::knows(DType type) {
  return type == DType::f32 || type == DType::i32 || type == DType::boolean || type == DType::f16 ||
         type == DType::bf16;
}

LaneRest LaneMemory::rest_of(const Gp& elements) const {
  LaneRest rest;
  rest.is_whole = false;
  rest.elements = elements;
  rest.mask = l_.fresh_mask();
  if (l_.is_wide) {
    const Gp ones = l_.cc.newGpq();
    l_.cc.mov(ones, imm(-1));
    l_.cc.bzhi(ones, ones, elements);
    l_.cc.kmovw(rest.mask.bits, ones.r32());
    return rest;
  }
  const Vec count = l_.fresh();
  l_.cc.vmovd(count.xmm(), elements.r32());
  l_.cc.vpbroadcastd(count, count.xmm());
  const std::array<std::int32_t, 8> lanes{0, 1, 2, 3, 4, 5, 6, 7};
  l_.cc.vpcmpgtd(rest.mask.lanes, count,
                 l_.cc.newConst(asmjit::ConstPoolScope::kLocal, lanes.data(), sizeof lanes));
  return rest;
}

LaneMask LaneMemory::truth_of(const Vec& lanes) const {
  LaneMask mask = l_.fresh_mask();
  if (l_.is_wide) {
    l_.cc.vptestmd(mask.bits, lanes, lanes);
    return mask;
  }
  l_.cc.vpcmpeqd(mask.lanes, lanes, l_.zero());
  return l_.mask_not(mask);
}

LaneValue LaneMemory::load_whole(DType type, const Mem& from) const {
  const Vec v = l_.fresh();
  switch (type) {
    case DType::boolean:
      l_.cc.vpmovzxbd(v, from);
      return LaneValue::of(truth_of(v));
    case DType::f16:
      l_.cc.vcvtph2ps(v, from);
      return LaneValue::of(v);
    case DType::bf16:
      l_.cc.vpmovzxwd(v, from);
      return LaneValue::of(l_.shift_left(v, 16));
    default:
      l_.cc.vmovups(v, from);
      return LaneValue::of(v);
  }
}

LaneValue LaneMemory::load(DType type, const Mem& from, const LaneRest& rest) const {
  if (rest.is_whole) return load_whole(type, from);
  const Vec v = l_.fresh();
  const auto size = static_cast<int>(size_of(type));
  if (size == 4) {
    if (l_.is_wide)
      l_.cc.k(rest.mask.bits).z().vmovups(v, from);
    else
      l_.cc.vmaskmovps(v, rest.mask.lanes, from);
    return LaneValue::of(v);
  }
  if (!l_.is_wide) {
    const Mem there = l_.cc.newStack(16, 16);
    copy_bytes(there, from, rest.elements, size);
    return load_whole(type, there);
  }
  if (is_byte(type)) {
    l_.cc.k(rest.mask.bits).z().vpmovzxbd(v, from);
    return LaneValue::of(truth_of(v));
  }
  l_.cc.k(rest.mask.bits).z().vpmovzxwd(v, from);
  if (type == DType::bf16) return LaneValue::of(l_.shift_left(v, 16));
  const Vec narrow = l_.fresh();
  l_.cc.vpmovdw(narrow.ymm(), v);
  const Vec wide = l_.fresh();
  l_.cc.vcvtph2ps(wide, narrow.ymm());
  return LaneValue::of(wide);
}

LaneValue LaneMemory::load_one(DType type, const Mem& from) const {
  if (size_of(type) == 4) {
    const Vec v = l_.fresh();
    l_.cc.vbroadcastss(v, from);
    return LaneValue::of(v);
  }
  const Gp element = l_.cc.newGpq();
  if (is_byte(type))
    l_.cc.movzx(element.r32(), from.cloneResized(1));
  else
    l_.cc.movzx(element.r32(), from.cloneResized(2));
  const Vec v = l_.fresh();
  if (type == DType::bf16) l_.cc.shl(element.r32(), 16);
  l_.cc.vmovd(v.xmm(), element.r32());
  if (type == DType::f16) l_.cc.vcvtph2ps(v.xmm(), v.xmm());
  l_.cc.vbroadcastss(v, v.xmm());
  return is_byte(type) ? LaneValue::of(truth_of(v)) : LaneValue::of(v);
}

Vec LaneMemory::bf16_bits(const Vec& x) const {
  const Vec odd = l_.bit_and(l_.shift_right_unsigned(x, 16), l_.constant(std::int32_t{1}));
  const Vec rounded = l_.add_i32(l_.add_i32(x, l_.constant(std::int32_t{0x7fff})), odd);
  const Vec quiet = l_.bit_or(x, l_.constant(std::int32_t{0x400000}));
  return l_.shift_right_unsigned(l_.select(l_.is_nan(x), quiet, rounded), 16);
}

Vec LaneMemory::narrowed(DType type, const LaneValue& value) const {
  const Vec v = l_.fresh();
  if (is_byte(type)) {
    if (l_.is_wide) {
      const Vec ones = l_.keep(value.mask, l_.constant(std::int32_t{1}));
      l_.cc.vpmovdb(v.xmm(), ones);
      return v;
    }
    const Vec ones = l_.bit_and(value.mask.lanes, l_.constant(std::int32_t{1}));
    const Vec high = l_.fresh();
    l_.cc.vextracti128(high.xmm(), ones, imm(1));
    l_.cc.vpackssdw(v.xmm(), ones.xmm(), high.xmm());
    l_.cc.vpackuswb(v.xmm(), v.xmm(), v.xmm());
    return v;
  }
  if (type == DType::f16) {
    l_.cc.vcvtps2ph(l_.half(v), value.lanes, imm(0));
    return v;
  }
  if (type != DType::bf16) return value.lanes;
  const Vec bits = bf16_bits(value.lanes);
  if (l_.is_wide) {
    l_.cc.vpmovdw(v.ymm(), bits);
    return v;
  }
  const Vec high = l_.fresh();
  l_.cc.vextracti128(high.xmm(), bits, imm(1));
  l_.cc.vpackusdw(v.xmm(), bits.xmm(), high.xmm());
  return v;
}

void LaneMemory::store(DType type, const Mem& to, const LaneValue& value, const LaneRest& rest,
                       bool streams) const {
  const auto size = static_cast<int>(size_of(type));
  const Vec v = narrowed(type, value);
  if (!rest.is_whole && !l_.is_wide && size < 4) {
    const Mem there = l_.cc.newStack(16, 16);
    l_.cc.vmovups(there, v.xmm());
    copy_bytes(to, there, rest.elements, size);
    return;
  }
  if (size == 4) {
    if (rest.is_whole)
      l_.cc.emit(streams ? Id::kIdVmovntps : Id::kIdVmovups, to, v);
    else if (l_.is_wide)
      l_.cc.k(rest.mask.bits).vmovups(to, v);
    else
      l_.cc.vmaskmovps(to, rest.mask.lanes, v);
    return;
  }
  if (rest.is_whole) {
    if (size == 2)
      l_.cc.vmovups(to, l_.half(v));
    else if (l_.is_wide)
      l_.cc.vmovups(to, v.xmm());
    else
      l_.cc.vmovq(to, v.xmm());
    return;
  }
  if (size == 2)
    l_.cc.k(rest.mask.bits).vmovdqu16(to, v.ymm());
  else
    l_.cc.k(rest.mask.bits).vmovdqu8(to, v.xmm());
}

void LaneMemory::store_one(DType type, const Mem& to, const LaneValue& value) const {
  const Vec v = narrowed(type, value);
  if (size_of(type) == 4)
    l_.cc.vmovss(to, v.xmm());
  else if (size_of(type) == 2)
    l_.cc.vpextrw(to, v.xmm(), imm(0));
  else
    l_.cc.vpextrb(to, v.xmm(), imm(0));
}

void LaneMemory::copy_bytes(const Mem& to, const Mem& from, const Gp& elements, int size) const {
  const Gp from_at = l_.cc.newIntPtr();
  const Gp to_at = l_.cc.newIntPtr();
  const Gp left = l_.cc.newGpq();
  const Gp element = l_.cc.newGpq();
  l_.cc.lea(from_at, from);
  l_.cc.lea(to_at, to);
  l_.cc.mov(left, elements);
  const asmjit::Label again = l_.cc.newLabel();
  l_.cc.bind(again);
  if (size == 1) {
    l_.cc.movzx(element.r32(), asmjit::x86::byte_ptr(from_at));
    l_.cc.mov(asmjit::x86::byte_ptr(to_at), element.r8());
  } else {
    l_.cc.movzx(element.r32(), asmjit::x86::word_ptr(from_at));
    l_.cc.mov(asmjit::x86::word_ptr(to_at), element.r16());
  }
  l_.cc.add(from_at, imm(size));
  l_.cc.add(to_at, imm(size));
  l_.cc.dec(left);
  l_.cc.jnz(again);
}

}  // namespace caldera::cpu
