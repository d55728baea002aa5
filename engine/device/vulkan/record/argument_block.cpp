#include "engine/device/vulkan/record/argument_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "engine/base/error.h"

namespace caldera::vulkan {
namespace {

constexpr std::string_view kSpace = " \t\n";

std::string without_line_comments(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    out += line.substr(0, line.find("//"));
    out += '\n';
    text.remove_prefix(end);
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

/// Takes what comes before `separator` off a text; all of it where there is none.
std::string_view take_until(std::string_view& text, std::string_view separators) {
  const std::size_t end = std::min(text.find_first_of(separators), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return trimmed(taken);
}

/// What is between the braces of `buffer NAME {` or `struct NAME {`.
std::optional<std::string_view> body_of(std::string_view text, std::string_view name) {
  for (const std::string_view kind : {"buffer", "struct"}) {
    const std::string head = fmt::format("{} {} {{", kind, name);
    const std::size_t begin = text.find(head);
    if (begin == std::string_view::npos) continue;
    const std::string_view body = text.substr(begin + head.size());
    return body.substr(0, body.find('}'));
  }
  return std::nullopt;
}

bool is_of_capitals(std::string_view word) {
  return std::ranges::all_of(word, [](char c) { return c == '_' || (c >= 'A' && c <= 'Z'); });
}

std::vector<DeclaredBlock::Member> members_of(std::string_view text, std::string_view body);

std::size_t words_of(std::string_view text, std::string_view type) {
  if (type == "int" || type == "uint") return 1;
  const std::optional<std::string_view> body = body_of(text, type);
  const std::size_t at = text.find(fmt::format("struct {} {{", type));
  if (!body || at == std::string_view::npos) return 2;  // uvec2 or a reference
  std::size_t words = 0;
  for (const DeclaredBlock::Member& member : members_of(text, *body)) words += member.words * member.count;
  return words;
}

DeclaredBlock::Member member_of(std::string_view declared, std::size_t words) {
  const std::string_view name = take_until(declared, "[");
  DeclaredBlock::Member member{std::string(name), words, 1};
  const std::string_view count = take_until(declared, "]");
  if (count.empty()) return member;
  member.count = 0;
  std::from_chars(count.data(), count.data() + count.size(), member.count);
  return member;
}

std::vector<DeclaredBlock::Member> members_of(std::string_view text, std::string_view body) {
  std::vector<DeclaredBlock::Member> members;
  while (!trimmed(body).empty()) {
    std::string_view line = take_until(body, ";");
    std::string_view type = take_until(line, kSpace);
    for (; is_of_capitals(type); type = take_until(line, kSpace)) {
      if (!type.empty()) members.push_back({std::string(type), 0, 0});
      line = trimmed(line);
      if (line.empty()) break;
    }
    while (!trimmed(line).empty()) members.push_back(member_of(take_until(line, ","), words_of(text, type)));
  }
  return members;
}

}  // namespace

DeclaredBlock::DeclaredBlock(std::string shader, std::string_view text, std::string_view name)
    : shader_(std::move(shader)) {
  const std::string code = without_line_comments(text);
  const std::optional<std::string_view> body = body_of(code, name);
  if (!body) throw Error(fmt::format("shader {}: its text declares no {}", shader_, name));
  members_ = members_of(code, *body);
}

void ArgumentBlock::fail(const std::string& problem) const {
  throw Error(fmt::format("shader {}: {}", declared_.shader(), problem));
}

void ArgumentBlock::leave() {
  if (next_ == 0) return;
  const DeclaredBlock::Member& member = declared_.members()[next_ - 1];
  if (member.words == 0) return;
  if (written_ % member.words != 0 || (member.count > 0 && written_ != member.words * member.count))
    fail(fmt::format("{} words are written to its argument '{}', which has {} times {}", written_,
                     member.name, member.count > 0 ? fmt::to_string(member.count) : "a number of",
                     member.words));
}

void ArgumentBlock::at(std::string_view member, std::size_t words) {
  const std::vector<DeclaredBlock::Member>& all = declared_.members();
  if (next_ == 0 || all[next_ - 1].name != member) {
    leave();
    if (next_ == all.size() || all[next_].name != member)
      fail(fmt::format("its next argument is '{}', where '{}' is written",
                       next_ == all.size() ? "none" : all[next_].name, member));
    ++next_;
    written_ = 0;
  }
  written_ += words;
}

void ArgumentBlock::address(std::string_view member, const Operand& operand, std::int64_t bias) {
  at(member, 2);
  table_.address(operand, bias);
}

void ArgumentBlock::scalar(std::string_view member, std::int32_t index) {
  at(member, 2);
  table_.scalar(index);
}

void ArgumentBlock::integers(std::string_view member, std::initializer_list<std::int64_t> values) {
  integers(member, std::span(values.begin(), values.size()));
}

void ArgumentBlock::integers(std::string_view member, std::span<const std::int64_t> values) {
  at(member, values.size());
  for (const std::int64_t value : values) table_.integer(value, step_);
}

TableWriter& ArgumentBlock::generated(std::string_view member) {
  at(member, 0);
  return table_;
}

void ArgumentBlock::end() {
  leave();
  if (next_ != declared_.members().size())
    fail(fmt::format("nothing is written to its argument '{}'", declared_.members()[next_].name));
}

}  // namespace caldera::vulkan
