#include "lm/tokenizers/pre_tokenizers/pattern_split.h"

#include "lm/tokenizers/pre_tokenizers/splitter.h"

namespace caldera::detail {
namespace {

class SplitPreTokenizer final : public PreTokenizer {
 public:
  SplitPreTokenizer(TextPattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void split(const Piece& piece, const PieceSink& sink) const override {
    Splitter splitter(piece, behavior_, invert_, sink);
    pattern_.for_each_match(piece.text, [&](const Regex::Match& m) { splitter.match(m.begin, m.end); });
    splitter.finish();
  }

 private:
  TextPattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class SequencePreTokenizer final : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<std::unique_ptr<PreTokenizer>> steps)
      : steps_(std::move(steps)) {}

  void split(const Piece& piece, const PieceSink& sink) const override { run(0, piece, sink); }
  bool leave_byte_characters_out() override {
    return !steps_.empty() && steps_.back()->leave_byte_characters_out();
  }

 private:
  void run(std::size_t step, const Piece& piece, const PieceSink& sink) const {
    if (step == steps_.size()) return sink(piece);
    if (step + 1 == steps_.size()) return steps_[step]->split(piece, sink);
    const auto next = [&](const Piece& part) { run(step + 1, part, sink); };
    steps_[step]->split(piece, next);
  }

  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_sequence(std::vector<std::unique_ptr<PreTokenizer>> steps) {
  return std::make_unique<SequencePreTokenizer>(std::move(steps));
}

std::unique_ptr<PreTokenizer> make_split(TextPattern pattern, SplitBehavior behavior, bool invert) {
  return std::make_unique<SplitPreTokenizer>(std::move(pattern), behavior, invert);
}

}  // namespace caldera::detail
