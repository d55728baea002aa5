#include "engine/device/survey/code_facts.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <unordered_map>
#include <vector>

namespace caldera {
namespace {

/// One line of a listing: a label, or an instruction.
struct Line {
  std::string_view label;   // that begins here
  std::string_view target;  // of a branch
  CodeStretch stretch;
};

double scalar_work(const CodeStretch& s) { return s.f32_flops + s.matrix_flops; }

std::string_view word_of(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(begin);
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(word.size());
  return word;
}

/// The number that follows `before` in the text; 0 where there is none.
double number_after(std::string_view text, std::string_view before) {
  const std::size_t at = text.rfind(before);
  if (at == std::string_view::npos) return 0;
  int number = 0;
  const char* const begin = text.data() + at + before.size();
  std::from_chars(begin, text.data() + text.size(), number);
  return number;
}

/// 2 * m * n * k of an instruction that names its shape "16x16x16" or "m16n8k16"; 0 where it names none.
double matrix_flops_of(std::string_view name) {
  if (const double k = number_after(name, "k"); k > 0 && number_after(name, "n") > 0)
    return 2 * number_after(name, "m") * number_after(name, "n") * k;
  const std::size_t at = name.find('x');
  if (at == std::string_view::npos) return 0;
  std::size_t first = at;
  while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
  int m = 0;
  int n = 0;
  int k = 0;
  const char* const end = name.data() + name.size();
  const auto after_m = std::from_chars(name.data() + first, end, m);
  if (after_m.ptr == end) return 0;
  const auto after_n = std::from_chars(after_m.ptr + 1, end, n);
  if (after_n.ptr == end) return 0;
  std::from_chars(after_n.ptr + 1, end, k);
  return 2.0 * m * n * k;
}

// ---- AMD: "\tv_fmac_f32_e32 v1, v2, v3 ; 4c020080", labels "BB3:" ----

double amd_flops(std::string_view name) {
  const auto is = [&](std::string_view prefix) { return name.starts_with(prefix); };
  if (is("v_pk_fma_f16") || is("v_dot2")) return 4;
  if (is("v_dot4")) return 8;
  return is("v_fma_") || is("v_fmac_") || is("v_fmaak_") || is("v_fmamk_") || is("v_fma_mix") ||
                 is("v_dual_fma")
             ? 2
             : 0;
}

double amd_shared_bytes(std::string_view name) {
  if (!name.starts_with("ds_load") && !name.starts_with("ds_store") && !name.starts_with("ds_read") &&
      !name.starts_with("ds_write"))
    return 0;
  const bool two = name.find("2addr") != std::string_view::npos || name.starts_with("ds_read2") ||
                   name.starts_with("ds_write2");
  double bits = number_after(name, "_b");
  if (bits == 0) bits = std::max(number_after(name, "_u"), number_after(name, "_i"));
  return (two ? 2 : 1) * bits / 8;
}

Line amd_line(std::string_view text) {
  Line line;
  if (text.starts_with("BB")) {
    line.label = text.substr(0, text.find(':'));
    return line;
  }
  if (!text.starts_with('\t')) return line;
  text = text.substr(0, text.find(';'));
  const std::string_view name = word_of(text);
  if (name.empty()) return line;
  CodeStretch& s = line.stretch;
  s.instructions = 1;
  if (name.starts_with("s_branch") || name.starts_with("s_cbranch")) line.target = word_of(text);
  if (name.starts_with("v_wmma")) {
    s.matrix_flops = matrix_flops_of(name);
  } else {
    s.f32_flops = amd_flops(name);
  }
  // Two operations that are issued as one.
  if (const std::size_t second = text.find(":: "); second != std::string_view::npos)
    s.f32_flops += amd_flops(text.substr(second + 3));
  s.issued = name.starts_with("v_") ? 1 : 0;
  s.shared_bytes = amd_shared_bytes(name);
  return line;
}

// ---- NVK: "@!p0  r1..3 = ld.shared.b64 [r2] // delay=1", labels "block.u 3 L6 [1] -> {" ----

Line nak_line(std::string_view text) {
  Line line;
  text = text.substr(0, text.find("//"));
  if (text.starts_with("block")) {
    word_of(text);
    word_of(text);
    line.label = word_of(text);
    return line;
  }
  std::string_view rest = text;
  if (std::string_view head = rest; word_of(head).starts_with('@')) rest = head;
  if (const std::size_t equals = rest.find(" = "); equals != std::string_view::npos)
    rest = rest.substr(equals + 3);
  const std::string_view name = word_of(rest);
  if (name.empty() || name == "}") return line;
  CodeStretch& s = line.stretch;
  s.instructions = 1;
  s.issued = 1;
  if (name == "bra") {
    for (std::string_view word = word_of(rest); !word.empty(); word = word_of(rest)) line.target = word;
  } else if (name.starts_with("hmma")) {
    s.matrix_flops = matrix_flops_of(name);
  } else if (name.starts_with("ffma")) {
    s.f32_flops = 2;
  } else if (name.starts_with("hfma2")) {
    s.f32_flops = 4;
  } else if (name.starts_with("ld.shared") || name.starts_with("st.shared")) {
    s.shared_bytes =
        std::max({number_after(name, ".b"), number_after(name, ".u"), number_after(name, ".i")}) / 8;
  } else if (name.starts_with("ldsm")) {
    s.shared_bytes = 4 * std::max(1.0, number_after(name, "x"));
  }
  return line;
}

CodeStretch sum(const std::vector<Line>& lines, std::size_t first, std::size_t last) {
  CodeStretch all;
  for (std::size_t i = first; i <= last; ++i) all += lines[i].stretch;
  return all;
}

CodeFacts facts_of(const std::vector<Line>& lines) {
  CodeFacts facts;
  if (lines.empty()) return facts;
  facts.whole = sum(lines, 0, lines.size() - 1);
  const double work = scalar_work(facts.whole);
  std::unordered_map<std::string_view, std::size_t> labels;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].label.empty()) labels[lines[i].label] = i;
    const auto target = labels.find(lines[i].target);  // of what came before: a branch back
    if (lines[i].target.empty() || target == labels.end()) continue;
    const CodeStretch loop = sum(lines, target->second, i);
    const bool fits = work == 0 || scalar_work(loop) >= 0.9 * work;
    if (!fits) continue;
    const bool better = !facts.loop || (work > 0) == (loop.instructions < facts.loop->instructions);
    if (better) facts.loop = loop;
  }
  return facts;
}

}  // namespace

CodeStretch& CodeStretch::operator+=(const CodeStretch& other) {
  instructions += other.instructions;
  issued += other.issued;
  f32_flops += other.f32_flops;
  matrix_flops += other.matrix_flops;
  shared_bytes += other.shared_bytes;
  return *this;
}

std::optional<CodeFacts> read_code(std::string_view name, std::string_view listing) {
  Line (*const read)(std::string_view) = name == "Assembly"       ? amd_line
                                         : name == "NAK assembly" ? nak_line
                                                                  : nullptr;
  if (read == nullptr) return std::nullopt;
  std::vector<Line> lines;
  while (!listing.empty()) {
    const std::size_t end = std::min(listing.find('\n'), listing.size());
    const Line line = read(listing.substr(0, end));
    if (!line.label.empty() || line.stretch.instructions > 0) lines.push_back(line);
    listing.remove_prefix(std::min(end + 1, listing.size()));
  }
  return facts_of(lines);
}

}  // namespace caldera
