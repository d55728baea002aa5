// ArgumentBlock: writes the arguments of a shader that is written by hand, by the names that its text
// declares, and holds the two to one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/vulkan/record/recording.h"

namespace caldera::vulkan {

/// A block as a shader's text declares it. Immutable: any thread.
class DeclaredBlock {
 public:
  /// A member. Its words are 32 bits wide.
  struct Member {
    std::string name;
    std::size_t words = 0;  // of it, or of one element; 0: what generated code declares there
    std::size_t count = 1;  // elements; 0: as many as a definition says
  };

  /// Reads `buffer NAME {` or `struct NAME {` of a text, where members are int, uint, uvec2, references and
  /// structures of these. Words of capitals alone are members that generated code declares. Throws Error,
  /// naming `shader`, for a text that declares no such block.
  DeclaredBlock(std::string shader, std::string_view text, std::string_view name = "Arguments");

  const std::string& shader() const { return shader_; }
  const std::vector<Member>& members() const { return members_; }

 private:
  std::string shader_;
  std::vector<Member> members_;
};

/// Writes one block. Every function throws Error, naming the shader and both names, where the text declares
/// another member than the one that is written, or one of another size.
class ArgumentBlock {
 public:
  /// Keeps references to all.
  ArgumentBlock(TableWriter& table, const Step& step, const DeclaredBlock& declared)
      : table_(table), step_(step), declared_(declared) {}
  ~ArgumentBlock() = default;
  ArgumentBlock(const ArgumentBlock&) = delete;
  ArgumentBlock& operator=(const ArgumentBlock&) = delete;

  void address(std::string_view member, const Operand& operand, std::int64_t bias = 0);
  void scalar(std::string_view member, std::int32_t index);
  /// Throws ShapeError, naming the step, where a value does not fit into 32 bits.
  void integers(std::string_view member, std::initializer_list<std::int64_t> values);
  void integers(std::string_view member, std::span<const std::int64_t> values);
  void integer(std::string_view member, std::int64_t value) { integers(member, {value}); }
  /// Comes to what generated code declares; who calls it writes that.
  TableWriter& generated(std::string_view member);
  /// Ends the block.
  void end();

 private:
  /// Goes to the member, or stays there, for so many words.
  void at(std::string_view member, std::size_t words);
  void leave();
  [[noreturn]] void fail(const std::string& problem) const;

  TableWriter& table_;
  const Step& step_;
  const DeclaredBlock& declared_;
  std::size_t next_ = 0;     // member behind the one that is being written
  std::size_t written_ = 0;  // words of that one
};

}  // namespace caldera::vulkan
