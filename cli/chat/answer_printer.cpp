#include "cli/chat/answer_printer.h"

#include <cstdio>

#include "engine/base/error.h"

namespace caldera::cli {
namespace {

constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";

/// A terminal obeys control characters; a model has no business giving it orders.
std::string without_controls(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (c1)
      ++i;
    else if ((byte >= 0x20 && byte != 0x7F) || byte == '\n' || byte == '\t')
      shown += text[i];
  }
  return shown;
}

}  // namespace

void AnswerPrinter::finish() {
  take(splitter_.finish());
  if (dimmed_) print(kPlain);
  if (style_ != Style::silent) print("\n");
}

void AnswerPrinter::take(const std::vector<ThinkingPart>& parts) {
  for (const ThinkingPart& part : parts) {
    (part.thinking ? thinking_ : answer_) += part.text;
    if (style_ == Style::plain && !part.thinking) print(part.text);
    if (style_ != Style::terminal) continue;
    if (part.thinking && !dimmed_) print(kDim);
    if (!part.thinking && dimmed_) {
      print(kPlain);
      print("\n\n");
    }
    dimmed_ = part.thinking;
    print(without_controls(part.text));
  }
}

void AnswerPrinter::print(std::string_view text) const {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw FileError("cannot write to standard output; is the disk full?");
}

}  // namespace caldera::cli
