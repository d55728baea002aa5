// The instructions of a SPIR-V module, one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/device/vulkan/spirv/numbers.h"

namespace caldera::vulkan::spirv {

using Words = std::span<const std::uint32_t>;

/// One instruction: words[0] holds its opcode and its length.
struct Instruction {
  std::uint16_t op = 0;
  Words words;
};

/// Calls `visit(const Instruction&)` for each in order. Throws DeviceError that names `kernel` where the
/// words are no SPIR-V: a wrong first word, or an instruction that is empty or longer than what is left.
template <class Visit>
void for_each_instruction(Words module, std::string_view kernel, Visit visit);

[[noreturn]] void refuse_module(std::string_view kernel, std::size_t word);

/// Appends an instruction.
void append(std::vector<std::uint32_t>& out, Op op, std::initializer_list<std::uint32_t> operands);

template <class Visit>
void for_each_instruction(Words module, std::string_view kernel, Visit visit) {
  if (module.size() < kHeaderWords || module[0] != kMagic) refuse_module(kernel, 0);
  for (std::size_t at = kHeaderWords; at < module.size();) {
    const std::size_t length = module[at] >> 16;
    if (length == 0 || length > module.size() - at) refuse_module(kernel, at);
    visit(Instruction{static_cast<std::uint16_t>(module[at] & 0xffffU), module.subspan(at, length)});
    at += length;
  }
}

}  // namespace caldera::vulkan::spirv
