#include "engine/survey/code_lines.h"

#include <algorithm>
#include <charconv>

namespace caldera {
namespace {

std::string_view word_of(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(begin);
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(word.size());
  return word;
}

/// A decimal or hexadecimal number; nothing for any other word.
std::optional<std::int64_t> constant_of(std::string_view word) {
  const bool is_hex = word.starts_with("0x");
  if (is_hex) word.remove_prefix(2);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, is_hex ? 16 : 10);
  if (word.empty() || error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

/// Notes that an instruction compares, or steps, a register by a constant: one of its operands is a register
/// and the other a constant. `result`: the register that a step writes, which has to be the one it reads;
/// empty for a comparison.
void note_counter(CodeLine& line, std::string_view result, std::string_view operands) {
  std::string_view reg;
  std::optional<std::int64_t> constant;
  for (std::string_view word = word_of(operands); !word.empty(); word = word_of(operands)) {
    if (word.ends_with(',')) word.remove_suffix(1);
    if (const auto number = constant_of(word)) {
      constant = number;
    } else if (word != "rZ" && (result.empty() ? reg.empty() : word == result)) {
      reg = word;
    }
  }
  if (!constant || reg.empty()) return;
  (result.empty() ? line.compared : line.stepped) = reg;
  line.constant = *constant;
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

CodeLine amd_line(std::string_view text) {
  CodeLine line;
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
  if (name.starts_with("s_branch") || name.starts_with("s_cbranch")) {
    line.target = word_of(text);
    line.uniform = name.find("exec") == std::string_view::npos;
  }
  line.ends = name == "s_branch" || name == "s_endpgm";
  if (name.starts_with("v_wmma")) {
    s.matrix_flops = matrix_flops_of(name);
  } else {
    s.f32_flops = amd_flops(name);
  }
  // Two operations that are issued as one.
  if (const std::size_t second = text.find(":: "); second != std::string_view::npos)
    s.f32_flops += amd_flops(text.substr(second + 3));
  s.issued = name.starts_with("v_") ? 1 : 0;
  const auto is = [&](std::string_view prefix) { return name.starts_with(prefix); };
  if (is("v_cmp_")) word_of(text);  // where the result goes
  if (is("s_cmp") || is("v_cmp")) note_counter(line, {}, text);
  if (is("s_add") || is("v_add_nc") || is("v_add_co")) {
    std::string_view result = word_of(text);
    result.remove_suffix(result.ends_with(',') ? 1 : 0);
    // "s_addk_i32 s1, 0x10" reads what it writes.
    if (is("s_addk")) {
      line.stepped = result;
      line.constant = constant_of(word_of(text)).value_or(0);
    } else {
      note_counter(line, result, text);
    }
  }
  s.loads = is("global_load") || is("buffer_load") || is("flat_load") ? 1 : 0;
  s.accesses = is("global_") || is("buffer_") || is("flat_") ? 1 : 0;
  s.shared_bytes = amd_shared_bytes(name);
  return line;
}

// ---- NVK: "@!p0  r1..3 = ld.shared.b64 [r2] // delay=1", labels "block.u 3 L6 [1] -> {" ----

CodeLine nak_line(std::string_view text) {
  CodeLine line;
  text = text.substr(0, text.find("//"));
  if (text.starts_with("block")) {
    word_of(text);
    word_of(text);
    line.label = word_of(text);
    return line;
  }
  std::string_view rest = text;
  bool divergent = false;
  if (std::string_view head = rest; true) {
    const std::string_view predicate = word_of(head);
    if (predicate.starts_with('@')) {
      rest = head;
      divergent = true;
    }
  }
  std::string_view result;
  if (const std::size_t equals = rest.find(" = "); equals != std::string_view::npos) {
    std::string_view left = rest.substr(0, equals);
    result = word_of(left);
    rest = rest.substr(equals + 3);
  }
  const std::string_view name = word_of(rest);
  if (name.empty() || name == "}") return line;
  CodeStretch& s = line.stretch;
  s.instructions = 1;
  s.issued = 1;
  if (name == "bra") {
    std::string_view condition;
    for (std::string_view word = word_of(rest); !word.empty(); word = word_of(rest)) {
      condition = line.target;
      line.target = word;
    }
    line.uniform = !divergent;
    line.ends = !divergent && condition == "pT";
  } else if (name == "exit") {
    line.ends = !divergent;
  } else if (name.starts_with("hmma")) {
    s.matrix_flops = matrix_flops_of(name);
  } else if (name.starts_with("ffma")) {
    s.f32_flops = 2;
  } else if (name.starts_with("hfma2")) {
    s.f32_flops = 4;
  } else if (name.starts_with("ld.shared") || name.starts_with("st.shared")) {
    s.shared_bytes =
        std::max({number_after(name, ".b"), number_after(name, ".u"), number_after(name, ".i")}) / 8;
  } else if (name.starts_with("isetp")) {
    note_counter(line, {}, rest);
  } else if (name.starts_with("iadd3")) {
    note_counter(line, result, rest);
  } else if (name.starts_with("ld.global")) {
    s.loads = s.accesses = 1;
  } else if (name.starts_with("st.global")) {
    s.accesses = 1;
  } else if (name.starts_with("ldsm")) {
    s.shared_bytes = 4 * std::max(1.0, number_after(name, "x"));
  }
  return line;
}

}  // namespace

std::optional<std::vector<CodeLine>> read_lines(std::string_view name, std::string_view listing) {
  CodeLine (*const read)(std::string_view) = name == "Assembly"       ? amd_line
                                             : name == "NAK assembly" ? nak_line
                                                                      : nullptr;
  if (read == nullptr) return std::nullopt;
  std::vector<CodeLine> lines;
  while (!listing.empty()) {
    const std::size_t end = std::min(listing.find('\n'), listing.size());
    const CodeLine line = read(listing.substr(0, end));
    if (!line.label.empty() || line.stretch.instructions > 0) lines.push_back(line);
    listing.remove_prefix(std::min(end + 1, listing.size()));
  }
  return lines;
}

}  // namespace caldera
