// The last stage of a tokenizer: from tokens back to text. Private to training/text.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace caldera::detail {

/// A token in the midst of a text, as the steps of a decoder rewrite it by itself.
struct InnerToken {
  std::string bytes;    ///< may be part of a character
  bool joined = false;  ///< a step has joined the tokens: later ones see the whole text
};

/// A step that rewrites a list of strings; the text is what the last step leaves, joined. Immutable; may be
/// used from several threads at once.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::vector<std::string> decode(std::vector<std::string> tokens) const = 0;
  /// Rewrites one token as decode does when others stand before and after it.
  virtual void rewrite_inner(InnerToken& token) const = 0;
};

/// The decoder that a tokenizer.json describes: Sequence, ByteLevel, Metaspace, WordPiece, BPEDecoder, CTC,
/// ByteFallback, Fuse, Strip, Replace; null gives nullptr. Throws FileError naming a type that is not known.
std::unique_ptr<Decoder> read_decoder(const nlohmann::json& config, const std::string& where);

std::unique_ptr<Decoder> make_sequence(std::vector<std::unique_ptr<Decoder>> steps);
/// From the characters of the byte-level alphabet to the bytes; what is not UTF-8 then becomes U+FFFD.
std::unique_ptr<Decoder> make_byte_level_decoder();
/// Words begin where tokens do not begin with `prefix`. With `cleanup`, no spaces before punctuation and
/// within English contractions.
std::unique_ptr<Decoder> make_wordpiece_decoder(std::string prefix, bool cleanup);
/// What undoes SentencePiece's writing of spaces and bytes, but for the space before a text.
std::unique_ptr<Decoder> make_sentencepiece_decoder(bool strip_first_space);

}  // namespace caldera::detail
