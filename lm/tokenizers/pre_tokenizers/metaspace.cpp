#include "lm/tokenizers/pre_tokenizers/metaspace.h"

#include "lm/tokenizers/pre_tokenizers/splitter.h"

namespace caldera::detail {
namespace {

class MetaspacePreTokenizer final : public PreTokenizer {
 public:
  MetaspacePreTokenizer(std::string replacement, PrependScheme scheme, bool split)
      : replacement_(std::move(replacement)), scheme_(scheme), split_(split) {}

  void split(const Piece& piece, const PieceSink& sink) const override {
    std::string text;
    text.reserve(piece.text.size() + piece.text.size() / 2);
    const bool prepend = scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && piece.first);
    if (prepend && !piece.text.starts_with(' ') && !piece.text.starts_with(replacement_))
      text += replacement_;
    for (const char c : piece.text) {
      if (c == ' ') {
        text += replacement_;
      } else {
        text += c;
      }
    }
    const Piece whole{text, piece.first};
    if (!split_) return sink(whole);
    Splitter splitter(whole, SplitBehavior::merged_with_next, false, sink);
    for (auto at = text.find(replacement_); at != std::string::npos;
         at = text.find(replacement_, at + replacement_.size())) {
      splitter.match(at, at + replacement_.size());
    }
    splitter.finish();
  }

 private:
  std::string replacement_;
  PrependScheme scheme_;
  bool split_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_metaspace(std::string replacement, PrependScheme scheme, bool split) {
  return std::make_unique<MetaspacePreTokenizer>(std::move(replacement), scheme, split);
}

}  // namespace caldera::detail
